"""What the kernel says about processes: who descends from whom, and who is who.

A process is its pid together with its start time; a pid alone may belong to somebody new.
A zombie counts as dead.
"""

from __future__ import annotations

import os
import signal

_LINUX = os.path.isdir("/proc/self")


class Process:
    """One living process as it was when `table` looked."""

    __slots__ = ("parent", "pid", "start")

    def __init__(self, pid: int, parent: int, start: int) -> None:
        self.pid = pid
        self.parent = parent
        self.start = start


def boot_id() -> str:
    """Names this boot of the machine; start times mean nothing across boots."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def table() -> dict[int, Process]:
    """All living processes by pid."""
    if not _LINUX:
        return _table_of_ps()
    found = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def look(pid: int) -> Process | None:
    """One process, or None when it is dead."""
    if not _LINUX:
        return _table_of_ps().get(pid)
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # A command name may hold spaces and parentheses, so fields count from the last one.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if fields[0] in b"ZX":
        return None
    return Process(pid, int(fields[1]), int(fields[19]))


def newest_pid() -> int:
    """The pid that was given out last; 0 where the kernel does not tell."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[-1])
    except OSError:
        return 0


def alive(pid: int, start: int) -> bool:
    """Whether exactly this process still lives."""
    process = look(pid)
    return process is not None and process.start == start


def descendants(everybody: dict[int, Process], roots: set[int]) -> list[Process]:
    """The living children, grandchildren and so on of `roots`, without the roots."""
    children: dict[int, list[Process]] = {}
    for process in everybody.values():
        children.setdefault(process.parent, []).append(process)
    found = []
    waiting = list(roots)
    while waiting:
        for process in children.pop(waiting.pop(), []):
            if process.pid not in roots:
                found.append(process)
            waiting.append(process.pid)
    return found


def lineage(pid: int) -> list[Process]:
    """A process and everything above it."""
    above = []
    process = look(pid)
    while process is not None:
        above.append(process)
        process = look(process.parent) if process.parent else None
    return above


def carrying(everybody: dict[int, Process], marker: str) -> list[Process]:
    """Processes that were started with `marker` (`NAME=value`) in their environment."""
    wanted = os.fsencode(marker)
    if not wanted:
        return []
    return [p for p in everybody.values() if wanted in environment(p.pid)]


def environment(pid: int) -> list[bytes]:
    """The `NAME=value` strings a process was started with; none when they cannot be read."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def command(pid: int) -> str:
    """The command line, for people; empty when the process is gone."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = file.read(4096)
    except OSError:
        return ""
    return words.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")


def send(pid: int, start: int, number: int) -> bool:
    """Signal exactly this process; False when it is gone or not ours to signal."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return _send_by_pid(pid, start, number)
    try:
        if not alive(pid, start):
            return False
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


def _send_by_pid(pid: int, start: int, number: int) -> bool:
    if not alive(pid, start):
        return False
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def _table_of_ps() -> dict[int, Process]:
    import calendar
    import time

    found = {}
    with os.popen("LC_ALL=C ps -axo pid=,ppid=,stat=,lstart=") as listing:
        for line in listing:
            pid, parent, state, *born = line.split()
            if not state.startswith("Z"):
                start = calendar.timegm(time.strptime(" ".join(born), "%a %b %d %H:%M:%S %Y"))
                found[int(pid)] = Process(int(pid), int(parent), start)
    return found
