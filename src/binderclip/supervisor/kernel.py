"""Linux calls that the standard library does not have; each one may be unavailable."""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_IN_MODIFY = 2
_SYS_CLONE3 = 435
_CLONE_INTO_CGROUP = 0x200000000


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> bool:
    """Orphans among our descendants become our children instead of init's."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(_libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def fork_into(cgroup: str) -> int:
    """Fork a child that begins its life in a cgroup; OSError where the kernel cannot.

    Moving a process there later waits for every CPU to notice, ten milliseconds and more.
    """
    import ctypes

    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    fd = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        arguments = (ctypes.c_uint64 * 11)(_CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD)
        arguments[10] = fd
        # PyDLL keeps the interpreter's lock, so the child's interpreter is as it was.
        libc = ctypes.PyDLL(None, use_errno=True)
        pid: int = libc.syscall(_SYS_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
    finally:
        os.close(fd)
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid


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
