"""Any page of a transcript by one seek: an index of where each entry stands in the file.

The index grows with the file, is kept beside it once the run is over, and can be thrown away.
"""

from __future__ import annotations

import logging
import os
import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from binderclip.contract.entry import (
    SHOWN_TEXT_BYTES,
    AppendRecord,
    Assistant,
    Entry,
    EntryRecord,
    Record,
    ReplaceRecord,
    Thinking,
    TranscriptHead,
    clip,
)
from binderclip.contract.errors import StoreError
from binderclip.server.survey import SeenEntry, Survey
from binderclip.store.jsonfile import encode, write_atomic
from binderclip.store.transcripts import NAME, read_head

KEPT = "transcript.pages"
PIECE_BYTES = 1024 * 1024
MARK_EVERY = 1024
"""Records between two remembered offsets, from which any record number is near."""
_WORTH_KEEPING = 1024 * 1024
UNFIT = re.compile(r"[^!-~]")
"""What cannot stand in an event's id."""
_OPEN_TEXTS = 4096
_ENTRY_HEAD = b'{"type":"entry","entry":'
_log = logging.getLogger(__name__)
_record = msgspec.json.Decoder(Record)


class Seen(msgspec.Struct, gc=False):
    """A record as far as an index needs to know it."""

    type: str
    id: str = ""
    entry: SeenEntry | None = None


_seen = msgspec.json.Decoder(Seen)


def seen_lines(data: bytes) -> list[Seen | None]:
    """What stands on each of these whole lines; None where a line is no record."""
    try:
        return list(_seen.decode_lines(data))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [_seen_line(line) for line in data.removesuffix(b"\n").split(b"\n")]


def _seen_line(line: bytes) -> Seen | None:
    try:
        return _seen.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class _Kept(msgspec.Struct):
    """An index as it is stored beside its transcript."""

    inode: int
    size: int
    mtime_ns: int
    head: TranscriptHead
    records: int
    offset: int
    starts: bytes
    reach: bytes
    places: bytes
    marks: bytes
    replaced: dict[int, tuple[int, int]]
    first_seq: int
    survey: Survey


class AttemptIndex:
    """Where each entry of one attempt's transcript stands; `update` reads what was added."""

    def __init__(self, directory: Path, attempt: int) -> None:
        self.path = directory / NAME
        self.attempt = attempt
        self._fd = -1
        self.close()

    def close(self) -> None:
        """Close the file and forget what was known of it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self.head: TranscriptHead | None = None
        self.records = 0
        self.offset = 0
        self.starts = array("Q")
        self.reach = array("Q")
        """Where the last record that makes an entry's text ends."""
        self.places = array("q")
        """Offsets in the logs, counted downwards from -1 for stderr."""
        self.marks = array("Q")
        self.replaced: dict[int, tuple[int, int]] = {}
        self.first_seq = 0
        self.survey = Survey()
        self.stored = False
        """Whether the index beside the transcript is this one."""
        self._texts: OrderedDict[str, int] = OrderedDict()

    @property
    def version(self) -> str:
        """The parser's version, fit to stand in the id of an event."""
        return UNFIT.sub("", self.head.version) if self.head else ""

    def update(self) -> bool:
        """Take in what was added; true if another file took the place of the one known."""
        replaced = self._fd >= 0 and self._other_file()
        if replaced:
            self.close()
        if self._fd < 0 and not self._open():
            return replaced
        while data := self._whole_lines():
            self._take(data)
        return replaced

    def keep(self) -> None:
        """Store the index beside a transcript that will not grow any more."""
        if self.offset < _WORTH_KEEPING or self.head is None or self.stored:
            return
        self.stored = True
        stat = os.fstat(self._fd)
        kept = _Kept(
            inode=stat.st_ino,
            size=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            head=self.head,
            records=self.records,
            offset=self.offset,
            starts=self.starts.tobytes(),
            reach=self.reach.tobytes(),
            places=self.places.tobytes(),
            marks=self.marks.tobytes(),
            replaced=self.replaced,
            first_seq=self.first_seq,
            survey=self.survey,
        )
        try:
            write_atomic(self.path.with_name(KEPT), msgspec.msgpack.encode(kept))
        except StoreError as problem:
            _log.warning("an index of %s is not kept: %s", self.path, problem.message)

    def entries(self, first: int, last: int, *, whole: bool = False) -> Iterator[bytes]:
        """The entries of these positions as JSON in their newest state; long texts may be cut."""
        if first >= last:
            return
        begin, end = self.starts[first], max(self.reach[first:last])
        for position, line, later in self._grouped(begin, end, first, last):
            replaced = self.replaced.get(position)
            if replaced is not None:
                line, later = os.pread(self._fd, replaced[1] - replaced[0], replaced[0]), []
            yield shown(line, later, whole=whole)

    def entry(self, position: int) -> Entry:
        """One entry in its newest state, whole."""
        (found,) = self._grouped(
            self.starts[position], self.reach[position], position, position + 1
        )
        replaced = self.replaced.get(position)
        if replaced is not None:
            return _entry_of(os.pread(self._fd, replaced[1] - replaced[0], replaced[0]), [])
        return _entry_of(found[1], found[2])

    def position(self, entry_id: str, stream: str, offset: int) -> int | None:
        """Where an entry stands, found by the place of its line in the log."""
        place = _place(stream, offset)
        at = 0
        while True:
            try:
                at = self.places.index(place, at)
            except ValueError:
                return None
            if self.entry(at).id == entry_id:
                return at
            at += 1

    def offset_of(self, record: int) -> int:
        """Where the record of this number begins; the end of what is known for the next one."""
        if record >= self.records:
            return self.offset
        left, offset = record % MARK_EVERY, self.marks[record // MARK_EVERY]
        while left:
            data = os.pread(self._fd, PIECE_BYTES, offset)
            if not data:
                break
            lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
            if not lines:
                return self.offset
            for line in lines:
                offset += len(line) + 1
                left -= _seen_line(line) is not None
                if not left:
                    break
        return offset

    def _open(self) -> bool:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self._restore()
        return True

    def _other_file(self) -> bool:
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        return not os.path.samestat(os.fstat(self._fd), there) or there.st_size < self.offset

    def _restore(self) -> None:
        stat = os.fstat(self._fd)
        try:
            data = self.path.with_name(KEPT).read_bytes()
            kept = msgspec.msgpack.decode(data, type=_Kept)
        except (OSError, msgspec.DecodeError):
            return
        if (kept.inode, kept.size, kept.mtime_ns) != (stat.st_ino, stat.st_size, stat.st_mtime_ns):
            return
        self.head, self.records, self.offset = kept.head, kept.records, kept.offset
        for name in ("starts", "reach", "places", "marks"):
            getattr(self, name).frombytes(getattr(kept, name))
        self.replaced, self.first_seq, self.survey = kept.replaced, kept.first_seq, kept.survey
        self.stored = True

    def _whole_lines(self) -> bytes:
        return whole_lines(self._fd, self.offset)

    def _take(self, data: bytes) -> None:
        at = self.offset
        if self.head is None:
            first, _, rest = data.partition(b"\n")
            self.head = read_head(first, self.path)
            at, data = at + len(first) + 1, rest
        for line, seen in zip(data.split(b"\n"), seen_lines(data), strict=False):
            end = at + len(line) + 1
            if seen is not None:
                self._take_record(seen, at, end)
            at = end
        self.offset = at

    def _take_record(self, seen: Seen, start: int, end: int) -> None:
        if self.records % MARK_EVERY == 0:
            self.marks.append(start)
        self.records += 1
        if seen.type == "append":
            position = self._texts.get(seen.id)
            if position is not None:
                self.reach[position] = end
        elif seen.entry is not None and seen.type == "replace":
            position = (seen.entry.seq or 0) - self.first_seq
            if 0 <= position < len(self.starts):
                self.replaced[position] = (start, end)
        elif seen.entry is not None:
            self._take_entry(seen.entry, start, end)

    def _take_entry(self, entry: SeenEntry, start: int, end: int) -> None:
        if entry.kind in ("assistant", "thinking"):
            self._texts[entry.id] = len(self.starts)
            if len(self._texts) > _OPEN_TEXTS:
                self._texts.popitem(last=False)
        if not self.starts:
            self.first_seq = entry.seq or 0
        self.starts.append(start)
        self.reach.append(end)
        self.places.append(_place(entry.stream or "stdout", entry.offset or 0))
        self.survey.add(entry)

    def _grouped(
        self, begin: int, end: int, first: int, last: int
    ) -> Iterator[tuple[int, bytes, list[AppendRecord]]]:
        """Each entry's own line with the records that lengthen it."""
        lines: list[bytes] = []
        places: dict[str, int] = {}
        later: dict[int, list[AppendRecord]] = {}
        data = os.pread(self._fd, end - begin, begin)
        # A text may go on long after the page's last entry: only its own records count then.
        for line, seen in zip(data.split(b"\n"), seen_lines(data), strict=False):
            if seen is None:
                continue
            if seen.type == "entry" and seen.entry is not None and len(lines) < last - first:
                places[seen.entry.id] = len(lines)
                lines.append(line)
            elif seen.type == "append" and seen.id in places:
                record = _record.decode(line)
                assert isinstance(record, AppendRecord)
                later.setdefault(places[seen.id], []).append(record)
        for number, line in enumerate(lines):
            yield first + number, line, later.get(number, [])


def whole_lines(fd: int, offset: int, size: int = PIECE_BYTES) -> bytes:
    """Complete lines from this offset on, about a piece; a longer line comes alone."""
    data = os.pread(fd, size, offset)
    whole = data.rfind(b"\n") + 1
    while data and not whole:
        more = os.pread(fd, len(data), offset + len(data))
        if not more:
            return b""
        whole = len(data) + more.find(b"\n") + 1 if b"\n" in more else 0
        data += more
    return data[:whole]


def shown(line: bytes, later: list[AppendRecord], *, whole: bool = False) -> bytes:
    """An entry's JSON for lists and streams; most are handed on as they stand in the file."""
    short = whole or len(line) <= SHOWN_TEXT_BYTES
    if short and not later and line.startswith(_ENTRY_HEAD):
        return line[len(_ENTRY_HEAD) : -1]
    entry = _entry_of(line, later)
    return encode(entry if whole else clip(entry))


def _entry_of(line: bytes, later: list[AppendRecord]) -> Entry:
    record = _record.decode(line)
    assert isinstance(record, EntryRecord | ReplaceRecord)
    entry = record.entry
    if not later:
        return entry
    assert isinstance(entry, Assistant | Thinking)
    text = entry.text + "".join(record.text for record in later)
    return msgspec.structs.replace(entry, text=text)


def _place(stream: str, offset: int) -> int:
    return offset if stream == "stdout" else -1 - offset
