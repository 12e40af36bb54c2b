"""Brings what the child printed into its logs, masked, and tells the index how far it is complete.

`FileCapture` follows a log that the child itself writes; `PipeCapture` copies from a FIFO. Both
offer the same: `child_fd` for the child, `pump` to move what is there, `finish` at the end.
"""

from __future__ import annotations

import fcntl
import os
import time

from binderclip.supervisor.documents import STREAMS, fifo_path, log_path, write_all
from binderclip.supervisor.index import NO_SPACE
from binderclip.supervisor.masking import Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from binderclip.supervisor.index import IndexWriter

    Capture = Union["FileCapture", "PipeCapture"]

_READ = 256 << 10
_READS_PER_PUMP = 16
_GUARD = 64
_PIPE_SIZE = 1 << 20
_F_SETPIPE_SZ = 1031


class LogRoom:
    """How many more bytes the logs of one attempt may take together; `most` 0 is no limit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.captures: list[Capture] = []
        self.refused = False

    def grant(self, wanted: int) -> int:
        """How many of `wanted` bytes still fit."""
        if not self.most:
            return wanted
        granted = max(0, min(wanted, self.most - self.used()))
        self.refused = self.refused or granted < wanted
        return granted

    def used(self) -> int:
        return sum(capture.size for capture in self.captures)

    def exceeded(self) -> bool:
        return bool(self.most) and (self.refused or self.used() > self.most)


class FileCapture:
    """Follows a log behind a child that appends to it; masks in place before the index tells.

    The last bytes before the reading position are compared at every read: when they changed, the
    log was truncated. Its lost part is then filled with line feeds, so that every offset that the
    index ever told keeps its place, and what the child wrote since is moved behind it.
    """

    readable_fd: int | None = None
    stalled_since: float | None = None

    def __init__(self, attempt_dir: str, letter: str, needles: list[bytes], index: IndexWriter):
        path = log_path(attempt_dir, letter)
        self.letter = letter
        self.path = path
        self.truncated: list[dict[str, Any]] = []
        self.masker = Masker(needles)
        self.child_fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._read_fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        # Linux appends on pwrite to a descriptor opened with O_APPEND.
        self._write_fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._index = index
        self._blank = 0
        self._told = self.seen = index.covered[letter]
        self._emitted = os.pread(self._read_fd, _GUARD, max(0, self._told - _GUARD))
        self._emitted = self._emitted[: min(_GUARD, self._told)]
        self.masker.restart(self._emitted)
        if self.size < self._told:
            self._mend()

    @property
    def size(self) -> int:
        return os.fstat(self._read_fd).st_size

    def pump(self) -> bool:
        """Take in what is there; True when more may be waiting."""
        for _ in range(_READS_PER_PUMP):
            data = self._read()
            if not data:
                return False
            self._tell(data)
        return True

    def finish(self) -> bool:
        """Release what was held back; the child is gone and `pump` found nothing more."""
        self._tell(b"", final=True)
        return True

    def close(self) -> None:
        for fd in (self.child_fd, self._read_fd, self._write_fd):
            os.close(fd)

    def _tell(self, data: bytes, final: bool = False) -> None:
        self.seen += len(data)
        release = self.masker.feed(data, final)
        for start, stop in release.ranges:
            _write_at(self._write_fd, b"*" * (stop - start), self._told + start)
        self._told += len(release.data)
        self._emitted = (self._emitted + release.data[-_GUARD:])[-_GUARD:]
        self._index.note(self.letter, self._told)

    def _read(self) -> bytes:
        if self._blank:
            self._rescue()
        guard = (self._emitted + self.masker.held)[-_GUARD:]
        data = os.pread(self._read_fd, len(guard) + _READ, self.seen - len(guard))
        if data.startswith(guard):
            return data[len(guard) :]
        self._mend()
        return os.pread(self._read_fd, _READ, self.seen)

    def _mend(self) -> None:
        self.truncated.append({"stream": STREAMS[self.letter], "at": self.seen})
        shrunk = self.size < self.seen
        if shrunk:
            # From here on the child's appends land behind every offset that was ever told.
            _extend(self._write_fd, self.seen)
        self._blank = self.seen if shrunk else self.size
        for start in range(0, self._blank, _READ):
            late = os.pread(self._read_fd, min(_READ, self._blank - start), start)
            write_all(self.child_fd, late.rstrip(b"\0") if shrunk else late)
            _write_at(self._write_fd, b"\n" * len(late), start)
        self.masker.restart(b"\n")
        self._emitted = b"\n" * min(_GUARD, self._blank)
        self._told = self.seen = self._blank
        self._index.note(self.letter, self._blank)

    def _rescue(self) -> None:
        """Move what a writer that truncated the log and does not append put at its beginning."""
        head = os.pread(self._read_fd, min(_READ, self._blank), 0)
        strayed = head.strip(b"\n")
        if strayed:
            _write_at(self._write_fd, b"\n" * len(strayed), head.index(strayed))
            write_all(self.child_fd, strayed + b"\n")


class PipeCapture:
    """Copies from a FIFO to the log, masking in flight.

    On a full disk it stops reading (`stalled_since`), so the child waits and nothing is lost.
    """

    def __init__(
        self,
        attempt_dir: str,
        letter: str,
        needles: list[bytes],
        index: IndexWriter,
        room: LogRoom,
    ):
        self.letter = letter
        self.path = log_path(attempt_dir, letter)
        self.truncated: list[dict[str, Any]] = []
        self.masker = Masker(needles)
        self.seen = 0
        self.stalled_since: float | None = None
        self._index = index
        self._room = room
        self._backlog = b""
        self._fifo = fifo_path(attempt_dir, letter)
        self._open()
        self.size = os.fstat(self._log_fd).st_size
        index.note(letter, self.size)

    def _open(self) -> None:
        if not os.path.exists(self._fifo):
            os.mkfifo(self._fifo, 0o600)
        self.readable_fd = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Open for writing here too: then there is no end of file before the end of the run.
        self.child_fd = os.open(self._fifo, os.O_RDWR | os.O_CLOEXEC)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._log_fd = os.open(self.path, flags, 0o600)
        try:
            fcntl.fcntl(self.readable_fd, _F_SETPIPE_SZ, _PIPE_SIZE)
        except OSError:
            return

    def pump(self) -> bool:
        """Copy what is there; True when more may be waiting."""
        if not self._write():
            return False
        for _ in range(_READS_PER_PUMP):
            try:
                data = os.read(self.readable_fd, _READ)
            except BlockingIOError:
                return False
            self.seen += len(data)
            if not self._keep(self.masker.feed(data).data):
                return False
        return True

    def finish(self) -> bool:
        """Write what was held back; False while the disk is full."""
        return self._write() and self._keep(self.masker.feed(b"", final=True).data)

    def close(self) -> None:
        for fd in (self.child_fd, self.readable_fd, self._log_fd):
            os.close(fd)
        os.unlink(self._fifo)

    def _keep(self, data: bytes) -> bool:
        self._backlog = data[: self._room.grant(len(data))]
        return self._write()

    def _write(self) -> bool:
        while self._backlog:
            try:
                written = os.write(self._log_fd, self._backlog)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                self.stalled_since = self.stalled_since or time.monotonic()
                return False
            self._backlog = self._backlog[written:]
            self.size += written
            self._index.note(self.letter, self.size)
        self.stalled_since = None
        return True


def _extend(fd: int, size: int) -> None:
    """Make a file at least `size` long without touching what is in it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        _write_at(fd, b"\0", size - 1)


def _write_at(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written
