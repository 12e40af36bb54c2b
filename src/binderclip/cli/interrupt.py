"""Signals of a driving terminal: Ctrl-C cancels, twice kills; being ended leaves the agent be."""

from __future__ import annotations

import getpass
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from binderclip.cli.show import Show
from binderclip.contract.ids import short
from binderclip.runs.execute import cancel

LEAVING = (signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts Ctrl-C and passes it on to the attempt, also to one that starts later."""

    def __init__(self, show: Show) -> None:
        self.show = show
        self.count = 0
        self._told: list[threading.Thread] = []

    def press(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C: the first asks the agent to end, the second kills it, the third leaves."""
        self.count += 1
        if self.count > 2:
            raise KeyboardInterrupt
        # The interrupted code may hold the terminal's lock, so a thread does the talking.
        speaker = threading.Thread(target=self._act, args=(self.count,), daemon=True)
        self._told.append(speaker)
        speaker.start()

    def attempt_began(self) -> None:
        """An attempt exists now; a wish that came before it reaches it."""
        if self.count:
            self._cancel(kill=self.count > 1)

    def wait(self) -> None:
        """Let what is being said be said."""
        for speaker in self._told:
            speaker.join()

    def _act(self, count: int) -> None:
        kill = count > 1
        self._cancel(kill)
        self.show.notice("killing" if kill else "cancelling, Ctrl-C again to kill")

    def _cancel(self, kill: bool) -> None:
        if self.show.attempts:
            cancel(self.show.attempts[-1], by=user_name(), reason="Ctrl-C", kill=kill)


@contextmanager
def interruptible(show: Show) -> Iterator[Interrupts]:
    """Handle signals while a run is driven from this terminal."""
    interrupts = Interrupts(show)
    show.on_attempt = interrupts.attempt_began
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *LEAVING)}
    signal.signal(signal.SIGINT, interrupts.press)
    for number in LEAVING:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: _leave(show, number))
    try:
        yield interrupts
    finally:
        interrupts.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(show: Show, number: int) -> None:
    """End at once, by the same signal; the agent goes on and can be watched."""
    run = short(show.run_id)
    fresh_line = "\r\x1b[2K" if show.terminal.lively else ""
    text = f"{fresh_line}binderclip ends, the agent goes on: binderclip watch {run}\n"
    with suppress(OSError):
        os.write(sys.stderr.fileno(), text.encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def user_name() -> str:
    """Who sits at this terminal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
