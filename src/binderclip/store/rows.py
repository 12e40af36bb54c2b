"""Contract structures as rows and back."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping

from binderclip.contract.entry import Coverage
from binderclip.contract.run import ExecutionResult, RunOrder, RunState, RunView, Usage
from binderclip.contract.session import HEARTBEAT, StoredSession
from binderclip.contract.wire import T, from_json
from binderclip.store.jsonfile import encode
from binderclip.store.runfile import AttemptUsage, RunOutcome
from binderclip.store.titles import title_in
from binderclip.supervisor.records import ExitRecord

_LARGEST_INTEGER = 2**63 - 1
_NANO = 10**9


def json_text(value: Any) -> str | None:
    return None if value is None else encode(value).decode()


def of_text(text: str | None, kind: type[T]) -> T | None:
    return None if text is None else from_json(text, kind)


def nano_dollars(dollars: float | None) -> int | None:
    """Exact by the decimal digits that were told; what is no amount of money is unknown."""
    if dollars is None or not math.isfinite(dollars) or dollars < 0:
        return None
    return _count(int((Decimal(str(dollars)) * _NANO).to_integral_value()))


def dollars(nano: int | None) -> float | None:
    return None if nano is None else nano / _NANO


def order_row(order: RunOrder, state: RunState) -> dict[str, Any]:
    asked = order.runtime
    return {
        "id": order.id,
        "status": state,
        "adapter_type": order.adapter_type,
        "agent_id": order.agent.id,
        "agent_name": order.agent.name,
        "company_id": order.agent.company_id,
        "task_id": _task_id(order),
        "task_key": order.task_key or asked.task_key or HEARTBEAT,
        "cwd": order.cwd,
        "prompt": order.prompt,
        "wake_reasons": json_text(order.wake_reasons),
        "actor": order.actor,
        "retry_of": order.retry_of,
        "resumed": asked.session_params is not None or asked.session_id is not None,
        "created_at": order.created_at,
        "attempts": 0,
        "session_id": asked.session_display_id or asked.session_id,
        "session_reason": order.session_reason,
        "finalized": False,
        "scheduled": order.scheduled,
    }


def outcome_row(row: RowMapping, outcome: RunOutcome) -> dict[str, Any]:
    """What a finished run adds to its row."""
    values: dict[str, Any] = {
        "status": outcome.state,
        "ended_at": outcome.ended_at,
        "session_reason": outcome.session_reason or row["session_reason"],
        "coverage": json_text(outcome.coverage),
        "finalized": True,
    }
    result = outcome.result
    if result is not None:
        values |= {
            "session_id": result.session_display_id or result.session_id or row["session_id"],
            "provider": result.provider,
            "model": result.model,
            "usage": json_text(result.usage),
            "cost_nanousd": nano_dollars(result.cost_usd),
            "error_code": result.error_code,
            "error_message": result.error_message,
            "summary": result.summary,
            "result": json_text(result),
        }
    return values


def view_of(row: RowMapping, directory: str, *, whole: bool = True) -> RunView:
    """A run as it is shown; listings leave the whole result out."""
    return RunView(
        id=row["id"],
        status=row["status"],
        adapter_type=row["adapter_type"],
        cwd=row["cwd"],
        title=title_in(directory, row["prompt"]),
        prompt=row["prompt"],
        agent_id=row["agent_id"],
        agent_name=row["agent_name"],
        task_id=row["task_id"],
        wake_reasons=from_json(row["wake_reasons"], tuple[str, ...]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        attempts=row["attempts"],
        session_id=row["session_id"],
        session_reason=row["session_reason"],
        provider=row["provider"],
        model=row["model"],
        usage=of_text(row["usage"], Usage),
        cost_usd=dollars(row["cost_nanousd"]),
        error_code=row["error_code"],
        error_message=row["error_message"],
        retry_of=row["retry_of"],
        summary=row["summary"],
        result=of_text(row["result"], ExecutionResult) if whole else None,
        coverage=of_text(row["coverage"], Coverage),
        directory=directory,
        company_id=row["company_id"],
        scheduled=row["scheduled"],
        not_before=row["not_before"],
        waiting_for=row["waiting_for"],
        budget_note=row["budget_note"],
    )


def exit_row(exit: ExitRecord) -> dict[str, Any]:
    return {
        "ended_at": exit.ended_at,
        "reason": exit.reason,
        "exit_code": exit.exit_code,
        "signal": exit.signal,
        "killed": exit.killed,
        "adopted": exit.adopted,
        "stdout_bytes": exit.stdout_bytes,
        "stderr_bytes": exit.stderr_bytes,
    }


def usage_rows(run_id: str, attempts: int, outcome: RunOutcome) -> list[dict[str, Any]]:
    """What each attempt used; attempts that told nothing have no row."""
    told = outcome.usage or _of_last_attempt(attempts, outcome.result)
    return [
        {"run_id": run_id, **_usage_row(used)}
        for used in told
        if used.usage is not None or used.cost_usd is not None
    ]


def session_row(session: StoredSession) -> dict[str, Any]:
    fields = {name: getattr(session, name) for name in session.__struct_fields__}
    return {**fields, "params": json_text(session.params), "tokens": _count(session.tokens) or 0}


def session_of(row: RowMapping) -> StoredSession:
    return StoredSession(**{**row, "params": from_json(row["params"], dict[str, Any])})


def _of_last_attempt(attempts: int, result: ExecutionResult | None) -> tuple[AttemptUsage, ...]:
    if result is None:
        return ()
    used = AttemptUsage(
        attempt=max(1, attempts),
        usage=result.usage,
        basis=result.usage_basis,
        cost_usd=result.cost_usd,
        provider=result.provider,
        model=result.model,
    )
    return (used,)


def _usage_row(used: AttemptUsage) -> dict[str, Any]:
    usage = used.usage or Usage(source="unknown")
    return {
        "attempt": used.attempt,
        "input_tokens": _count(usage.input_tokens),
        "cached_input_tokens": _count(usage.cached_input_tokens),
        "cache_write_tokens": _count(usage.cache_write_tokens),
        "output_tokens": _count(usage.output_tokens),
        "reasoning_tokens": _count(usage.reasoning_tokens),
        "source": usage.source,
        "basis": used.basis,
        "provider": used.provider,
        "model": used.model,
        "cost_nanousd": nano_dollars(used.cost_usd),
    }


def _count(value: int | None) -> int | None:
    """A number that fits a column; an absurd one from an agent's output counts as unknown."""
    return value if value is not None and 0 <= value <= _LARGEST_INTEGER else None


def _task_id(order: RunOrder) -> str | None:
    named = order.context.get("taskId") or order.context.get("issueId")
    if named is None and not order.scheduled:
        named = order.task_key
    return named if isinstance(named, str) and named != HEARTBEAT else None
