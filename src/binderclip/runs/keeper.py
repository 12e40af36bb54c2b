"""Keeping the rows of a run while it is driven: states as they happen, its budget, its cancel.

The files stay the truth: a row that cannot be written is logged and written again by recovery.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from binderclip.contract.errors import StoreError
from binderclip.contract.run import TERMINAL_STATES, StateChange, Usage
from binderclip.contract.wire import from_json
from binderclip.runs.budget import RunBudget
from binderclip.runs.driver import Listener
from binderclip.runs.execute import cancel
from binderclip.runs.finalize import BUDGET
from binderclip.store import runs
from binderclip.store.database import Database
from binderclip.supervisor.launch import read_meta

_log = logging.getLogger(__name__)


class Keeper(Listener):
    """Writes what happens to one run into the database."""

    def __init__(
        self,
        db: Database,
        run_id: str,
        *,
        budget: RunBudget | None = None,
        leaving: Callable[[], bool] = lambda: False,
        ends_at_once: bool = False,
    ) -> None:
        self._db = db
        self._run_id = run_id
        self._budget = budget
        self._leaving = leaving
        self._silent = {*TERMINAL_STATES, "finalizing"} if ends_at_once else TERMINAL_STATES
        """States that are written with everything else that the end brings."""
        self._attempt: Path | None = None
        self._stopped = False
        self._entered: StateChange | None = None

    def state(self, change: StateChange) -> None:
        if change.state == "running":
            # Written together with the attempt that is told next.
            self._entered = change
        elif change.state not in self._silent:
            with self._written(change.state) as connection:
                runs.enter(connection, self._run_id, change)

    def attempt(self, directory: Path) -> None:
        self._attempt = directory
        meta = read_meta(str(directory)) or {}
        started = meta.get("startedAt")
        if self._budget is not None:
            self._budget.begin(started)
        number = int(directory.name.removeprefix("attempt-"))
        pid = (meta.get("child") or {}).get("pid")
        with self._written(f"attempt {number}") as connection:
            row = runs.begin_attempt(connection, self._run_id, number, started, pid, self._entered)
            if row["cancel"]:
                # A wish to cancel may be older than the process that it is meant for.
                wish = from_json(row["cancel"], dict[str, str])
                cancel(directory, wish["by"], wish["reason"])

    def usage(self, usage: Usage | None, cost_usd: float | None) -> None:
        if self._budget is None or self._attempt is None or self._stopped:
            return
        line = self._budget.crossed(usage, cost_usd)
        if line is not None:
            self._stopped = True
            cancel(self._attempt, BUDGET, f"Stopped by {line}.")

    def stays(self) -> bool:
        return not self._leaving()

    def notice(self, text: str) -> None:
        _log.info("run %s: %s", self._run_id, text)

    @contextmanager
    def _written(self, what: str) -> Iterator[Connection]:
        try:
            with self._db.writing() as connection:
                yield connection
        except StoreError as problem:
            _log.warning("%s of run %s is not in the database: %s", what, self._run_id, problem)
