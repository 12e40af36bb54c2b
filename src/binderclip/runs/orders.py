"""From an admitted row to an order that is kept and a request with its secrets (A4, S1-S5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, update

from binderclip.contract.agent import Agent
from binderclip.contract.errors import NotFound, RunNotFound
from binderclip.contract.run import (
    AgentRef,
    ExecutionRequest,
    RunOrder,
    RuntimeSession,
    StateChange,
)
from binderclip.contract.session import ResumeDecision
from binderclip.contract.task import Task
from binderclip.contract.wake import Wake
from binderclip.contract.wire import from_json, iso_time
from binderclip.runs.budget import RunBudget, budget_note, spent_by
from binderclip.runs.handoff import decide_session, handoff_note
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.config import read_config, shown_config
from binderclip.sdk.env import REDACTED
from binderclip.sdk.prompt import HANDOFF
from binderclip.store import runs
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.decisions import Approvals, Interactions
from binderclip.store.home import Home
from binderclip.store.jsonfile import write_atomic
from binderclip.store.rows import order_row
from binderclip.store.secrets import Secrets, replace_references
from binderclip.store.tables import runs as table
from binderclip.store.tasks import Tasks
from binderclip.store.wakes import Wakes

LoadAdapter = Callable[[str], Adapter]


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to start."""

    order: RunOrder
    request: ExecutionRequest
    adapter: Adapter
    secrets: tuple[str, ...]
    budget: RunBudget
    history: tuple[StateChange, ...]


@dataclass(frozen=True)
class _Known:
    """What the database tells about an admitted run."""

    run: RowMapping
    agent: Agent
    task: Task | None
    wakes: Sequence[Wake]
    config: dict[str, Any]
    """With every secret in place."""
    shown: dict[str, Any]
    secrets: tuple[str, ...]
    approval: dict[str, Any]


def prepare(
    db: Database,
    run_id: str,
    load: LoadAdapter,
    clock: Callable[[], float],
    cwd: str | None = None,
    target: str = "local",
) -> Prepared:
    """Read all that a run needs to start; any problem is a BinderclipError that ends the run.

    `target` is where its session lives: a session of another machine is not resumed (S3).
    """
    now = clock()
    with db.reading() as connection:
        known = _read(connection, db.home, run_id)
        adapter = load(known.agent.adapter_type)
        cwd = cwd or _cwd(db.home, known)
        key = (known.agent.id, adapter.type, known.run["task_key"])
        session, stored = decide_session(
            connection, key, known.agent, adapter, cwd, iso_time(now), target
        )
        note = (
            handoff_note(connection, stored, session, known.task)
            if stored is not None and session.action == "rotate"
            else None
        )
        spent = spent_by(connection, known.agent, now)
        history = runs.history(connection, run_id)
    told = adapter.manifest.usage_told
    order, request = _order(db.home, known, adapter, cwd, session, note)
    _complete_row(db, order, budget_note(known.agent, told))
    budget = RunBudget(known.agent, spent, told, clock)
    return Prepared(order, request, adapter, known.secrets, budget, tuple(history))


def order_of_row(row: RowMapping) -> RunOrder:
    """As much of an order as the row tells, for a run that could not be prepared."""
    return RunOrder(
        id=row["id"],
        adapter_type=row["adapter_type"],
        agent=AgentRef(
            id=row["agent_id"],
            company_id=row["company_id"],
            name=row["agent_name"],
            adapter_type=row["adapter_type"],
        ),
        cwd=row["cwd"],
        created_at=row["created_at"],
        prompt=row["prompt"],
        context={"taskId": row["task_id"]} if row["task_id"] else {},
        task_key=row["task_key"],
        wake_reasons=from_json(row["wake_reasons"], tuple[str, ...]),
        actor=row["actor"],
        retry_of=row["retry_of"],
        scheduled=row["scheduled"],
    )


def _read(connection: Connection, home: Home, run_id: str) -> _Known:
    run = runs.find(connection, run_id)
    if run is None:
        raise RunNotFound(f"The database has no run {run_id}.")
    agent = Agents(connection).get(run["agent_id"])
    opened: list[str] = []

    def reveal(name: str) -> str:
        opened.append(Secrets(connection, home).open(agent.company_id, name))
        return opened[-1]

    wakes = Wakes(connection).of_run(run_id)
    return _Known(
        run=run,
        agent=agent,
        task=Tasks(connection).get(run["task_id"]) if run["task_id"] else None,
        wakes=wakes,
        config=replace_references(agent.adapter_config, reveal),
        shown=replace_references(agent.adapter_config, lambda _: REDACTED),
        secrets=tuple(opened),
        approval=_approval(connection, wakes),
    )


def _approval(connection: Connection, wakes: Sequence[Wake]) -> dict[str, Any]:
    """What was decided, if a decision woke the agent: an approval or an answered question."""
    id = next((wake.approval_id for wake in reversed(wakes) if wake.approval_id), None)
    if id is None:
        return {}
    try:
        approval = Approvals(connection).get(id)
        return {
            "approvalId": id,
            "approvalStatus": approval.status,
            "issueIds": list(approval.task_ids),
        }
    except NotFound:
        asked = Interactions(connection).get(id)
        return {"interactionId": id, "interactionStatus": asked.status, "answer": asked.response}


def _cwd(home: Home, known: _Known) -> str:
    named = (known.task.cwd if known.task else None) or known.config.get("cwd")
    if named:
        return str(Path(str(named)).expanduser().resolve())
    # An agent that was given no place gets one of its own, which stays.
    own = home.path / "agents" / known.agent.id / "work"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(own)


def _order(
    home: Home,
    known: _Known,
    adapter: Adapter,
    cwd: str,
    session: ResumeDecision,
    note: str | None,
) -> tuple[RunOrder, ExecutionRequest]:
    managed = _managed(home, known.agent, adapter)
    config = {**managed, **known.config, "cwd": cwd}
    shown = shown_config(read_config(adapter.Config, {**managed, **known.shown, "cwd": cwd}))
    runtime = RuntimeSession(
        session_id=session.display_id,
        session_params=session.params,
        session_display_id=session.display_id,
        task_key=known.run["task_key"],
    )
    context = _context(known, adapter, cwd, note)
    order = msgspec.structs.replace(
        order_of_row(known.run),
        adapter_type=adapter.type,
        cwd=cwd,
        config=shown,
        context=context,
        adapter_path=adapter.origin if "/" in (adapter.origin or "") else None,
        adapter_version=adapter.manifest.version,
        runtime_name=adapter.manifest.runtime or adapter.type,
        runtime=runtime,
        session_reason=session.reason,
    )
    request = ExecutionRequest(
        run_id=order.id, agent=order.agent, runtime=runtime, config=config, context=context
    )
    return order, request


def _context(known: _Known, adapter: Adapter, cwd: str, note: str | None) -> dict[str, Any]:
    reasons = from_json(known.run["wake_reasons"], tuple[str, ...])
    context: dict[str, Any] = {
        "wakeReason": reasons[0] if reasons else "manual",
        "wakeReasons": list(reasons),
        "workspace": {"cwd": cwd},
        **known.approval,
    }
    comment = next((wake.comment_id for wake in reversed(known.wakes) if wake.comment_id), None)
    if comment is not None:
        context["wakeCommentId"] = comment
    if known.task is not None:
        context |= {"taskId": known.task.id, "issueId": known.task.id, "task": _told(known.task)}
    prompt = known.run["prompt"]
    if prompt is None and known.task and not adapter.capabilities.supports_local_agent_jwt:
        # Without a token the agent cannot ask for its task, so it is told.
        prompt = f"# {known.task.identifier}: {known.task.title}\n\n{known.task.body}".strip()
    if prompt is not None:
        context["promptText"] = prompt
    if note is not None:
        context[HANDOFF] = note
    return context


def _told(task: Task) -> dict[str, Any]:
    names = ("id", "identifier", "title", "body", "status", "priority")
    return {name: getattr(task, name) for name in names}


def _managed(home: Home, agent: Agent, adapter: Adapter) -> dict[str, str]:
    """Where the agent's managed instructions stand, for adapters that take such a file (C1)."""
    flags = adapter.capabilities
    if not agent.instructions or not flags.supports_instructions_bundle:
        return {}
    folder = home.path / "agents" / agent.id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "AGENTS.md"
    text = agent.instructions.encode()
    if not path.is_file() or path.read_bytes() != text:
        write_atomic(path, text)
    return {flags.instructions_path_key: str(path)}


def _complete_row(db: Database, order: RunOrder, note: str | None) -> None:
    """Write what was decided only now: the session, the directory, how budgets hold."""
    told = order_row(order, "starting")
    names = ("adapter_type", "cwd", "resumed", "session_id", "session_reason")
    values = {name: told[name] for name in names}
    with db.writing() as connection:
        change = update(table).where(table.c.id == order.id)
        connection.execute(change.values(**values, budget_note=note))
