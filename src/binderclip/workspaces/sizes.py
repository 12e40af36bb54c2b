"""How much space workspaces take, known without keeping anybody waiting.

One thread counts, one workspace at a time; whoever asks gets what is known after a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from binderclip.workspaces.cleaning import disk_use

WAIT_SECONDS = 1.0
KEPT_SECONDS = 300.0


class Place(NamedTuple):
    """A directory and the time of its last use: used again, it is counted again."""

    folder: Path
    used_at: str


class _Known(NamedTuple):
    size: int
    place: Place
    counted: float


class Sizes:
    """Sizes that are kept for a while; an old one is told until the new one is there."""

    def __init__(
        self,
        clock: Callable[[], float],
        measure: Callable[[Path], int] = disk_use,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self._clock = clock
        self._measure = measure
        self._wait = wait
        self._counted = threading.Condition()
        self._known: dict[str, _Known] = {}
        self._queue: dict[str, Place] = {}
        self._counting: str | None = None

    def of(self, places: Mapping[str, Place]) -> dict[str, int | None]:
        """The sizes by id; None for what could not be counted in time."""
        with self._counted:
            missing = {key: place for key, place in places.items() if self._is_old(key, place)}
            self._enqueue(missing)
            self._counted.wait_for(lambda: not self._pending(missing), self._wait)
            found = {key: self._known.get(key) for key in places}
        return {key: known.size if known else None for key, known in found.items()}

    def _enqueue(self, missing: Mapping[str, Place]) -> None:
        """What was asked for last comes first."""
        idle = self._counting is None and not self._queue
        fresh = {key: place for key, place in missing.items() if key != self._counting}
        self._queue = fresh | {k: place for k, place in self._queue.items() if k not in fresh}
        if idle and self._queue:
            threading.Thread(target=self._work, name="sizes of workspaces", daemon=True).start()

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            key, place = taken
            size = self._measure(place.folder)
            with self._counted:
                self._known[key] = _Known(size, place, self._clock())

    def _next(self) -> tuple[str, Place] | None:
        with self._counted:
            self._counting = next(iter(self._queue), None)
            self._counted.notify_all()
            if self._counting is None:
                return None
            return self._counting, self._queue.pop(self._counting)

    def _pending(self, keys: Mapping[str, Place]) -> bool:
        return any(key in self._queue or key == self._counting for key in keys)

    def _is_old(self, key: str, place: Place) -> bool:
        known = self._known.get(key)
        if known is None or known.place != place:
            return True
        return self._clock() - known.counted > KEPT_SECONDS
