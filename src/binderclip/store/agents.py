"""Agents as rows, and the breaker's pauses of agent and task."""

from __future__ import annotations

import builtins
from typing import Any

from sqlalchemy import Connection, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from binderclip.contract.agent import Agent, Budget, Pause
from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.ids import new_id
from binderclip.contract.session import SessionManagement
from binderclip.store.shape import Shape, changed
from binderclip.store.tables import agents, pauses

_shape = Shape(
    agents,
    Agent,
    "agent",
    adapter_config=dict[str, Any],
    budget=Budget,
    run_budget=Budget,
    session_limits=SessionManagement,
)
_pause = Shape(pauses, Pause, "pause")


class Agents:
    """The agents that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, agent: Agent, now: str) -> Agent:
        """Add an agent; an empty id is given one."""
        agent = changed(agent, id=agent.id or new_id(), created_at=now, updated_at=now)
        self._refuse_taken(agent.company_id, agent.name, agent.id)
        try:
            return _shape.insert(self._connection, agent)
        except IntegrityError as problem:
            raise Conflict(f"The agent {agent.name!r} cannot be made: {problem.orig}.") from problem

    def get(self, id: str, *, lock: bool = False) -> Agent:
        return _shape.read(_shape.get(self._connection, id, lock=lock))

    def find(self, company_id: str, text: str) -> Agent:
        """The agent that a person named by its name or by the last characters of its id."""
        ends = (
            agents.c.id.endswith(text, autoescape=True) if len(text) >= 4 else agents.c.id == text
        )
        query = select(agents).where(
            agents.c.company_id == company_id,
            agents.c.status != "archived",
            or_(agents.c.name == text, ends),
        )
        rows = self._connection.execute(query).mappings().all()
        named = [row for row in rows if row["name"] == text] or rows
        if len(named) != 1:
            told = "No agent is" if not named else f"{len(named)} agents are"
            raise NotFound(f"{told} called {text!r}.", hint="`binderclip agents` lists them.")
        return _shape.read(named[0])

    def list(
        self,
        company_id: str | None = None,
        *,
        status: str | None = None,
        limit: int = 200,
        before: str | None = None,
    ) -> builtins.list[Agent]:
        """Agents, newest first; archived ones only when asked for."""
        conditions = [agents.c.status == status if status else agents.c.status != "archived"]
        if company_id is not None:
            conditions.append(agents.c.company_id == company_id)
        rows = self._connection.execute(_shape.page(*conditions, limit=limit, before=before))
        return [_shape.read(row) for row in rows.mappings()]

    def change(self, id: str, now: str, **fields: Any) -> Agent:
        before = self.get(id)
        if fields.get("name", before.name) != before.name:
            self._refuse_taken(before.company_id, fields["name"], id)
        _shape.change(self._connection, id, {**fields, "updated_at": now})
        return self.get(id)

    def lock(self, ids: builtins.list[str]) -> dict[str, Agent]:
        """These agents, held for this transaction, always in the same order."""
        query = select(agents).where(agents.c.id.in_(ids)).order_by(agents.c.id).with_for_update()
        rows = self._connection.execute(query).mappings()
        return {row["id"]: _shape.read(row) for row in rows}

    def due(self, now: str) -> builtins.list[Agent]:
        """Active agents whose timer has run out."""
        query = select(agents).where(agents.c.next_beat_at <= now, agents.c.status == "active")
        rows = self._connection.execute(query.order_by(agents.c.id)).mappings()
        return [_shape.read(row) for row in rows]

    def next_due(self) -> str | None:
        """When the next timer runs out."""
        query = select(func.min(agents.c.next_beat_at)).where(agents.c.status == "active")
        found: str | None = self._connection.scalar(query)
        return found

    def _refuse_taken(self, company_id: str, name: str, id: str) -> None:
        query = select(agents.c.id).where(
            agents.c.company_id == company_id,
            agents.c.name == name,
            agents.c.status != "archived",
            agents.c.id != id,
        )
        if self._connection.scalar(query) is not None:
            raise Conflict(f"There is an agent called {name!r} already.", code="name_taken")


class Pauses:
    """What the circuit breaker stopped (design, section 5)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, pause: Pause) -> Pause:
        """Pause agent and task; one that is paused already stays as it is."""
        found = self.of(pause.agent_id, pause.task_key)
        if found is not None:
            return found
        return _pause.insert(self._connection, changed(pause, id=pause.id or new_id()))

    def of(self, agent_id: str, task_key: str) -> Pause | None:
        found = [p for p in self.open(agent_id) if p.task_key == task_key]
        return found[0] if found else None

    def open(self, agent_id: str | None = None) -> list[Pause]:
        """Pauses that nobody has reset, oldest first."""
        query = select(pauses).where(pauses.c.reset_at.is_(None)).order_by(pauses.c.id)
        if agent_id is not None:
            query = query.where(pauses.c.agent_id == agent_id)
        return [_pause.read(row) for row in self._connection.execute(query).mappings()]

    def reset(self, agent_id: str, task_key: str, by: str, now: str) -> bool:
        """Let the agent work on the task again; says whether it was paused."""
        place = (pauses.c.agent_id == agent_id) & (pauses.c.task_key == task_key)
        change = update(pauses).where(place, pauses.c.reset_at.is_(None))
        return self._connection.execute(change.values(reset_at=now, reset_by=by)).rowcount > 0

    def last_reset(self, agent_id: str, task_key: str) -> str | None:
        """When a person last reset this pair; failures before that are forgiven."""
        place = (pauses.c.agent_id == agent_id) & (pauses.c.task_key == task_key)
        found: str | None = self._connection.scalar(
            select(func.max(pauses.c.reset_at)).where(place)
        )
        return found
