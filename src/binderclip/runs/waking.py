"""Waking an agent: a run is queued, or a run that waits for the same agent and task is joined (R2).

Everything happens in the caller's transaction, with the agent's row held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from binderclip.contract.agent import Agent
from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, RunOrder, WakeReason
from binderclip.contract.session import HEARTBEAT
from binderclip.contract.task import Task
from binderclip.contract.wake import Wake, WakeReceipt
from binderclip.contract.wire import from_json, iso_time
from binderclip.store import runs
from binderclip.store.agents import Agents
from binderclip.store.rows import json_text, order_row
from binderclip.store.tables import runs as table
from binderclip.store.tasks import Tasks
from binderclip.store.wakes import Wakes

PERSON = "person"


@dataclass(frozen=True)
class Ask:
    """A wish that an agent runs."""

    agent_id: str
    task_id: str | None = None
    reason: WakeReason = "manual"
    prompt: str | None = None
    actor: str = PERSON
    comment_id: str | None = None
    approval_id: str | None = None
    not_before: str | None = None
    retry_of: str | None = None
    retries: int = 0
    earlier_reasons: tuple[str, ...] = ()


def wake(connection: Connection, ask: Ask, now: float) -> WakeReceipt:
    """Queue a run, or join the one that waits; every reason is kept."""
    agent = Agents(connection).get(ask.agent_id, lock=True)
    if agent.status == "archived":
        raise Conflict(f"The agent {agent.name!r} is archived.", code="agent_archived")
    task = _task(connection, ask, agent)
    waiting = _waiting(connection, agent.id, task_key_of(ask.task_id))
    if waiting is None:
        run_id = new_id(now)
        runs.add(connection, _queued(ask, agent, task, run_id, now), _reasons(ask))
    else:
        run_id = waiting["id"]
        _join(connection, waiting, ask)
    _note(connection, ask, run_id, waiting is not None, now)
    return WakeReceipt(run_id=run_id, status="queued", coalesced=waiting is not None)


def task_key_of(task_id: str | None) -> str:
    """What sessions and waiting runs are told apart by (S1)."""
    return task_id or HEARTBEAT


def _task(connection: Connection, ask: Ask, agent: Agent) -> Task | None:
    if ask.task_id is None:
        return None
    task = Tasks(connection).get(ask.task_id)
    if task.company_id != agent.company_id:
        raise NotFound(f"There is no task {ask.task_id!r}.")
    return task


def _waiting(connection: Connection, agent_id: str, task_key: str) -> RowMapping | None:
    query = select(table).where(
        table.c.scheduled,
        table.c.status == "queued",
        table.c.agent_id == agent_id,
        table.c.task_key == task_key,
    )
    return connection.execute(query).mappings().one_or_none()


def _reasons(ask: Ask) -> tuple[str, ...]:
    return tuple(dict.fromkeys((ask.reason, *ask.earlier_reasons)))


def _queued(ask: Ask, agent: Agent, task: Task | None, run_id: str, now: float) -> dict[str, Any]:
    cwd = (task.cwd if task else None) or agent.adapter_config.get("cwd") or ""
    order = RunOrder(
        id=run_id,
        adapter_type=agent.adapter_type,
        agent=AgentRef(
            id=agent.id,
            company_id=agent.company_id,
            name=agent.name,
            adapter_type=agent.adapter_type,
        ),
        cwd=str(cwd),
        created_at=iso_time(now),
        prompt=ask.prompt,
        context={"taskId": task.id} if task else {},
        task_key=task_key_of(ask.task_id),
        wake_reasons=_reasons(ask),
        actor=ask.actor,
        retry_of=ask.retry_of,
        scheduled=True,
    )
    return {**order_row(order, "queued"), "not_before": ask.not_before, "retries": ask.retries}


def _join(connection: Connection, waiting: RowMapping, ask: Ask) -> None:
    reasons = (*from_json(waiting["wake_reasons"], tuple[str, ...]), *_reasons(ask))
    prompts = [text for text in (waiting["prompt"], ask.prompt) if text]
    values: dict[str, Any] = {
        "wake_reasons": json_text(tuple(dict.fromkeys(reasons))),
        "prompt": "\n\n".join(dict.fromkeys(prompts)) or None,
    }
    if ask.reason == "manual" and ask.actor == PERSON:
        # Somebody wants it now, whatever a retry was waiting for.
        values["not_before"] = None
    connection.execute(update(table).where(table.c.id == waiting["id"]).values(**values))


def _note(connection: Connection, ask: Ask, run_id: str, coalesced: bool, now: float) -> None:
    Wakes(connection).add(
        Wake(
            id=new_id(now),
            run_id=run_id,
            agent_id=ask.agent_id,
            task_id=ask.task_id,
            reason=ask.reason,
            actor=ask.actor,
            at=iso_time(now),
            prompt=ask.prompt,
            comment_id=ask.comment_id,
            approval_id=ask.approval_id,
            coalesced=coalesced,
        )
    )
