"""`transcript.jsonl`: what a parser made of an attempt's log, followed by readers while it grows.

It is a cache: the first line names the parser, one driver at a time writes, deleting loses nothing.
A driver that takes over writes its own file beside the old one and puts it in place once it has
caught up; readers notice the other file and start again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from binderclip.contract.entry import Assistant, EntryRecord, Record, TranscriptHead
from binderclip.contract.errors import StoreError
from binderclip.store.jsonfile import encode_lines
from binderclip.supervisor.documents import write_all

NAME = "transcript.jsonl"
_BATCH_BYTES = 256 * 1024


@cache
def _records() -> msgspec.json.Decoder[Record]:
    """Made when somebody reads: who only writes starts sooner without it."""
    return msgspec.json.Decoder(Record)


def read_head(line: bytes, path: Path) -> TranscriptHead:
    """The first line of a transcript; StoreError if it is none."""
    try:
        return msgspec.json.decode(line, type=TranscriptHead)
    except msgspec.DecodeError as problem:
        raise StoreError(
            f"{path} does not begin like a transcript: {problem}.",
            hint="Delete it: it is made again from the run's log.",
        ) from problem


class TranscriptWriter:
    """Writes records in batches; readers see them at once, unless an older file is to be replaced.

    In that case nothing is seen before `publish`, which the driver calls when it has caught up
    with the index; `close` publishes as well, `discard` leaves the older file in place.
    """

    def __init__(self, path: Path, head: TranscriptHead) -> None:
        self.path = path
        self.records = 0
        self.published = not path.exists()
        self._beside = path.with_name(path.name + ".next")
        place = path if self.published else self._beside
        self._fd = self._open(place)
        self._size = 0
        try:
            self._append([head])
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> TranscriptWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def write(self, records: Sequence[Record]) -> None:
        """Append a batch with one write; a batch that does not fit on the disk leaves no trace."""
        if records:
            self._append(records)
            self.records += len(records)

    def publish(self) -> None:
        """Put the new file in the place of the older one; later records are appended to it."""
        if not self.published:
            self._beside.rename(self.path)
            self.published = True

    def close(self) -> None:
        if self._fd >= 0:
            self.publish()
            self._release()

    def discard(self) -> None:
        """Stop without replacing an older file; what was already published stays."""
        if self._fd >= 0:
            self._release()
            if not self.published:
                self._beside.unlink()

    def _open(self, place: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        try:
            return os.open(place, flags, 0o600)
        except OSError as problem:
            raise self._failed(problem) from problem

    def _append(self, values: Sequence[Record | TranscriptHead]) -> None:
        data = encode_lines(values)
        try:
            write_all(self._fd, data)
        except OSError as problem:
            # Half a line would swallow the next one.
            os.ftruncate(self._fd, self._size)
            raise self._failed(problem) from problem
        self._size += len(data)

    def _failed(self, problem: OSError) -> StoreError:
        message = f"The transcript {self.path} cannot be written: {problem.strerror}."
        return StoreError(message, hint="Check its owner and the free space of the disk.")

    def _release(self) -> None:
        os.close(self._fd)
        self._fd = -1


class Poll(NamedTuple):
    """What a reader found: on a reset, everything it gave before is void."""

    reset: bool
    records: list[Record]


class TranscriptReader:
    """Follows a transcript from its beginning, complete lines only, in bounded batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head: TranscriptHead | None = None
        """None until the first line is there."""
        self.count = 0
        """How many records were given since the beginning or the last reset."""
        self.damaged = 0
        """Lines that are no records, left out."""
        self._fd = -1
        self._offset = 0

    def __enter__(self) -> TranscriptReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def poll(self) -> Poll:
        """The next records; none means that the reader has caught up."""
        reset = self._fd >= 0 and self._replaced()
        if reset:
            self._restart()
        return Poll(reset, self.read())

    def read(self) -> list[Record]:
        """Like `poll`, but stays with the file it began with when another takes its place."""
        if self._fd < 0 and not self._opened():
            return []
        records: list[Record] = []
        while not records and (lines := self._next_lines()):
            records = self._decode(lines)
        self.count += len(records)
        return records

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _opened(self) -> bool:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def _replaced(self) -> bool:
        own = os.fstat(self._fd)
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        return not os.path.samestat(own, there) or there.st_size < self._offset

    def _restart(self) -> None:
        self.close()
        self.head = None
        self.count = self.damaged = self._offset = 0

    def _next_lines(self) -> bytes:
        """Whole lines of about a batch; a line longer than that comes alone."""
        data = os.pread(self._fd, _BATCH_BYTES, self._offset)
        whole = data.rfind(b"\n") + 1
        while data and not whole:
            more = os.pread(self._fd, len(data), self._offset + len(data))
            if not more:
                return b""
            whole = len(data) + more.find(b"\n") + 1 if b"\n" in more else 0
            data += more
        self._offset += whole
        return data[:whole]

    def _decode(self, lines: bytes) -> list[Record]:
        if self.head is None:
            first, _, lines = lines.partition(b"\n")
            self.head = read_head(first, self.path)
        try:
            return _records().decode_lines(lines)
        except msgspec.DecodeError:
            return self._decode_singly(lines)

    def _decode_singly(self, lines: bytes) -> list[Record]:
        records: list[Record] = []
        for line in lines.removesuffix(b"\n").split(b"\n"):
            try:
                records.append(_records().decode(line))
            except msgspec.DecodeError:
                self.damaged += 1
        return records


def read_transcript(path: Path) -> Iterator[Record]:
    """All records that a transcript holds now."""
    with TranscriptReader(path) as reader:
        found = reader.read()
        if reader.head is None:
            message = f"There is no transcript at {path}."
            raise StoreError(message, hint="It can be made from the log beside it.")
        while found:
            yield from found
            found = reader.read()


def read_last_texts(path: Path, count: int) -> list[Assistant] | None:
    """The last things that an agent said, in order; None where the records before them matter."""
    with path.open("rb") as file:
        head = file.readline()
        begin = file.tell()
        stop = file.seek(0, os.SEEK_END)
        if not _only_texts(head, path):
            return None
        wanted = _BATCH_BYTES
        while True:
            start = max(begin, stop - wanted)
            file.seek(start)
            said = _texts(file.read(stop - start), whole=start == begin)
            if said is None or len(said) >= count or start == begin:
                return said and said[-count:]
            wanted *= 4


def _only_texts(head: bytes, path: Path) -> bool:
    try:
        return read_head(head, path).only_texts
    except StoreError:
        # Whoever reads the whole tells it.
        return False


def _texts(data: bytes, *, whole: bool) -> list[Assistant] | None:
    """What was said in these lines, of which the first may be a part; None if one is damaged."""
    first = 0 if whole else data.find(b"\n") + 1
    try:
        records = _records().decode_lines(data[first : data.rfind(b"\n") + 1])
    except msgspec.DecodeError:
        return None
    entries = (record.entry for record in records if isinstance(record, EntryRecord))
    return [entry for entry in entries if isinstance(entry, Assistant)]
