"""Waiting for files to change, without missing a change between two waits.

One inotify instance serves a process, since a user may have 128 of them; where there is none,
files are looked at every 50 ms. Network file systems send no notices: callers wait with a timeout.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from binderclip.store import inotify

POLL_SEC = 0.05
_ENTRIES = inotify.CREATE | inotify.MOVED_TO | inotify.MOVED_FROM | inotify.DELETE
_GONE = inotify.ATTRIB | inotify.DELETE_SELF | inotify.MOVE_SELF
_APPEARED = inotify.CREATE | inotify.MOVED_TO

_Look: TypeAlias = tuple[tuple[str, int, int, int], ...]


class Watch:
    """Tells whether one of its paths changed; begin to watch, then read, then wait."""

    def __init__(
        self,
        watcher: Watcher,
        paths: Sequence[Path],
        look: bool,
        heard: Callable[[], None] | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self._watcher = watcher
        self._heard = heard
        self._changed = threading.Event()
        self._seen: _Look | None = _look(self.paths) if look else None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def wait(self, timeout: float) -> bool:
        """True at once if something changed since the last wait, else as soon as it does."""
        if self._seen is not None:
            return self._look_until(time.monotonic() + timeout)
        if not self._changed.wait(timeout):
            return False
        # Cleared before the caller reads: a change while it reads ends its next wait.
        self._changed.clear()
        return True

    def notice(self) -> None:
        """End the wait, or the next one."""
        self._changed.set()
        if self._heard is not None:
            self._heard()

    @property
    def silent(self) -> bool:
        """Whether no notices come, so that whoever does not wait has to look."""
        return self._seen is not None

    def look(self) -> None:
        """From now on look at the paths oneself, since no more notices can be had."""
        self._seen = ()

    def close(self) -> None:
        self._watcher.forget(self)

    def _look_until(self, deadline: float) -> bool:
        while not self._changed.is_set():
            look = _look(self.paths)
            if look != self._seen:
                self._seen = look
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(POLL_SEC, left))
        self._changed.clear()
        return True


class _Wish(NamedTuple):
    """What one watch wants to hear about a watched file or directory."""

    watch: Watch
    mask: int
    name: str | None = None
    """Only this entry of a directory, whose file is then watched as well."""


class Watcher:
    """Hands notices to watches; a thread of its own reads them."""

    def __init__(self, notices: bool = True) -> None:
        self._lock = threading.Lock()
        self._wishes: dict[int, list[_Wish]] = {}
        self._places: dict[int, Path] = {}
        self._inotify = _inotify() if notices else None
        self._stop, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        if self._inotify is not None:
            self._thread.start()

    def watch(self, *paths: Path, heard: Callable[[], None] | None = None) -> Watch:
        """Watch directories (entries come, go, are written) and files, which may not exist yet.

        A file that is replaced is watched on under its name. `heard` is called at each notice,
        in the watcher's thread, for those who do not wait.
        """
        if self._inotify is not None:
            watch = Watch(self, paths, look=False, heard=heard)
            try:
                with self._lock:
                    for path in watch.paths:
                        self._begin(watch, path)
                return watch
            except OSError:
                # The user's watches are used up, or a path cannot be watched.
                watch.close()
        return Watch(self, paths, look=True)

    def forget(self, watch: Watch) -> None:
        with self._lock:
            for number in list(self._wishes):
                self._drop(number, [w for w in self._wishes[number] if w.watch is watch])

    def close(self) -> None:
        """End the thread; its watches hear nothing more."""
        os.close(self._stopper)
        if self._inotify is not None:
            self._thread.join()
            self._inotify.close()
        os.close(self._stop)

    def _begin(self, watch: Watch, path: Path) -> None:
        if path.is_dir():
            self._add(path, _Wish(watch, _ENTRIES | inotify.MODIFY | _GONE))
            return
        self._add(path.parent, _Wish(watch, _ENTRIES, path.name))
        self._begin_file(watch, path)

    def _begin_file(self, watch: Watch, path: Path) -> None:
        wish = _Wish(watch, inotify.MODIFY | _GONE)
        try:
            self._add(path, wish)
        except FileNotFoundError:
            return

    def _add(self, path: Path, wish: _Wish) -> None:
        assert self._inotify is not None
        number = self._inotify.add(path, wish.mask)
        self._places[number] = path
        wishes = self._wishes.setdefault(number, [])
        if wish not in wishes:
            wishes.append(wish)

    def _drop(self, number: int, unwanted: list[_Wish]) -> None:
        left = [wish for wish in self._wishes[number] if wish not in unwanted]
        if left:
            self._wishes[number] = left
            return
        del self._wishes[number], self._places[number]
        if self._inotify is not None:
            self._inotify.remove(number)

    def _run(self) -> None:
        assert self._inotify is not None
        poller = select.poll()
        poller.register(self._inotify.fd, select.POLLIN)
        poller.register(self._stop, select.POLLHUP)
        while True:
            if any(fd == self._stop for fd, _ in poller.poll()):
                return
            events = list(self._inotify.read())
            with self._lock:
                for event in events:
                    self._hear(event)

    def _hear(self, event: inotify.Event) -> None:
        if event.mask & inotify.OVERFLOW:
            for wish in [wish for wishes in self._wishes.values() for wish in wishes]:
                wish.watch.notice()
            return
        for wish in list(self._wishes.get(event.number, ())):
            if wish.name is not None and wish.name != event.name:
                continue
            if event.mask & wish.mask:
                self._tell(wish, event)
        if event.mask & inotify.IGNORED:
            self._wishes.pop(event.number, None)
            self._places.pop(event.number, None)

    def _tell(self, wish: _Wish, event: inotify.Event) -> None:
        if wish.name is not None and event.mask & _APPEARED:
            # Watched first and told then: what is written in between is read by whoever was told.
            path = self._places[event.number] / wish.name
            try:
                self._begin_file(wish.watch, path)
            except OSError:
                # No more watches can be had: this one goes on by looking.
                wish.watch.look()
        wish.watch.notice()


_shared: Watcher | None = None
_shared_lock = threading.Lock()


def shared() -> Watcher:
    """The watcher of this process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Watcher()
        return _shared


def _forget_after_fork() -> None:
    # The thread stays with the parent; the child makes its own watcher when it needs one.
    global _shared, _shared_lock
    _shared = None
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


def _inotify() -> inotify.Inotify | None:
    try:
        return inotify.Inotify()
    except OSError:
        return None


def _look(paths: Sequence[Path]) -> _Look:
    found: list[tuple[str, int, int, int]] = []
    for path in paths:
        entries = sorted(path.iterdir()) if path.is_dir() else []
        for each in (path, *entries):
            try:
                stat = each.stat()
            except FileNotFoundError:
                continue
            found.append((str(each), stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)
