"""Runs that have not begun: found in the database, waited for until their files are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from binderclip.cli.asking import LOCK
from binderclip.cli.show import Show
from binderclip.cli.waiting import tell, waiting
from binderclip.contract.errors import RunNotFound
from binderclip.contract.run import TERMINAL_STATES, RunView, StateChange
from binderclip.store.database import Database
from binderclip.store.home import SHORTEST_SUFFIX, Home
from binderclip.store.runfile import ORDER
from binderclip.store.runs import RunStore
from binderclip.store.watch import shared
from binderclip.supervisor import locks

LOOK_SECONDS = 1.0
"""What a run waits for stands in the database only, which tells nobody that it changed."""


def find_queued(home: Home, named: str | None) -> str | None:
    """The run that waits to begin under this id or end of one, or the newest of them."""
    wanted = (named or "").strip().lower()
    if named and len(wanted) < SHORTEST_SUFFIX:
        return None
    with _runs(home) as runs:
        found = [id for id in runs.unfinished() if id.endswith(wanted)] if runs else []
    if named and len(found) > 1:
        message = f"{len(found)} runs that wait have an id that ends in {wanted!r}."
        raise RunNotFound(message, hint="Give more of its last letters.")
    return found[-1] if found else None


def queued_views(home: Home, *, limit: int, adapter: str | None = None) -> list[RunView]:
    """The newest runs that wait to begin; one whose files are there has begun by now."""
    with _runs(home) as runs:
        found = runs.list(limit, status="queued", adapter_type=adapter) if runs else []
    return [view for view in found if not (home.run_dir(view.id) / ORDER).exists()]


def queued_run(home: Home, run_id: str) -> tuple[RunView, list[StateChange]]:
    """A run that has no files yet, with what it waits for, and its history."""
    with _runs(home) as runs:
        if runs is None:
            raise RunNotFound(f"There is no run {run_id}.")
        view, changes = runs.get(run_id), runs.history(run_id)
    if view.status == "queued":
        view = replace(view, waiting_for=waits(home, view).removeprefix("waits "))
    return view, changes


def await_start(home: Home, run_id: str, show: Show) -> RunView | None:
    """Wait until a run begins, telling what for; its view if it was over before it began."""
    begun, told = home.run_dir(run_id) / ORDER, ""
    with _runs(home) as runs:
        while runs is not None and not begun.exists():
            with shared().watch(_nearest(begun)) as watch:
                view = runs.get(run_id)
                # Asked in this order: whoever ends a run that never began leaves its files first.
                if view.status in TERMINAL_STATES and not begun.exists():
                    return view
                why = waits(home, view)
                if why != told:
                    told = why
                    tell(show, view, why)
                if not begun.exists():
                    watch.wait(LOOK_SECONDS)
    return None


def waits(home: Home, view: RunView) -> str:
    """Why a run has not begun, in words."""
    if not locks.held(str(home.path / LOCK)):
        return "waits for a worker; start one by `binderclip up` or `binderclip worker`"
    return waiting(view)


def _nearest(path: Path) -> Path:
    """What can be watched for a file to come: itself, or the first directory above it."""
    return next((above for above in path.parents if above.is_dir()), path)


@contextmanager
def _runs(home: Home) -> Iterator[RunStore | None]:
    """The runs of the database; none where there never was one."""
    path = home.sqlite
    if path is not None and not path.exists():
        yield None
        return
    with Database.open(home) as database:
        yield RunStore(database)
