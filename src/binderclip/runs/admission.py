"""What may start now, decided in one transaction for all that waits (D5).

The rules: one run per task and per agent and task, the agent's limit, its budget, the breaker,
blockers done and finalized (W3), not before its time. What waits is told why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import Connection, RowMapping, bindparam, case, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from binderclip.contract.agent import Agent
from binderclip.contract.run import StateChange
from binderclip.contract.wire import iso_time
from binderclip.runs.budget import agent_over_budget
from binderclip.store import runs
from binderclip.store.agents import Agents, Pauses
from binderclip.store.database import Database
from binderclip.store.operations import Operations
from binderclip.store.tables import AnyText
from binderclip.store.tables import runs as table
from binderclip.store.tasks import Tasks

ACTIVE = ("starting", "running", "finalizing")
ACTOR = "admission"
_NOW = bindparam("now", type_=AnyText)
_OUTLOOK = select(
    func.count(case((or_(table.c.not_before.is_(None), table.c.not_before <= _NOW), 1))).label(
        "due"
    ),
    func.min(case((table.c.not_before > _NOW, table.c.not_before))).label("later"),
).where(table.c.scheduled, table.c.status == "queued")


def admit(
    db: Database, now: float, *, limit: int | None = None, only: str | None = None
) -> list[str]:
    """Move every queued run that may start to `starting`, oldest first; their ids.

    `only` looks at one run alone. Runs that must wait are told why in `waiting_for`.
    """
    with db.writing() as connection:
        return admit_in(connection, now, limit=limit, only=only)


def admit_in(
    connection: Connection, now: float, *, limit: int | None = None, only: str | None = None
) -> list[str]:
    """The same in a transaction of the caller."""
    due = _due(connection, now, only)
    state = _State.read(connection, due, now)
    admitted: list[str] = []
    for run in due:
        full = limit is not None and len(admitted) >= limit
        reason = "for a free worker" if full else state.obstacle(run)
        if reason is None and _start(connection, run, now):
            state.count(run)
            admitted.append(run["id"])
        else:
            _tell(connection, run, reason or "for another run of its task")
    return admitted


def outlook(connection: Connection, now: float) -> tuple[bool, str | None]:
    """Whether a queued run is due, and the earliest time that another one waits for."""
    row = connection.execute(_OUTLOOK, {"now": iso_time(now)}).one()
    return bool(row.due), row.later


@dataclass
class _State:
    """What the rules are judged by; it changes with each run that is let in."""

    connection: Connection
    now: float
    agents: dict[str, Agent]
    paused: dict[tuple[str, str], str]
    working: Counter[str] = field(default_factory=Counter)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    over_budget: dict[str, str | None] = field(default_factory=dict)
    blocked: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def read(cls, connection: Connection, due: list[RowMapping], now: float) -> _State:
        ids = sorted({run["agent_id"] for run in due})
        # First of all, so that on Postgres two admissions of one agent take turns.
        agents = Agents(connection).lock(ids)
        pauses = Pauses(connection).open()
        state = cls(connection, now, agents, {(p.agent_id, p.task_key): p.reason for p in pauses})
        columns = (table.c.agent_id, table.c.task_key, table.c.task_id)
        active = select(*columns).where(table.c.scheduled, table.c.status.in_(ACTIVE))
        for run in connection.execute(active).mappings():
            state.count(run)
        return state

    def count(self, run: RowMapping) -> None:
        """A run works from now on."""
        self.working[run["agent_id"]] += 1
        self.pairs.add((run["agent_id"], run["task_key"]))
        if run["task_id"] is not None:
            self.tasks.add(run["task_id"])
        self.over_budget.pop(run["agent_id"], None)

    def obstacle(self, run: RowMapping) -> str | None:
        """What a run waits for, in words that complete "waits …"; None if it may start."""
        agent = self.agents.get(run["agent_id"])
        if agent is None:
            return "for its agent, which is gone"
        pair = (run["agent_id"], run["task_key"])
        if agent.status != "active":
            told = f": {agent.paused_reason}" if agent.paused_reason else ""
            return f"for its agent, which is {agent.status}{told}"
        if pair in self.paused:
            return f"for a person to reset the breaker: {self.paused[pair]}"
        if pair in self.pairs or run["task_id"] in self.tasks:
            return "for another run of its task"
        if self.working[agent.id] >= agent.max_concurrent_runs:
            return f"for its agent, which may work on {agent.max_concurrent_runs} at once"
        return self._blocker(run["task_id"]) or self._budget(agent)

    def _blocker(self, task_id: str | None) -> str | None:
        if task_id is None:
            return None
        if task_id not in self.blocked:
            self.blocked[task_id] = open_blocker(self.connection, task_id)
        return self.blocked[task_id]

    def _budget(self, agent: Agent) -> str | None:
        if agent.id not in self.over_budget:
            self.over_budget[agent.id] = agent_over_budget(self.connection, agent, self.now)
        over = self.over_budget[agent.id]
        return None if over is None else f"for its agent's budget: {over}"


def open_blocker(connection: Connection, task_id: str) -> str | None:
    """The first blocker that is not done or whose workspace is not finalized (W3)."""
    for blocker in Tasks(connection).blockers(task_id):
        if blocker.status != "done":
            return f"for {blocker.identifier}, which is {blocker.status}"
        gate = Operations(connection).gate_of_task(blocker.id)
        if gate != "open":
            return f"for the workspace of {blocker.identifier}: finalizing is {gate}"
    return None


def _due(connection: Connection, now: float, only: str | None) -> list[RowMapping]:
    columns = ("id", "agent_id", "task_key", "task_id", "waiting_for")
    query = select(*(table.c[name] for name in columns)).where(
        table.c.scheduled,
        table.c.status == "queued",
        or_(table.c.not_before.is_(None), table.c.not_before <= iso_time(now)),
    )
    if only is not None:
        query = query.where(table.c.id == only)
    return list(connection.execute(query.order_by(table.c.id)).mappings())


def _start(connection: Connection, run: RowMapping, now: float) -> bool:
    """Let a run in; False if the database's own rules know better than what was read."""
    change = StateChange(state="starting", at=iso_time(now), reason="admitted", actor=ACTOR)
    let_in = update(table).where(table.c.id == run["id"], table.c.status == "queued")
    try:
        with connection.begin_nested():
            # Asked again by the update: somebody may have cancelled it meanwhile.
            values = {"status": "starting", "waiting_for": None}
            if not connection.execute(let_in.values(**values)).rowcount:
                return False
            runs.append_change(connection, run["id"], change)
    except IntegrityError:
        return False
    return True


def _tell(connection: Connection, run: RowMapping, reason: str) -> None:
    if run["waiting_for"] != reason:
        change = update(table).where(table.c.id == run["id"], table.c.status == "queued")
        connection.execute(change.values(waiting_for=reason))
