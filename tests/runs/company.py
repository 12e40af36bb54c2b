"""A small company in a database: agents, tasks, and runs that end without a process."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from sqlalchemy import select

from binderclip.contract.agent import Agent
from binderclip.contract.run import ExecutionResult, StateChange
from binderclip.contract.task import Task
from binderclip.contract.wake import WakeReceipt
from binderclip.contract.wire import iso_time
from binderclip.plugins.registry import load_adapter
from binderclip.runs.admission import admit
from binderclip.runs.desk import Desk
from binderclip.runs.roster import Roster
from binderclip.runs.settle import settle
from binderclip.runs.waking import Ask
from binderclip.store.database import Database
from binderclip.store.runfile import RunOutcome
from binderclip.store.runs import RunStore
from binderclip.store.tables import runs

START = 1_780_000_000.0
NOTHING = {"command": "/bin/true"}


class Clock:
    """A time that passes only when a test says so."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> float:
        return self.time

    def pass_minutes(self, minutes: float) -> None:
        self.time += minutes * 60


class Scene:
    """The control plane on one database, with a clock of the test's own."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = Clock()
        self.desk = Desk(db, clock=self.clock)
        self.roster = Roster(db, load_adapter, clock=self.clock)
        self.store = RunStore(db)
        self._names = (f"agent {n}" for n in itertools.count(1))

    def agent(self, **fields: Any) -> Agent:
        asked = {"name": next(self._names), "adapter_type": "process", "adapter_config": NOTHING}
        agent = Agent(id="", company_id="local", **{**asked, **fields})
        return self.roster.create_agent(agent, "person")

    def task(self, title: str = "work", **fields: Any) -> Task:
        task = Task(id="", company_id="local", identifier="", title=title, **fields)
        return self.desk.create_task(task, "person")

    def wake(self, agent: Agent, task: Task | None = None, **fields: Any) -> WakeReceipt:
        # Ids sort by time; two of one millisecond would not.
        self.clock.time += 0.01
        return self.desk.wake(Ask(agent.id, task.id if task else None, **fields))

    def admit(self, **options: Any) -> list[str]:
        self.clock.time += 0.01
        return admit(self.db, self.clock(), **options)

    def status(self, run_id: str) -> str:
        return self.store.get(run_id).status

    def waiting(self, run_id: str) -> str | None:
        return self.store.get(run_id).waiting_for

    def queued(self, agent: Agent) -> list[str]:
        query = select(runs.c.id).where(runs.c.agent_id == agent.id, runs.c.status == "queued")
        with self.db.reading() as connection:
            return list(connection.scalars(query.order_by(runs.c.id)))

    def end(self, run_id: str, **result: Any) -> None:
        """End an admitted run as its driver would, without a process."""
        fields: dict[str, Any] = {"exit_code": 0, "signal": None, "timed_out": False, **result}
        told = ExecutionResult(**fields)
        state: Any = {"cancelled": "cancelled", "budget": "cancelled"}.get(
            told.error_code or "", "failed" if told.error_code else "succeeded"
        )
        now = iso_time(self.clock())
        ended = StateChange(state=state, at=now, reason="test", actor="driver")
        history = (*self.store.history(run_id), ended)
        outcome = RunOutcome(state=state, ended_at=now, result=told, history=history)
        settle(self.db, run_id, outcome, self.clock())

    def run(self, agent: Agent, task: Task | None = None, **result: Any) -> str:
        """Wake, admit and end one run."""
        run_id = self.wake(agent, task).run_id
        assert self.admit() == [run_id]
        self.end(run_id, **result)
        return run_id


def cwd_config(tmp_path: Path, **config: Any) -> dict[str, Any]:
    return {"cwd": str(tmp_path), **NOTHING, **config}
