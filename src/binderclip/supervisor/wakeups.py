"""What ends a supervisor's sleep: signals, changed files, readable FIFOs, the end of a process."""

from __future__ import annotations

import math
import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_LONGEST_MS = 60_000
_HEARD = (signal.SIGCHLD, signal.SIGCONT, signal.SIGTERM, signal.SIGINT)


class Wakeups:
    """One poll over everything; signals arrive as bytes in a pipe, so none is ever missed."""

    def __init__(self) -> None:
        self._signals, self._writer = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in _HEARD:
            signal.signal(number, _note)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._poller = select.poll()
        self._poller.register(self._signals, select.POLLIN)
        self._only_signals = select.poll()
        self._only_signals.register(self._signals, select.POLLIN)
        self._watched: set[int] = set()

    def watch(self, fd: int | None, wanted: bool = True) -> None:
        """Listen to a descriptor, or no longer."""
        if fd is None or wanted == (fd in self._watched):
            return
        if wanted:
            self._poller.register(fd, select.POLLIN)
            self._watched.add(fd)
        else:
            self._poller.unregister(fd)
            self._watched.discard(fd)

    def wait(self, seconds: float, only_signals: bool = False) -> set[int]:
        """Sleep until something happens or the time is up; the signals that came."""
        poller = self._only_signals if only_signals else self._poller
        poller.poll(min(_LONGEST_MS, max(0, math.ceil(seconds * 1000))))
        try:
            return set(os.read(self._signals, 1 << 16))
        except BlockingIOError:
            return set()


def _note(_number: int, _frame: FrameType | None) -> None:
    """The wake-up pipe already has the number; a handler must exist for it to be written."""
