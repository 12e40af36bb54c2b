"""Lines as they were printed, page by page, for parsers that run in the browser (D3).

Reading goes on where the page before ended; any other page is found by reading from the start.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

from binderclip.contract.entry import Stream
from binderclip.contract.wire import Wire
from binderclip.sdk.lines import Line
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME
from binderclip.store.runlog import AttemptLog, LineReader
from binderclip.supervisor.launch import read_exit

MOST_OPEN = 16


class PrintedLine(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A line: its number in the run, when it was complete, where it came from."""

    n: int
    ts: str
    stream: Stream
    text: str
    attempt: int
    offset: int
    bytes: int | None = None
    """The size of a line that was too long for a parser, and was cut."""


class LinePage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Lines by number; `next` is the number behind them."""

    lines: tuple[PrintedLine, ...]
    next: int
    complete: bool
    """Whether the run is over and these were its last lines."""


class LineCursor:
    """Goes through the lines of a run, attempt by attempt, and waits at its end."""

    def __init__(self, home: Home, run_id: str) -> None:
        self.home = home
        self.run_id = run_id
        self.next = 0
        self.over = False
        self._attempt = 0
        self._log: AttemptLog | None = None
        self._reader: LineReader | None = None
        self._ended = True
        self._left: Iterator[tuple[Stream, Line, str]] = iter(())

    def read(self, limit: int) -> list[PrintedLine]:
        """The next lines that are complete by now."""
        found: list[PrintedLine] = []
        while len(found) < limit:
            for stream, line, ts in islice(self._left, limit - len(found)):
                found.append(
                    PrintedLine(
                        n=self.next,
                        ts=ts,
                        stream=stream,
                        text=line.text,
                        attempt=self._attempt,
                        offset=line.offset,
                        bytes=line.size if line.cut else None,
                    )
                )
                self.next += 1
            if len(found) < limit and not self._more():
                break
        return found

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _more(self) -> bool:
        """Look for further lines, in this attempt or in the next one; false if there are none."""
        if self._reader is None or self._ended:
            return self._following()
        # Asked before reading: an attempt that has ended has its whole log on disk.
        directory = str(self.home.attempt_dir(self.run_id, self._attempt))
        self._ended = read_exit(directory) is not None
        first = next(source := self._reader.finish() if self._ended else self._reader.poll(), None)
        if first is None:
            return self._ended
        self._left = _with(first, source)
        return True

    def _following(self) -> bool:
        over = (self.home.run_dir(self.run_id) / OUTCOME).exists()
        if self._attempt + 1 not in self.home.attempts(self.run_id):
            self.over = over
            return False
        self.close()
        self._attempt += 1
        self._log = AttemptLog(self.home.attempt_dir(self.run_id, self._attempt))
        self._reader, self._ended = LineReader(self._log), False
        return True


class PrintedLines:
    """The cursors that were used last."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._idle: OrderedDict[tuple[str, int], LineCursor] = OrderedDict()

    def page(self, run_id: str, first: int, limit: int) -> LinePage:
        with self._lock:
            cursor = self._idle.pop((run_id, first), None)
        cursor = cursor or LineCursor(self._home, run_id)
        while cursor.next < first and cursor.read(min(1000, first - cursor.next)):
            continue
        found = cursor.read(limit)
        complete = len(found) < limit and cursor.over
        page = LinePage(lines=tuple(found), next=cursor.next, complete=complete)
        self._keep(cursor)
        return page

    def close(self) -> None:
        with self._lock:
            for cursor in self._idle.values():
                cursor.close()
            self._idle.clear()

    def _keep(self, cursor: LineCursor) -> None:
        with self._lock:
            replaced = self._idle.pop((cursor.run_id, cursor.next), None)
            self._idle[(cursor.run_id, cursor.next)] = cursor
            oldest = self._idle.popitem(last=False)[1] if len(self._idle) > MOST_OPEN else None
        for unwanted in (replaced, oldest):
            if unwanted is not None:
                unwanted.close()


def _with(
    first: tuple[Stream, Line, str], rest: Iterator[tuple[Stream, Line, str]]
) -> Iterator[tuple[Stream, Line, str]]:
    yield first
    yield from rest
