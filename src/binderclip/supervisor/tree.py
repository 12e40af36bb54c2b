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

    def reap(self) -> None:
        """Collect every dead child; keep the main child's first status."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
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

    def kill(self) -> list[Process]:
        """SIGKILL everything until nothing is left; returns what could not be killed."""
        deadline = time.monotonic() + _KILL_PATIENCE_SEC
        self._kill_at_once()
        stopped: set[tuple[int, int]] = set()
        left = self._rest()
        while left and time.monotonic() < deadline:
            fresh = [p for p in left if (p.pid, p.start) not in stopped]
            for process in fresh:
                # Stopped first, so that none forks away while the others are being killed.
                processes.send(process.pid, process.start, signal.SIGSTOP)
                stopped.add((process.pid, process.start))
            if not fresh:
                for process in left:
                    processes.send(process.pid, process.start, signal.SIGKILL)
                select.select([], [], [], _ROUND_SEC)
            left = self._rest()
        self.reap()
        return left

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
