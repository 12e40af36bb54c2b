"""The kernel's notices of changed files, by ctypes; Linux only."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MODIFY = 0x2
ATTRIB = 0x4
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
OVERFLOW = 0x4000
IGNORED = 0x8000
_ADD_TO_MASK = 0x20000000
_HEADER = struct.Struct("iIII")


class Event(NamedTuple):
    """One notice: which watch, what happened, and the name inside a watched directory."""

    number: int
    mask: int
    name: str


class Inotify:
    """One instance; `fd` is readable when there are notices. OSError when there can be none."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("this system has no inotify")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, path: Path, mask: int) -> int:
        """Watch a path; the same file has the same number, and the wishes for it add up."""
        number = self._libc.inotify_add_watch(self.fd, os.fsencode(path), mask | _ADD_TO_MASK)
        return self._checked(number)

    def remove(self, number: int) -> None:
        """Forget a watch; one that the kernel forgot already is no error."""
        self._libc.inotify_rm_watch(self.fd, number)

    def read(self) -> Iterator[Event]:
        """The notices that are there now."""
        try:
            data = os.read(self.fd, 64 * 1024)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            number, mask, _, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            name = data[offset : offset + length].rstrip(b"\0")
            offset += length
            yield Event(number, mask, os.fsdecode(name))

    def close(self) -> None:
        os.close(self.fd)

    def _checked(self, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer
