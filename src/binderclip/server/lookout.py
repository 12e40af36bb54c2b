"""Sees which runs changed their state, whoever drives them, and tells those who look at lists.

Rows are read, not notices kept: so nothing is missed, and it costs next to nothing when idle.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from sqlalchemy import or_, select

from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import floor_id
from binderclip.jobs.store import JobStore
from binderclip.store.database import Database
from binderclip.store.tables import runs

WATCHED_SECONDS = 0.25
UNWATCHED_SECONDS = 5.0
LATE_SECONDS = 60.0
"""How much later than its id a run may get its row and still be noticed if it is over by then."""
_OPEN = ("queued", "starting", "running", "finalizing")
_States = dict[str, tuple[str, str | None]]
_log = logging.getLogger(__name__)


class Lookout:
    """A thread that compares the open and the new runs with those of the last look.

    What is over goes to a second one, since keeping a long run takes longer than lists may wait.
    """

    def __init__(
        self,
        db: Database,
        jobs: JobStore,
        changed: Callable[[str], None],
        watched: Callable[[], bool],
        shelve: Callable[[str], None],
    ) -> None:
        self._db = db
        self._jobs = jobs
        self._changed = changed
        self._watched = watched
        self._shelve = shelve
        self._seen: _States = {}
        self._since = floor_id(time.time() - LATE_SECONDS)
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        self._over: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name="lookout", daemon=True),
            threading.Thread(target=self._keep, name="keeping", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()
        self._over.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def look_soon(self) -> None:
        """Somebody did something that may have changed a run."""
        self._wanted.set()

    def _run(self) -> None:
        self._look()
        while not self._stopping.is_set():
            self._wanted.wait(WATCHED_SECONDS if self._watched() else UNWATCHED_SECONDS)
            self._wanted.clear()
            self._look()

    def _look(self) -> None:
        since = floor_id(time.time() - LATE_SECONDS)
        try:
            found = self._read()
        except BinderclipError as problem:
            _log.warning("the states of runs cannot be read: %s", problem)
            return
        before, self._seen, self._since = self._seen, found, since
        changed = {run_id for run_id, state in found.items() if before.get(run_id) != state}
        gone = {run_id for run_id in before.keys() - found.keys() if _is_open(before[run_id])}
        for run_id in sorted(changed | gone):
            self._changed(run_id)
            if run_id in gone or not _is_open(found[run_id]):
                self._over.put(run_id)

    def _read(self) -> _States:
        """Open runs; and new ones, since a quick run may be over before it was ever seen open."""
        query = select(runs.c.id, runs.c.status, runs.c.waiting_for)
        wanted = (runs.c.status.in_(_OPEN), runs.c.id >= self._since)
        with self._db.reading() as connection:
            rows = connection.execute(query.where(or_(*wanted)))
            return {id: (status, waiting) for id, status, waiting in rows}

    def _keep(self) -> None:
        self._jobs.catch_up(_warn)
        while not self._stopping.is_set():
            run_id = self._over.get()
            if run_id is not None:
                self._keep_run(run_id)

    def _keep_run(self, run_id: str) -> None:
        """Index a run that is over, for its first viewer, and keep it as a job (N4)."""
        try:
            self._shelve(run_id)
            self._jobs.record(run_id)
        except (BinderclipError, OSError, ValueError) as problem:
            _warn(run_id, problem)


def _is_open(state: tuple[str, str | None]) -> bool:
    return state[0] in _OPEN


def _warn(run_id: str, problem: Exception) -> None:
    _log.info("run %s is not kept as a job: %s", run_id, problem)
