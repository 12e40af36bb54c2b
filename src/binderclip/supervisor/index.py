"""The index: which byte of which stream was there when. A byte that no record covers is invisible.

Lines `<unix µs> <o|e> <end offset>`; times never go back, offsets of a stream only grow, at most
one record per millisecond and stream.
"""

from __future__ import annotations

import errno
import os
import time

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class IndexWriter:
    """Appends records; `covered` is the end of each stream as told so far."""

    def __init__(self, path: str) -> None:
        self.covered = {"o": 0, "e": 0}
        self._noted: dict[str, int] = {}
        self._last_ms = {"o": 0, "e": 0}
        self._due = {"o": 0.0, "e": 0.0}
        self._last_us = 0
        self._unwritten = b""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._resume(path)

    @property
    def waiting(self) -> bool:
        """Whether a record is due within a millisecond."""
        return bool(self._noted)

    def note(self, letter: str, end: int) -> None:
        """Say that the stream is complete up to `end`; its record may be a millisecond late."""
        if end > self._noted.get(letter, self.covered[letter]):
            self._noted[letter] = end
            self.flush()

    def flush(self, final: bool = False) -> None:
        """Write what is due; with `final` all of it."""
        tick = time.monotonic()
        for letter, end in list(self._noted.items()):
            if tick < self._due[letter] and not final:
                continue
            self._due[letter] = tick + 0.001
            # A wall clock that was set back stands still, more or less, until it is right again.
            now = max(time.time_ns() // 1000, self._last_us, (self._last_ms[letter] + 1) * 1000)
            self._last_us = now
            self._last_ms[letter] = now // 1000
            self.covered[letter] = end
            del self._noted[letter]
            self._unwritten += b"%d %s %d\n" % (now, letter.encode(), end)
        self._write()

    def close(self) -> None:
        os.close(self._fd)

    def _write(self) -> None:
        while self._unwritten:
            try:
                written = os.write(self._fd, self._unwritten)
            except OSError as error:
                if error.errno in NO_SPACE:
                    return
                raise
            self._unwritten = self._unwritten[written:]

    def _resume(self, path: str) -> None:
        records, whole = read_index(path)
        # A line without its end was never a record; the next one must not be glued to it.
        os.ftruncate(self._fd, whole)
        for micros, letter, end in records:
            self._last_us = micros
            self._last_ms[letter] = micros // 1000
            self.covered[letter] = end


def read_index(path: str, start: int = 0) -> tuple[list[tuple[int, str, int]], int]:
    """Whole records from byte `start` of the file on, and where to read on from."""
    with open(path, "rb") as file:
        file.seek(start)
        data = file.read()
    whole = data.rfind(b"\n") + 1
    records = []
    for line in data[:whole].splitlines():
        micros, letter, end = line.split()
        records.append((int(micros), letter.decode(), int(end)))
    return records, start + whole
