"""Runs of this machine as their files tell them: finding, listing, finishing; no database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.run import RunView
from binderclip.store.fileview import file_view, is_driven
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME


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
