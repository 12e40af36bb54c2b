"""A pseudo-terminal with a person in front of it: what is on the screen, and keys to press."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

WAIT_SECONDS = 60
_PIECE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\x1b|\r|\n|[^\x1b\r\n]+")


def screen_of(output: str) -> list[str]:
    """The lines that a terminal shows for this output: carriage returns, erasures, moves up."""
    lines, row, column = [""], 0, 0
    for match in _PIECE.finditer(output):
        text, argument, action = match[0], match[1], match[2]
        if text == "\r":
            column = 0
        elif text == "\n":
            row += 1
            lines.extend([""] * (row + 1 - len(lines)))
            column = 0
        elif action == "K":
            lines[row] = "" if argument == "2" else lines[row][:column]
        elif action == "A":
            row = max(0, row - int(argument or 1))
        elif action == "G":
            column = int(argument or 1) - 1
        elif action is None:
            old = lines[row].ljust(column)
            lines[row] = old[:column] + text + old[column + len(text) :]
            column += len(text)
    return lines


class Person:
    """Runs a program in a terminal, reads it, and presses Ctrl-C."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], columns: int = 100, rows: int = 30
    ) -> None:
        self.output = ""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_SECONDS)
        os.close(self._master)

    def sees(self, pattern: str) -> str:
        """Read until the output holds the pattern; returns all of it."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not re.search(pattern, self.output):
            left = deadline - time.monotonic()
            assert left > 0, f"never saw {pattern!r} in {self.output!r}"
            if not self._read(left):
                raise AssertionError(f"ended without {pattern!r}: {self.output!r}")
        return self.output

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press_ctrl_c(self) -> None:
        self.types("\x03")

    def leaves(self) -> int:
        """Read to the end; the exit code."""
        while self._read(WAIT_SECONDS):
            continue
        return self.process.wait(WAIT_SECONDS)

    @property
    def screen(self) -> list[str]:
        return screen_of(self.output.replace("\r\n", "\n"))

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            raise AssertionError(f"silence after {self.output!r}")
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.output += data.decode("utf-8", "replace")
        return bool(data)
