"""The process tree of one attempt: who belongs to it, how it ended, how to end it.

There is one reaper, and of the main child the first status counts: its pid may come back.
"""

from __future__ import annotations

import os
import select
import signal
import time

from binderclip.supervisor import processes
from binderclip.supervisor.processes import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from binderclip.supervisor.cgroup import Cgroup

_KILL_PATIENCE_SEC = 30.0
_ROUND_SEC = 0.01
_CHASE_SEC = 0.02


class Tree:
    """The main child and everything that came from it."""

    def __init__(self, marker: str, cgroup: Cgroup | None, driver: int) -> None:
        self.main: Process | None = None
        self.status: int | None = None
        self.is_parent = False
        self.cgroup = cgroup
        self._marker = marker
        above = processes.lineage(os.getpid()) + processes.lineage(driver)
        self._protected = {(p.pid, p.start) for p in above}

    def own(self, pid: int) -> None:
        """The main child is our own."""
        self.main = processes.look(pid) or Process(pid, os.getpid(), 0)
        self.is_parent = True

    def main_gone(self) -> bool:
        """Whether the main child has ended."""
        if self.main is None:
            return True
        if self.is_parent:
            return self.status is not None
        return not processes.alive(self.main.pid, self.main.start)

    def reap(self) -> bool:
        """Collect every dead child, keep the main child's first status; whether others live."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if self.is_parent and self.main and pid == self.main.pid and self.status is None:
                self.status = status

    def members(self) -> list[Process]:
        """Everybody alive who belongs to the attempt, the main child included."""
        everybody = processes.table()
        found = {p.pid: p for p in self._family(everybody)}
        found.update((p.pid, p) for p in processes.carrying(everybody, self._marker))
        return [p for p in found.values() if (p.pid, p.start) not in self._protected]

    def terminate(self) -> None:
        """SIGTERM to the main child's group, which is also continued if it was stopped."""
        if self.main is None or self.main_gone():
            return
        for number in (signal.SIGTERM, signal.SIGCONT):
            try:
                os.killpg(self.main.pid, number)
            except OSError:
                processes.send(self.main.pid, self.main.start, number)

    def is_empty(self) -> bool:
        """Whether nobody is left for sure, which no look at /proc alone can tell.

        While it is read, a process may fork a child too late to be listed and exit before it is
        looked at. But orphans become our children, so without children there is no tree; in an
        adopted tree they do not, and only a closer look at newborn processes remains.
        """
        return not self.reap() and (self.is_parent or not self._chase(set()))

    def kill(self) -> list[Process]:
        """SIGKILL everything until nothing is left; returns what could not be killed."""
        deadline = time.monotonic() + _KILL_PATIENCE_SEC
        self._kill_at_once()
        stopped: set[tuple[int, int]] = set()
        left = self._rest()
        while (left or not self.is_empty()) and time.monotonic() < deadline:
            fresh = [p for p in left if (p.pid, p.start) not in stopped]
            for process in fresh:
                # Stopped first, so that none forks away while the others are being killed.
                processes.send(process.pid, process.start, signal.SIGSTOP)
                stopped.add((process.pid, process.start))
            if left and not fresh:
                for process in left:
                    processes.send(process.pid, process.start, signal.SIGKILL)
                select.select([], [], [], _ROUND_SEC)
            else:
                self._chase({process.pid for process in left})
            left = self._rest()
        return left

    def _chase(self, family: set[int]) -> bool:
        """Stop newborn members at once; whether there were any.

        One that forks and exits quickly is gone before all of /proc has been read, but not before
        the few pids given out since the last look have been.
        """
        end = time.monotonic() + _CHASE_SEC
        known = len(family)
        last = processes.newest_pid()
        while time.monotonic() < end:
            newest = processes.newest_pid()
            for pid in range(last + 1, newest + 1):
                process = processes.look(pid)
                if process is not None and self._is_newborn(process, family):
                    processes.send(pid, process.start, signal.SIGSTOP)
                    family.add(pid)
            last = newest
        return len(family) > known

    def _is_newborn(self, process: Process, family: set[int]) -> bool:
        if (process.pid, process.start) in self._protected:
            return False
        if process.parent == os.getpid() or process.parent in family:
            return True
        marker = os.fsencode(self._marker)
        return bool(marker) and marker in processes.environment(process.pid)

    def _kill_at_once(self) -> None:
        if self.cgroup is not None:
            self.cgroup.kill()
        if self.main is not None and not self.main_gone():
            try:
                os.killpg(self.main.pid, signal.SIGKILL)
            except OSError:
                return

    def _rest(self) -> list[Process]:
        self.reap()
        everybody = processes.table()
        family = self._family(everybody)
        family = [p for p in family if (p.pid, p.start) not in self._protected]
        # Reading every environment is dear while a fork bomb goes on: only when all else is dead.
        return family or self.members()

    def _family(self, everybody: dict[int, Process]) -> list[Process]:
        roots = {os.getpid()}
        found = []
        main = self.main and everybody.get(self.main.pid)
        if main and self.main and main.start == self.main.start:
            roots.add(main.pid)
            found.append(main)
        found.extend(processes.descendants(everybody, roots))
        if self.cgroup is not None:
            found.extend(everybody[pid] for pid in self.cgroup.members() if pid in everybody)
        return found
