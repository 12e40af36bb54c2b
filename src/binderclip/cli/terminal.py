"""The terminal, or the pipe instead of one: whole writes, a status line that leaves no trace.

A reader that goes away (`| head`) silences it; whoever writes to it never notices.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

from binderclip.cli.layout import clipped

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_SECONDS = 0.1
QUIET_SECONDS = 0.4
"""How long nothing must be printed before the status line appears."""
DEFAULT_WIDTH = 80


def wants_colour(tty: bool) -> bool:
    """Colours on a terminal, unless NO_COLOR or a dumb terminal says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    return tty and os.environ.get("TERM") != "dumb"


class Terminal:
    """One output stream of this process."""

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stdout
        # Anything already buffered belongs before what is written past the buffer.
        stream.flush()
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self.tty = stream.isatty()
        self.colour = wants_colour(self.tty)
        self.lively = self.tty and os.environ.get("TERM") != "dumb"
        self.gone = False
        self._lock = threading.RLock()
        self._status = ""
        self._column = 0
        self._last_write = time.monotonic()

    @property
    def width(self) -> int | None:
        """The columns of the terminal now; None where there is no terminal."""
        if not self.tty:
            return None
        told = os.environ.get("COLUMNS", "")
        if told.isdigit() and int(told) > 0:
            return int(told)
        try:
            return os.get_terminal_size(self._fd).columns or DEFAULT_WIDTH
        except OSError:
            return DEFAULT_WIDTH

    def write(self, text: str, column: int = 0) -> None:
        """Print text, of which the cursor ends in `column`; the status line gives way."""
        if not text:
            return
        with self._lock:
            self._send(self._erasure() + text)
            self._status = ""
            self._column = column
            self._last_write = time.monotonic()

    def write_bytes(self, data: bytes) -> None:
        """Print exact bytes."""
        with self._lock:
            self._send_bytes(data)

    def status(self, text: str) -> None:
        """Draw the status line below what was printed, if it has been quiet for a moment."""
        with self._lock:
            if time.monotonic() - self._last_write < QUIET_SECONDS or not self.lively:
                return
            shown = clipped(text, (self.width or DEFAULT_WIDTH) - 1)
            below = "\n" if self._column and not self._status else ""
            clear = "\r\x1b[2K" if self._status else ""
            self._send(f"{below}{clear}\x1b[2m{shown}\x1b[0m" if self.colour else clear + shown)
            self._status = shown

    def erase_status(self) -> None:
        """Take the status line away and put the cursor back."""
        with self._lock:
            if self._status:
                self._send(self._erasure())
                self._status = ""

    def _erasure(self) -> str:
        if not self._status:
            return ""
        back = f"\x1b[A\x1b[{self._column + 1}G" if self._column else ""
        return "\r\x1b[2K" + back

    def _send(self, text: str) -> None:
        self._send_bytes(text.encode(self._encoding, "backslashreplace"))

    def _send_bytes(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self.gone:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                select.select([], [self._fd], [])
            except OSError:
                self.gone = True


class Ticker:
    """Redraws the status line while a block lasts; does nothing without a terminal."""

    def __init__(self, terminal: Terminal, text: Callable[[], str]) -> None:
        self._terminal = terminal
        self._text = text
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="status line", daemon=True)

    def __enter__(self) -> Ticker:
        if self._terminal.lively:
            self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        self._terminal.erase_status()

    def _tick(self) -> None:
        turn = 0
        while not self._done.wait(TICK_SECONDS):
            text = self._text()
            if text:
                self._terminal.status(f"{SPINNER[turn % len(SPINNER)]} {text}")
            turn += 1
