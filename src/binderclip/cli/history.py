"""Runs of this machine as their files tell them: finding, listing, finishing.

A database is opened only for runs that have not begun, and only where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.run import RunView
from binderclip.store.fileview import file_view, is_driven
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME

_WAITING = "SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1"


def find(home: Home, text: str | None) -> str:
    """The run that a person named, or the newest."""
    if text:
        return home.find_run(text)
    newest = next(home.run_ids(), None)
    if newest is None:
        raise RunNotFound("There are no runs yet.", hint="Start one: binderclip run --help")
    return newest


def find_any(home: Home, text: str | None) -> str:
    """The same, also when it has not begun and is known to the database only."""
    try:
        return find(home, text)
    except RunNotFound:
        # Only now: what has begun is found without a database.
        from binderclip.cli.queued import find_queued

        run_id = find_queued(home, text)
        if run_id is None:
            raise
        return run_id


def finish_dead(home: Home, run_ids: list[str]) -> list[tuple[str, str]]:
    """Finish the records of runs whose driver and agent are gone; workspaces are not touched."""
    unfinished = [run_id for run_id in run_ids if not _is_over(home, run_id)]
    if all(is_driven(home, run_id) for run_id in unfinished):
        return []
    # Only now: loading what drives runs takes longer than listing them.
    from binderclip.cli.recording import Recorder
    from binderclip.plugins.registry import load_adapter
    from binderclip.runs.recover import finish_all

    return finish_all(home, unfinished, load_adapter, Recorder())


def _is_over(home: Home, run_id: str) -> bool:
    return (home.run_dir(run_id) / OUTCOME).exists()


def views(
    home: Home, *, limit: int, status: str | None = None, adapter: str | None = None
) -> list[RunView]:
    """The newest runs that fit."""
    fitting = (
        view
        for view in _all_views(home)
        if (status is None or view.status == status)
        and (adapter is None or view.adapter_type == adapter)
    )
    return list(islice(fitting, limit))


def with_queued(
    home: Home, begun: list[RunView], *, limit: int, adapter: str | None = None
) -> list[RunView]:
    """The same, with the runs among them that wait to begin and have no files yet."""
    if not _any_waits(home):
        return begun
    from binderclip.cli.queued import queued_views

    waiting = queued_views(home, limit=limit, adapter=adapter)
    return sorted(begun + waiting, key=lambda view: view.id, reverse=True)[:limit]


def _any_waits(home: Home) -> bool:
    """Whether runs may wait to begin, without loading the store: that takes longer than a list."""
    path = home.sqlite
    if path is None or not path.exists():
        return path is None
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(_WAITING).fetchone() is not None
    except sqlite3.Error:
        return True  # The store can tell what is wrong with it.


def _all_views(home: Home) -> Iterator[RunView]:
    for run_id in home.run_ids():
        try:
            yield file_view(home, run_id)
        except BinderclipError as problem:
            yield RunView(id=run_id, status="lost", adapter_type="?", error_message=problem.message)


def last_attempt(home: Home, run_id: str) -> Path | None:
    """The directory of the run's newest attempt."""
    numbers = home.attempts(run_id)
    return home.attempt_dir(run_id, numbers[-1]) if numbers else None
