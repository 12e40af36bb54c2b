"""The end of a run in the database: one transaction, and doing it twice changes nothing (D5).

Session, usage, state and cost; then what follows: a retry, the breaker, wakes of dependents.
"""

from __future__ import annotations

import re
from datetime import datetime

from sqlalchemy import Connection, RowMapping, select, update

from binderclip.contract.agent import Agent, Pause
from binderclip.contract.errors import NotFound
from binderclip.contract.run import ExecutionResult
from binderclip.contract.wire import from_json, iso_time
from binderclip.runs.dependencies import wake_dependents
from binderclip.runs.waking import Ask, wake
from binderclip.store import runs
from binderclip.store.activity import Activities
from binderclip.store.agents import Agents, Pauses
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.rows import exit_row
from binderclip.store.runfile import RunOutcome
from binderclip.store.tables import runs as table
from binderclip.store.tasks import Tasks
from binderclip.store.wakes import Wakes
from binderclip.supervisor.launch import ExitRecord, read_exit

SYSTEM = "system"
FAILURES_IN_A_ROW = 3
BACK_OFF_SEC = 30.0
LONGEST_BACK_OFF_SEC = 3600.0
_TRANSIENT_CODES = ("rate_limit", "upstream")
_IDS = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=\w*\d)[\w-]{8,}\b|\d+")


def settle(
    db: Database, run_id: str, outcome: RunOutcome, now: float, *, never_ran: bool = False
) -> bool:
    """Write the end of a run and what follows from it; False if that was done before.

    `never_ran` says that its agent was not even started, so that it is safe to try again.
    """
    exits = _exits(db.home, run_id)
    with db.writing() as connection:
        run = runs.finish(connection, run_id, outcome)
        if run is None:
            return False
        for attempt, exit in exits:
            runs.set_attempt(connection, run_id, attempt, exit_row(exit))
        Tasks(connection).release(run_id, iso_time(now))
        if run["scheduled"]:
            _follow_up(connection, run, outcome, now, never_ran)
        return True


def failure_sign(result: ExecutionResult | None) -> str | None:
    """What makes two failures equal: code and message with digits and ids removed."""
    if result is None or result.error_code is None:
        return None
    message = _IDS.sub("#", (result.error_message or "").lower())
    return f"{result.error_code}: {' '.join(message.split())[:500]}"


def back_off(retries: int) -> float:
    """Seconds to wait before the retry after so many."""
    return min(LONGEST_BACK_OFF_SEC, BACK_OFF_SEC * 2.0**retries)


def _exits(home: Home, run_id: str) -> list[tuple[int, ExitRecord]]:
    found = ((n, read_exit(str(home.attempt_dir(run_id, n)))) for n in home.attempts(run_id))
    return [(number, exit) for number, exit in found if exit is not None]


def _follow_up(
    connection: Connection, run: RowMapping, outcome: RunOutcome, now: float, never_ran: bool
) -> None:
    try:
        agent = Agents(connection).get(run["agent_id"], lock=True)
    except NotFound:
        return
    result = outcome.result
    sign = failure_sign(result) if outcome.state != "cancelled" else None
    if sign is not None:
        connection.execute(update(table).where(table.c.id == run["id"]).values(failure=sign))
    # What passes by itself has its retries first: only a failure that nothing follows may trip.
    if not _retry(connection, run, agent, result, now, never_ran):
        _trip(connection, run, result, now)
    if run["task_id"] is not None:
        wake_dependents(connection, run["task_id"], now)


def _trip(
    connection: Connection, run: RowMapping, result: ExecutionResult | None, now: float
) -> None:
    """Pause agent and task after equal failures in a row."""
    sign = failure_sign(result)
    pauses = Pauses(connection)
    if result is None or sign is None:
        return
    since = pauses.last_reset(run["agent_id"], run["task_key"]) or ""
    last = select(table.c.failure).where(
        table.c.agent_id == run["agent_id"],
        table.c.task_key == run["task_key"],
        table.c.scheduled,
        table.c.finalized,
        table.c.status != "cancelled",
        table.c.ended_at > since,
    )
    signs = connection.scalars(last.order_by(table.c.id.desc()).limit(FAILURES_IN_A_ROW)).all()
    if len(signs) < FAILURES_IN_A_ROW or set(signs) != {sign}:
        return
    reason = f"{FAILURES_IN_A_ROW} runs in a row failed alike, {result.error_code}"
    pauses.add(
        Pause(
            id="",
            agent_id=run["agent_id"],
            task_key=run["task_key"],
            reason=reason,
            error_code=result.error_code,
            error_message=result.error_message,
            run_id=run["id"],
            since=iso_time(now),
        )
    )
    subject = ("agent", run["agent_id"])
    Activities(connection).note(
        run["company_id"], SYSTEM, "paused", subject, iso_time(now), reason=reason, run=run["id"]
    )


def _retry(
    connection: Connection,
    run: RowMapping,
    agent: Agent,
    result: ExecutionResult | None,
    now: float,
    never_ran: bool,
) -> bool:
    """Queue another try of what may pass; whether there is one."""
    if run["retries"] >= agent.retry_limit or agent.status == "archived":
        return False
    if not (never_ran or (result is not None and _passes(result))):
        return False
    start = now if never_ran else now + back_off(run["retries"])
    told = result.retry_not_before if result is not None else None
    if told is not None:
        start = max(start, _moment(told) or start)
    wakes = Wakes(connection).of_run(run["id"])
    wake(
        connection,
        Ask(
            agent_id=agent.id,
            task_id=run["task_id"],
            reason="retry",
            prompt=run["prompt"],
            actor=SYSTEM,
            comment_id=next((w.comment_id for w in reversed(wakes) if w.comment_id), None),
            approval_id=next((w.approval_id for w in reversed(wakes) if w.approval_id), None),
            not_before=iso_time(start),
            retry_of=run["id"],
            retries=run["retries"] + 1,
            earlier_reasons=from_json(run["wake_reasons"], tuple[str, ...]),
        ),
        now,
    )
    return True


def _passes(result: ExecutionResult) -> bool:
    """Whether a failure is of the kind that passes by itself."""
    if result.error_code is None:
        return False
    if result.error_family == "transient_upstream" or result.error_code in _TRANSIENT_CODES:
        return True
    return result.error_family == "provider_quota" and result.retry_not_before is not None


def _moment(text: str) -> float | None:
    """A time that a runtime told; None if it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
