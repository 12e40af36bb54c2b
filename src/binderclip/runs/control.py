"""What may be asked of the control plane: wake, cancel, reset; each call is one transaction.

`nudge` tells the worker of this process that there may be something to start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, update

from binderclip.contract.errors import Conflict, NotFound, RunNotFound
from binderclip.contract.ids import short
from binderclip.contract.operation import OperationStatus, WorkspaceOperation
from binderclip.contract.run import TERMINAL_STATES, ExecutionResult, RunState, StateChange
from binderclip.contract.wake import WakeReceipt
from binderclip.contract.wire import iso_time
from binderclip.runs import execute
from binderclip.runs.dependencies import wake_dependents
from binderclip.runs.driver import Clock
from binderclip.runs.waking import Ask, wake
from binderclip.store import runs, sessions
from binderclip.store.activity import Activities
from binderclip.store.agents import Agents, Pauses
from binderclip.store.database import Database
from binderclip.store.operations import Operations
from binderclip.store.rows import json_text
from binderclip.store.runfile import RunOutcome, read_outcome
from binderclip.store.tables import runs as table

Nudge = Callable[[], None]


def nobody() -> None:
    """A nudge where no worker runs in this process."""


class Control:
    """The verbs on runs, sessions and pauses."""

    def __init__(self, db: Database, *, clock: Clock = time.time, nudge: Nudge = nobody) -> None:
        self.db = db
        self.clock = clock
        self.nudge = nudge

    def now(self) -> str:
        return iso_time(self.clock())

    def wake(self, ask: Ask) -> WakeReceipt:
        """Queue a run for an agent, or join the one that waits (R2)."""
        with self.db.writing() as connection:
            receipt = wake(connection, ask, self.clock())
        self.nudge()
        return receipt

    def cancel(self, run_id: str, by: str, reason: str, *, kill: bool = False) -> RunState:
        """End a run: a queued one at once, a working one by its supervisor."""
        with self.db.writing() as connection:
            state = self._cancel_row(connection, run_id, by, reason)
        if state in TERMINAL_STATES:
            self.nudge()
            return state
        numbers = self.db.home.attempts(run_id)
        if numbers:
            execute.cancel(self.db.home.attempt_dir(run_id, numbers[-1]), by, reason, kill)
        return state

    def reset_session(self, agent_id: str, adapter_type: str, task_key: str, by: str) -> bool:
        """Forget a session; the agent's next run there starts fresh and says so (S5)."""
        with self.db.writing() as connection:
            return sessions.reset(connection, (agent_id, adapter_type, task_key), by, self.now())

    def reset_pause(self, agent_id: str, task_key: str, by: str) -> bool:
        """Close the breaker again: the agent may work on the task, its failures are forgiven."""
        with self.db.writing() as connection:
            agent = Agents(connection).get(agent_id)
            found = Pauses(connection).reset(agent_id, task_key, by, self.now())
            if found:
                self._note(connection, agent.company_id, by, "reset", ("agent", agent_id))
        self.nudge()
        return found

    def end_finalize(
        self, operation_id: str, *, succeeded: bool, error: str | None = None
    ) -> WorkspaceOperation:
        """Note how finalizing a workspace went; success may wake tasks that waited (W2, W3)."""
        status: OperationStatus = "succeeded" if succeeded else "failed"
        with self.db.writing() as connection:
            done = Operations(connection).end(operation_id, status, self.now(), error)
            if succeeded and done.task_id is not None:
                wake_dependents(connection, done.task_id, self.clock())
        self.nudge()
        return done

    def waive_finalize(self, operation_id: str, by: str, reason: str) -> WorkspaceOperation:
        """A person accepts that a workspace could not be finalized; the gates open (W4)."""
        with self.db.writing() as connection:
            waived = Operations(connection).waive(operation_id, by, reason, self.now())
            if waived.task_id is not None:
                wake_dependents(connection, waived.task_id, self.clock())
        self.nudge()
        return waived

    def _cancel_row(self, connection: Connection, run_id: str, by: str, reason: str) -> RunState:
        row = runs.find(connection, run_id, lock=True)
        if row is None:
            return self._unknown_to_the_database(run_id)
        state: RunState = row["status"]
        if state in TERMINAL_STATES:
            raise Conflict(f"Run {short(run_id)} is over: {state}.", code="run_over")
        if state == "queued" and row["scheduled"]:
            runs.finish(connection, run_id, self._cancelled(by, reason, row["created_at"]))
            return "cancelled"
        # Kept in the row as well, for a run whose process does not exist yet.
        wish = json_text({"by": by, "reason": reason})
        connection.execute(update(table).where(table.c.id == run_id).values(cancel=wish))
        return state

    def _unknown_to_the_database(self, run_id: str) -> RunState:
        home = self.db.home
        try:
            outcome = read_outcome(home, run_id) if home.run_dir(run_id).is_dir() else None
        except RunNotFound:
            outcome = None
        if outcome is not None:
            raise Conflict(f"Run {short(run_id)} is over: {outcome.state}.", code="run_over")
        if not home.attempts(run_id):
            raise NotFound(f"There is no run {run_id!r}.")
        return "running"

    def _cancelled(self, by: str, reason: str, queued_at: str) -> RunOutcome:
        now = self.now()
        result = ExecutionResult(
            exit_code=None,
            signal=None,
            timed_out=False,
            error_code="cancelled",
            error_message=f"Cancelled by {by} before it started: {reason}",
        )
        history = (
            StateChange(state="queued", at=queued_at, reason="queued", actor=by),
            StateChange(state="cancelled", at=now, reason=reason, actor=by),
        )
        return RunOutcome(state="cancelled", ended_at=now, result=result, history=history)

    def _note(
        self,
        connection: Connection,
        company_id: str,
        actor: str,
        verb: str,
        subject: tuple[str, str],
        **detail: Any,
    ) -> None:
        Activities(connection).note(company_id, actor, verb, subject, self.now(), **detail)
