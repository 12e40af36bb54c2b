"""Linux calls that the standard library does not have; each one may be unavailable."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_IN_MODIFY = 2


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> bool:
    """Orphans among our descendants become our children instead of init's."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(_libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def set_command_name(name: str) -> None:
    """The name that `ps` and `top` show, where there is a way to set it."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(name)
    except OSError:
        return


def watch_changes(paths: list[str]) -> int | None:
    """A descriptor that becomes readable when one of the files changes; None without inotify."""
    if not sys.platform.startswith("linux"):
        return None
    libc = _libc()
    fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        return None
    for path in paths:
        if libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY) < 0:
            os.close(fd)
            return None
    return fd


def drain(fd: int) -> None:
    """Empty a non-blocking descriptor whose content does not matter."""
    try:
        while os.read(fd, 1 << 16):
            pass
    except BlockingIOError:
        return
