"""A run as its own files tell it, with no database: also one that is going on right now."""

from __future__ import annotations

from pathlib import Path

from binderclip.contract.run import RunState, RunView
from binderclip.store.home import Home
from binderclip.store.runfile import UsageSoFar, read_order, read_outcome, read_usage
from binderclip.store.titles import title_of
from binderclip.supervisor import locks
from binderclip.supervisor.launch import read_meta


def file_view(home: Home, run_id: str) -> RunView:
    """One run, from its order, its outcome and its attempts."""
    order, outcome = read_order(home, run_id), read_outcome(home, run_id)
    numbers = home.attempts(run_id)
    first = read_meta(str(home.attempt_dir(run_id, numbers[0]))) if numbers else None
    result = outcome.result if outcome else None
    used = result or read_usage(home, run_id) or UsageSoFar()
    return RunView(
        id=run_id,
        status=outcome.state if outcome else _live_state(home, run_id, numbers),
        adapter_type=order.adapter_type,
        cwd=order.cwd,
        title=title_of(order),
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
        usage=used.usage,
        cost_usd=used.cost_usd,
        error_code=result.error_code if result else None,
        error_message=result.error_message if result else None,
        retry_of=order.retry_of,
        summary=result.summary if result else None,
        result=result,
        coverage=outcome.coverage if outcome else None,
        directory=str(home.run_dir(run_id)),
        company_id=order.agent.company_id,
    )


def driver_lock(home: Home, run_id: str) -> Path:
    """The file whose lock says who drives the run."""
    return home.run_dir(run_id) / "driver.lock"


def is_driven(home: Home, run_id: str) -> bool:
    """Whether some process drives the run; asking takes nothing."""
    return locks.held(str(driver_lock(home, run_id)))


def _live_state(home: Home, run_id: str, attempts: list[int]) -> RunState:
    return "running" if attempts or not is_driven(home, run_id) else "starting"
