"""Locks that say who is alive; asking whether one is held never takes it.

Linux: open-file-description locks. Elsewhere flock, which can only be asked by trying, so `take`
waits a second for such a probe to pass.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time

_FLOCK = "hhqqi"
_PROBE_PATIENCE_SEC = 1.0
_SETLK = getattr(fcntl, "F_OFD_SETLK", None)
_GETLK = getattr(fcntl, "F_OFD_GETLK", None)


def take(path: str | os.PathLike[str]) -> int | None:
    """Take the lock and return the descriptor that holds it, or None when somebody else does.

    The file is made if it is missing (0600). The descriptor is close-on-exec; a forked copy of
    this process keeps the lock until it ends or execs.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        taken = _take_ofd(fd) if _SETLK is not None else _take_flock(fd)
    except BaseException:
        os.close(fd)
        raise
    if taken:
        return fd
    os.close(fd)
    return None


def held(path: str | os.PathLike[str]) -> bool:
    """Say whether any process holds the lock; a missing file is a free lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if _GETLK is None:
            return not _try_flock(fd)
        answer = fcntl.fcntl(fd, _GETLK, _write_lock())
        return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(fd)


def release(fd: int) -> None:
    """Give the lock back by closing its descriptor."""
    os.close(fd)


def _write_lock() -> bytes:
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _take_ofd(fd: int) -> bool:
    assert _SETLK is not None
    try:
        fcntl.fcntl(fd, _SETLK, _write_lock())
    except (BlockingIOError, PermissionError):
        return False
    return True


def _take_flock(fd: int) -> bool:
    deadline = time.monotonic() + _PROBE_PATIENCE_SEC
    while not _try_flock(fd):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _try_flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
