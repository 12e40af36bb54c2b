"""Reading what an attempt printed, by its index: a byte that no record covers does not exist (D2).

Times and order come from the index, so a live reader and a later one see the same lines.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from binderclip.contract.entry import Stream
from binderclip.contract.wire import iso_time
from binderclip.sdk.lines import Line, LineSplitter
from binderclip.supervisor.documents import INDEX

PIECE_BYTES = 256 * 1024
STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")
_BATCH_BYTES = 1024 * 1024
_LETTERS: dict[bytes, Stream] = {b"o": "stdout", b"e": "stderr"}
_YEAR_10000_US = 253_402_300_800_000_000
_LARGEST_OFFSET = 2**63


class IndexRecord(NamedTuple):
    """At this time the stream's log was complete up to `end`."""

    at_us: int
    stream: Stream
    end: int


class AttemptLog:
    """The logs and the index of one attempt; files that do not exist yet count as empty."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.damaged = 0
        """Lines of the index that are no records."""
        self._fds: dict[str, int] = {}
        self._offset = 0
        self._ends: dict[Stream, int] = {"stdout": 0, "stderr": 0}

    def __enter__(self) -> AttemptLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def new_records(self) -> list[IndexRecord]:
        """The records written since the last call, oldest first.

        At most a megabyte of index at once: an empty list means that there is nothing more.
        """
        records: list[IndexRecord] = []
        while not records:
            lines = self._new_lines()
            if not lines:
                break
            for line in lines:
                record = _record(line)
                if record is None or record.end < self._ends[record.stream]:
                    self.damaged += 1
                    continue
                self._ends[record.stream] = record.end
                records.append(record)
        return records

    def read(self, stream: Stream, start: int, end: int) -> Iterator[bytes]:
        """The bytes of a log in pieces of at most 256 KiB; a log that was cut ends early."""
        fd = self._fd(f"{stream}.log")
        while fd is not None and start < end:
            piece = os.pread(fd, min(PIECE_BYTES, end - start), start)
            if not piece:
                return
            start += len(piece)
            yield piece

    def size(self, stream: Stream) -> int:
        """How many bytes of the stream the index covers now."""
        fd = self._fd(INDEX)
        if fd is None:
            return 0
        stop = os.fstat(fd).st_size
        while stop > self._offset:
            start = max(self._offset, stop - PIECE_BYTES)
            data = os.pread(fd, stop - start, start)
            # The first line of a piece may have begun in the piece before it.
            cut = data.find(b"\n") + 1 if start > self._offset else 0
            end = _last_end(data[cut:], stream)
            if end is not None:
                return end
            stop = start + cut if 0 < cut < len(data) else start
        return self._ends[stream]

    def tail(self, stream: Stream, limit: int) -> bytes:
        """The last bytes of the stream that the index covers."""
        end = self.size(stream)
        return b"".join(self.read(stream, max(0, end - limit), end))

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def _fd(self, name: str) -> int | None:
        if name not in self._fds:
            try:
                self._fds[name] = os.open(self.directory / name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
        return self._fds[name]

    def _new_lines(self) -> list[bytes]:
        fd = self._fd(INDEX)
        data = b"" if fd is None else os.pread(fd, _BATCH_BYTES, self._offset)
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) == _BATCH_BYTES:
            # No record is that long; stepping over it keeps a damaged file from stopping us.
            whole = len(data)
        self._offset += whole
        return data[:whole].removesuffix(b"\n").split(b"\n") if whole else []


class LineReader:
    """Follows the index of a log and gives the lines that its records complete."""

    def __init__(self, log: AttemptLog) -> None:
        self.log = log
        self.offsets: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        """How many bytes of each stream were read."""
        self._splitters = {stream: LineSplitter() for stream in STREAMS}
        self._pending: deque[IndexRecord] = deque()
        self._ahead: dict[Stream, memoryview] = dict.fromkeys(STREAMS, memoryview(b""))
        self._reach: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self._last_us = 0
        self._millisecond = -1
        self._ts = ""

    def poll(self) -> Iterator[tuple[Stream, Line, str]]:
        """The lines that new records complete, in the order of the records; exhaust it."""
        while self._fill():
            while self._pending:
                self._last_us, stream, end = self._pending.popleft()
                push = self._splitters[stream].push
                for piece in self._pieces(stream, end):
                    lines = push(piece)
                    if lines:
                        ts = self._time()
                        for line in lines:
                            yield stream, line, ts

    def finish(self) -> Iterator[tuple[Stream, Line, str]]:
        """After the attempt's end: what is left, and last lines that have no newline."""
        yield from self.poll()
        for stream in STREAMS:
            for line in self._splitters[stream].finish():
                yield stream, line, self._time()

    def _fill(self) -> bool:
        if not self._pending:
            self._pending.extend(self.log.new_records())
            for record in self._pending:
                self._reach[record.stream] = record.end
        return bool(self._pending)

    def _pieces(self, stream: Stream, end: int) -> Iterator[bytes]:
        """The stream's bytes up to `end`; one read serves many small records."""
        while (missing := end - self.offsets[stream]) > 0:
            ahead = self._ahead[stream]
            if not ahead:
                ahead = self._read_ahead(stream)
                if not ahead:
                    # A log that was cut: what is missing may still be written.
                    return
            piece = ahead[:missing]
            self._ahead[stream] = ahead[len(piece) :]
            self.offsets[stream] += len(piece)
            yield bytes(piece)

    def _read_ahead(self, stream: Stream) -> memoryview:
        start = self.offsets[stream]
        stop = min(self._reach[stream], start + PIECE_BYTES)
        return memoryview(next(self.log.read(stream, start, stop), b""))

    def _time(self) -> str:
        """When the record that is being read was written."""
        if self._last_us // 1000 != self._millisecond:
            self._millisecond = self._last_us // 1000
            self._ts = iso_time(self._last_us / 1_000_000)
        return self._ts


def _record(line: bytes) -> IndexRecord | None:
    fields = line.split(b" ")
    if len(fields) != 3 or not (fields[0].isdigit() and fields[2].isdigit()):
        return None
    stream = _LETTERS.get(fields[1])
    # A torn line may have too many digits for a number, not only for a time or an offset.
    if stream is None or max(len(fields[0]), len(fields[2])) > 19:
        return None
    record = IndexRecord(int(fields[0]), stream, int(fields[2]))
    return record if record.at_us < _YEAR_10000_US and record.end < _LARGEST_OFFSET else None


def _last_end(data: bytes, stream: Stream) -> int | None:
    lines = data[: data.rfind(b"\n") + 1].split(b"\n")
    found = (_record(line) for line in reversed(lines))
    return next((record.end for record in found if record and record.stream == stream), None)
