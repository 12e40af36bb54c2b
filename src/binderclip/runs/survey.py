"""Runs that need somebody: found by their rows, their files and their free locks (D1).

Nothing is decided by time: a run is abandoned when nobody holds its driver lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select

from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import FULL_ID, floor_id, time_of
from binderclip.store import rebuild, runs
from binderclip.store.database import Database
from binderclip.store.fileview import is_driven
from binderclip.store.runfile import ORDER, OUTCOME
from binderclip.store.tables import runs as table
from binderclip.supervisor.launch import read_exit

Need = Literal["settle", "start", "take_over"]
_AT_ONCE = 500
_OVERLAP_SEC = 60.0


@dataclass(frozen=True)
class Found:
    """A run and what it needs."""

    run_id: str
    need: Need


class Survey:
    """Looks for runs again and again, cheaply when nothing has changed."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._store = runs.RunStore(db)
        self._months: dict[str, int] = {}
        self._newest = ""

    def look(self, carried: set[str]) -> list[Found]:
        """What needs somebody now."""
        self._take_in_new()
        needs = []
        for run_id in self._store.unfinished():
            if run_id not in carried:
                needs += self._judge(run_id)
        return needs

    def _judge(self, run_id: str) -> list[Found]:
        home = self._db.home
        directory = home.run_dir(run_id)
        if (directory / OUTCOME).exists():
            return [Found(run_id, "settle")]
        with self._db.reading() as connection:
            row = runs.find(connection, run_id)
        if row is None or (row["status"] == "queued" and row["scheduled"]):
            return []
        if is_driven(home, run_id):
            return []
        if row["scheduled"] and not home.attempts(run_id):
            # It was let in and nothing ran, so it can start as if for the first time.
            return [Found(run_id, "start")]
        return [Found(run_id, "take_over")] if (directory / ORDER).exists() else []

    def _take_in_new(self) -> None:
        """Make rows for runs that others began: `binderclip run`, or a server of earlier days."""
        for run_id in reversed(list(self._unknown())):
            if (self._db.home.run_dir(run_id) / ORDER).exists():
                try:
                    rebuild.take_in(self._db.home, self._store, run_id)
                except BinderclipError as problem:
                    rebuild.warn(run_id, problem)

    def _unknown(self) -> Iterator[str]:
        """Ids of run directories without a row, newest first.

        At first every month is looked at until one holds nothing new; later only new ids.
        """
        home = self._db.home
        first = not self._months
        months = sorted((p for p in home.runs.iterdir() if p.is_dir()), reverse=True)
        for month in months if first else months[:2]:
            changed = month.stat().st_mtime_ns
            if self._months.get(month.name) == changed:
                continue
            names = [p.name for p in month.iterdir() if first or p.name > self._newest]
            ids = sorted(filter(FULL_ID.fullmatch, names), reverse=True)
            found = self._without_row(ids)
            self._months[month.name] = changed
            self._remember(ids)
            yield from found
            if first and not found:
                break

    def _remember(self, ids: list[str]) -> None:
        if ids:
            # Ids of one moment are made by many processes: look a little further back.
            newest = floor_id(max(0.0, time_of(ids[0]) - _OVERLAP_SEC))
            self._newest = max(self._newest, newest)

    def _without_row(self, ids: list[str]) -> list[str]:
        known: set[str] = set()
        with self._db.reading() as connection:
            for start in range(0, len(ids), _AT_ONCE):
                part = ids[start : start + _AT_ONCE]
                known.update(connection.scalars(select(table.c.id).where(table.c.id.in_(part))))
        return [id for id in ids if id not in known]


def never_ran(db: Database, run_id: str) -> bool:
    """Whether the agent of an ended run was never started, so that starting it doubles nothing."""
    numbers = db.home.attempts(run_id)
    if not numbers:
        return True
    exits = [read_exit(str(db.home.attempt_dir(run_id, number))) for number in numbers]
    return all(
        exit is not None
        and exit.reason == "aborted"
        and exit.started_at is None
        and exit.stdout_bytes + exit.stderr_bytes == 0
        for exit in exits
    )
