"""Runs of this machine as their files tell them: finding, listing, finishing; no database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.run import RunState, RunView
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME, read_order, read_outcome
from binderclip.supervisor import locks
from binderclip.supervisor.launch import read_meta


def find(home: Home, text: str | None) -> str:
    """The run that a person named, or the newest."""
    if text:
        return home.find_run(text)
    newest = next(home.run_ids(), None)
    if newest is None:
        raise RunNotFound("There are no runs yet.", hint="Start one: binderclip run --help")
    return newest


def finish_dead(home: Home, run_ids: list[str]) -> list[tuple[str, str]]:
    """Finish the records of runs whose driver and agent are gone; workspaces are not touched."""
    unfinished = [run_id for run_id in run_ids if not _is_over(home, run_id)]
    if all(_is_driven(home, run_id) for run_id in unfinished):
        return []
    # Only now: loading what drives runs takes longer than listing them.
    from binderclip.plugins.registry import load_adapter
    from binderclip.runs.recover import finish_all

    return finish_all(home, unfinished, load_adapter)


def _is_over(home: Home, run_id: str) -> bool:
    return (home.run_dir(run_id) / OUTCOME).exists()


def _is_driven(home: Home, run_id: str) -> bool:
    return locks.held(str(home.run_dir(run_id) / "driver.lock"))


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
            yield view(home, run_id)
        except BinderclipError as problem:
            yield RunView(id=run_id, status="lost", adapter_type="?", error_message=problem.message)


def view(home: Home, run_id: str) -> RunView:
    """One run, from its order, its outcome and its attempts."""
    order, outcome = read_order(home, run_id), read_outcome(home, run_id)
    numbers = home.attempts(run_id)
    first = read_meta(str(home.attempt_dir(run_id, numbers[0]))) if numbers else None
    result = outcome.result if outcome else None
    return RunView(
        id=run_id,
        status=outcome.state if outcome else _live_state(home, run_id, numbers),
        adapter_type=order.adapter_type,
        cwd=order.cwd,
        prompt=order.prompt,
        agent_id=order.agent.id,
        agent_name=order.agent.name,
        task_id=order.task_key,
        wake_reasons=order.wake_reasons,
        created_at=order.created_at,
        started_at=(first or {}).get("startedAt"),
        ended_at=outcome.ended_at if outcome else None,
        attempts=len(numbers),
        session_id=result.session_display_id if result else order.runtime.session_display_id,
        session_reason=order.session_reason,
        provider=result.provider if result else None,
        model=result.model if result else None,
        usage=result.usage if result else None,
        cost_usd=result.cost_usd if result else None,
        error_code=result.error_code if result else None,
        error_message=result.error_message if result else None,
        retry_of=order.retry_of,
        summary=result.summary if result else None,
        result=result,
        coverage=outcome.coverage if outcome else None,
        directory=str(home.run_dir(run_id)),
    )


def _live_state(home: Home, run_id: str, attempts: list[int]) -> RunState:
    return "running" if attempts or not _is_driven(home, run_id) else "starting"


def last_attempt(home: Home, run_id: str) -> Path | None:
    """The directory of the run's newest attempt."""
    numbers = home.attempts(run_id)
    return home.attempt_dir(run_id, numbers[-1]) if numbers else None
