"""Rows from files: a lost database is made again from the directories of the runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeAlias

from binderclip.contract.errors import BinderclipError
from binderclip.contract.run import StateChange
from binderclip.store.home import Home
from binderclip.store.runfile import read_order, read_outcome
from binderclip.store.runs import RunStore
from binderclip.supervisor.documents import EXIT, META, read_document
from binderclip.supervisor.launch import ExitRecord

_log = logging.getLogger(__name__)
_Report: TypeAlias = Callable[[str, Exception], None]
# A document may be no JSON, another shape, or unreadable.
_DAMAGE = (BinderclipError, OSError, ValueError, LookupError, TypeError, AttributeError)


def warn(run_id: str, problem: Exception) -> None:
    _log.warning("the files of run %s: %s", run_id, problem)


def rebuild(home: Home, store: RunStore, report: _Report = warn) -> int:
    """Add what the run directories tell and the database lacks; the number of runs taken in.

    What cannot be read is reported: a run without a readable order or outcome is left out, an
    attempt is left out of its run. Doing it again changes nothing.
    """
    return _take_all(home, store, home.run_ids(), report)


def catch_up(home: Home, store: RunStore, report: _Report = warn) -> int:
    """Like `rebuild`, for the runs that are not finished in the database only."""
    known = store.finished()
    return _take_all(home, store, (id for id in home.run_ids() if id not in known), report)


def take_in(home: Home, store: RunStore, run_id: str, report: _Report = warn) -> None:
    """Make the rows of one run that has files; its end is left to whoever finishes it."""
    _take_in(home, store, run_id, report)


def _take_all(home: Home, store: RunStore, newest_first: Iterable[str], report: _Report) -> int:
    taken = 0
    endings: list[tuple[str, str]] = []
    for run_id in reversed(list(newest_first)):
        try:
            endings.extend(_take_in(home, store, run_id, report))
            taken += 1
        except _DAMAGE as problem:
            report(run_id, problem)
    # A session is what the run that ended last left of it, not the one that began last.
    for _, run_id in sorted(endings):
        try:
            _finish(home, store, run_id)
        except _DAMAGE as problem:
            report(run_id, problem)
    return taken


def _take_in(home: Home, store: RunStore, run_id: str, report: _Report) -> list[tuple[str, str]]:
    """Make the rows of a run and its attempts; when and which run ended, if it did."""
    order = read_order(home, run_id)
    outcome = read_outcome(home, run_id)
    # A run of the control plane is past its queue once it has files.
    store.create(order, "starting" if order.scheduled else "queued")
    for attempt in home.attempts(run_id):
        try:
            _take_attempt(home, store, run_id, attempt)
        except _DAMAGE as problem:
            report(run_id, problem)
    if outcome is None:
        _show_as_running(store, run_id)
        return []
    return [(outcome.ended_at, run_id)]


def _finish(home: Home, store: RunStore, run_id: str) -> None:
    outcome = read_outcome(home, run_id)
    if outcome is not None:
        store.finish(run_id, outcome)


def _take_attempt(home: Home, store: RunStore, run_id: str, attempt: int) -> None:
    directory = str(home.attempt_dir(run_id, attempt))
    meta = read_document(directory, META)
    if meta is None:
        return
    child = meta.get("child") or {}
    store.begin_attempt(run_id, attempt, meta.get("startedAt"), child.get("pid"))
    exit = read_document(directory, EXIT)
    if exit is not None:
        store.end_attempt(run_id, attempt, ExitRecord.from_json(exit))


def _show_as_running(store: RunStore, run_id: str) -> None:
    """A run that has begun and not ended belongs to recovery, which looks for running ones."""
    view = store.get(run_id)
    if view.status == "queued" and view.started_at is not None:
        change = StateChange(
            state="running", at=view.started_at, reason="read from its files", actor="system"
        )
        store.change_state(run_id, change)
