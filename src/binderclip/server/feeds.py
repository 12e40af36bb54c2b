"""What viewers of a live run share: one watch on its files, and each batch formatted once.

A viewer holds nothing but its place in the file, so a slow one costs no memory and slows nobody.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from binderclip.contract.run import RunView
from binderclip.server.pages import UNFIT, Seen, seen_lines, shown, whole_lines
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME, UsageSoFar, read_usage
from binderclip.store.transcripts import NAME, read_head
from binderclip.store.watch import Watch, shared

PIECE_BYTES = 128 * 1024


class Place(NamedTuple):
    """Where a viewer is: so many records of this attempt were sent, up to this byte."""

    attempt: int = 1
    records: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Batch:
    """Events in the form in which they go over the wire, and the place behind them."""

    data: bytes
    after: Place


class _File:
    """One attempt's transcript, open for reading; its head tells the parser's version."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.version = ""
        self.begin = 0

    def ready(self) -> bool:
        """Whether the first line is there; records begin behind it."""
        if not self.begin:
            line = whole_lines(self.fd, 0, 4096).partition(b"\n")[0]
            if not line:
                return False
            self.version = UNFIT.sub("", read_head(line, self.path).version)
            self.begin = len(line) + 1
        return True

    def replaced(self) -> bool:
        try:
            return not os.path.samestat(os.fstat(self.fd), self.path.stat())
        except FileNotFoundError:
            return False


class Feed:
    """The files of one run, watched for as long as anybody views it."""

    def __init__(self, home: Home, run_id: str, view: Callable[[str], RunView]) -> None:
        self.home = home
        self.run_id = run_id
        self.viewers: set[asyncio.Event] = set()
        self.generation = 0
        """Grows when another parser's transcript takes the place of one that was sent."""
        self.statuses = 0
        """Grows with each change of the run's state."""
        self.used: UsageSoFar | None = None
        """What a run that goes on has used until now, where its runtime tells that."""
        self._view_of = view
        self.view = view(run_id)
        self.over = False
        self._signs: tuple[object, ...] = ()
        self._files: dict[int, _File] = {}
        self._last: tuple[Place, int, Batch] | None = None
        self._watch: Watch | None = None
        self._watched = -1
        self._woken = False
        self._loop = asyncio.get_running_loop()
        self.look()

    @property
    def silent(self) -> bool:
        """Whether the files have to be looked at, since the system sends no notices."""
        return self._watch is not None and self._watch.silent

    def look(self) -> None:
        """See what changed besides the transcript: attempts, the run's state, its end."""
        self._woken = False
        over = (self.home.run_dir(self.run_id) / OUTCOME).exists()
        attempts = len(self.home.attempts(self.run_id))
        if attempts != self._watched and not over:
            attempts = self._watch_files(attempts)
        if (over, attempts) != self._signs:
            self._signs = (over, attempts)
            self.changed()
        self.over = over
        self.used = None if over else read_usage(self.home, self.run_id)
        for number, file in list(self._files.items()):
            if file.replaced():
                os.close(self._files.pop(number).fd)
                self._last = None
                self.generation += 1

    def changed(self) -> None:
        """The run's state changed: read it again and tell the viewers."""
        self.view = self._view_of(self.run_id)
        self.statuses += 1
        self.wake()

    def wake(self) -> None:
        for viewer in self.viewers:
            viewer.set()

    def version(self, attempt: int) -> str | None:
        """The version of the parser that wrote an attempt's transcript, once that is known."""
        file = self._file(attempt)
        return file.version if file else None

    def batch(self, place: Place) -> Batch | None:
        """The next events behind a place; None when there are none yet."""
        if self._last is not None and self._last[:2] == (place, self.generation):
            return self._last[2]
        batch = self._read(place)
        if batch is not None:
            self._last = (place, self.generation, batch)
        return batch

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        for file in self._files.values():
            os.close(file.fd)
        self._files.clear()

    def _read(self, place: Place) -> Batch | None:
        file = self._file(place.attempt)
        if file is not None:
            offset = max(place.offset, file.begin)
            data = whole_lines(file.fd, offset, PIECE_BYTES)
            if data:
                return _formatted(data, place._replace(offset=offset), file.version)
        following = place.attempt + 1
        if self._file(following) is not None:
            return self._read(Place(following))
        return None

    def _file(self, attempt: int) -> _File | None:
        file = self._files.get(attempt)
        if file is None:
            try:
                path = self.home.attempt_dir(self.run_id, attempt) / NAME
                file = self._files[attempt] = _File(path)
            except FileNotFoundError:
                return None
        return file if file.ready() else None

    def _watch_files(self, attempts: int) -> int:
        """Watch the run's directory and its newest transcript; how many attempts there are then."""
        directory = self.home.run_dir(self.run_id)
        while True:
            there = directory.is_dir()
            self._watch_from(directory, attempts)
            self._watched = attempts if there else -1
            # What came while the watch began has sent no notice.
            found = len(self.home.attempts(self.run_id))
            if (found, directory.is_dir()) == (attempts, there):
                return attempts
            attempts = found

    def _watch_from(self, directory: Path, attempts: int) -> None:
        if self._watch is not None:
            self._watch.close()
        places = (directory, directory.parent, self.home.runs)
        paths = [next(place for place in places if place.is_dir())]
        if attempts:
            paths.append(self.home.attempt_dir(self.run_id, attempts) / NAME)
        self._watch = shared().watch(*paths, heard=self._heard)

    def _heard(self) -> None:
        """In the watcher's thread: many notices become one look."""
        if self._woken:
            return
        self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._look_and_wake)
        except RuntimeError:
            # The server's loop has ended, and its viewers with it.
            self._woken = False

    def _look_and_wake(self) -> None:
        self.look()
        self.wake()


class Feeds:
    """The feeds of all runs that somebody views."""

    def __init__(self, home: Home, view: Callable[[str], RunView]) -> None:
        self._home = home
        self._view = view
        self._open: dict[str, Feed] = {}
        self.closing = False

    def join(self, run_id: str, viewer: asyncio.Event) -> Feed:
        feed = self._open.get(run_id)
        if feed is None:
            feed = self._open[run_id] = Feed(self._home, run_id, self._view)
        feed.viewers.add(viewer)
        return feed

    def leave(self, feed: Feed, viewer: asyncio.Event) -> None:
        feed.viewers.discard(viewer)
        if not feed.viewers:
            self._open.pop(feed.run_id, None)
            feed.close()

    def changed(self, run_id: str) -> None:
        """Tell the viewers of a run that its state is another one."""
        if run_id in self._open:
            self._open[run_id].changed()

    def close(self) -> None:
        """End all streams; viewers come back to the next server by their last id."""
        self.closing = True
        for feed in self._open.values():
            feed.wake()


def event(name: str, id: str, data: bytes) -> bytes:
    """One server-sent event."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), name.encode(), data)


def _formatted(data: bytes, place: Place, version: str) -> Batch:
    number = place.records
    parts: list[bytes] = []
    for line, seen in zip(data.split(b"\n"), seen_lines(data), strict=False):
        if seen is None:
            continue
        number += 1
        id = f"{place.attempt}.{number}.{version}"
        parts.append(event(seen.type, id, _payload(line, seen)))
    return Batch(b"".join(parts), Place(place.attempt, number, place.offset + len(data)))


def _payload(line: bytes, seen: Seen) -> bytes:
    return shown(line, []) if seen.type == "entry" else line
