"""When an attempt has had enough: wall clock, silence, log size, disk."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from binderclip.supervisor.capture import Capture, LogRoom

_DEFAULT_DISK_WAIT_SEC = 600


class Limits:
    """The limits of one attempt, counted from `started` on the monotonic clock; 0 is no limit."""

    def __init__(self, document: Mapping[str, float], started: float) -> None:
        self.grace = document.get("graceSec", 0)
        self.last_output = time.monotonic()
        self._wall = document.get("timeoutSec", 0)
        self._idle = document.get("idleTimeoutSec", 0)
        self._reserve = document.get("diskReserveBytes", 0)
        self._disk_wait = document.get("diskWaitSec", _DEFAULT_DISK_WAIT_SEC)
        self._started = started
        self._seen = -1

    def next_deadline(self) -> float:
        """The earliest moment at which time alone can break a limit."""
        deadlines = [float("inf")]
        if self._wall:
            deadlines.append(self._started + self._wall)
        if self._idle:
            deadlines.append(self.last_output + self._idle)
        return min(deadlines)

    def broken(self, captures: list[Capture], room: LogRoom) -> str | None:
        """The reason to stop now, if there is one."""
        now = time.monotonic()
        stalled = any(capture.stalled_since is not None for capture in captures)
        seen = sum(capture.seen for capture in captures)
        # Whoever waits for disk space is not idle.
        if seen != self._seen or stalled:
            self._seen = seen
            self.last_output = now
        if self._wall and now >= self._started + self._wall:
            return "timeout"
        if self._idle and now >= self.last_output + self._idle:
            return "idle_timeout"
        if room.exceeded():
            return "output_limit"
        return "disk_full" if self.disk_wait_is_over(captures) else None

    def disk_wait_is_over(self, captures: list[Capture]) -> bool:
        """Whether a stream has waited for space as long as it may."""
        stalls = [c.stalled_since for c in captures if c.stalled_since is not None]
        return bool(stalls) and time.monotonic() >= min(stalls) + self._disk_wait

    def disk_is_low(self, attempt_dir: str) -> bool:
        """Whether less than the reserve is free where the logs are."""
        if not self._reserve:
            return False
        disk = os.statvfs(attempt_dir)
        return disk.f_bavail * disk.f_frsize < self._reserve
