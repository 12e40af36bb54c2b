"""Runs in the database: their states, attempts, outcomes and sessions.

Every method is one transaction. Terminal states are terminal; finishing twice changes nothing.
"""

from __future__ import annotations

import builtins
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from binderclip.contract.errors import RunNotFound, StoreError
from binderclip.contract.run import TERMINAL_STATES, RunOrder, RunState, RunView, StateChange
from binderclip.contract.session import StoredSession
from binderclip.store import sessions
from binderclip.store.database import Database
from binderclip.store.rows import exit_row, order_row, outcome_row, usage_rows, view_of
from binderclip.store.runfile import RunOutcome
from binderclip.store.tables import AnyText, agents, attempts, runs, state_changes, usage
from binderclip.supervisor.records import ExitRecord

_Views: TypeAlias = builtins.list[RunView]
# Built once, since building a statement takes longer than running it.
_ONE = select(runs).where(runs.c.id == bindparam("run"))
_ONE_LOCKED = _ONE.with_for_update()
_CHANGE = update(runs).where(runs.c.id == bindparam("run"))
_ADD_ATTEMPT = insert(attempts)
_CHANGE_ATTEMPT = update(attempts).where(
    attempts.c.run_id == bindparam("of_run"), attempts.c.attempt == bindparam("number")
)
_LINES = ("state", "at", "reason", "actor")
_APPEND = insert(state_changes).from_select(
    ["run_id", "number", *_LINES],
    select(
        bindparam("run_id", type_=AnyText),
        func.coalesce(
            select(func.max(state_changes.c.number))
            .where(state_changes.c.run_id == bindparam("run_id", type_=AnyText))
            .scalar_subquery(),
            0,
        )
        + 1,
        *(bindparam(name, type_=AnyText) for name in _LINES),
    ),
)


class RunStore:
    """What is known of runs, as rows that the files of the runs can rebuild."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def create(self, order: RunOrder, state: RunState = "queued") -> None:
        """Add a run; one that is there already stays as it is."""
        with self.db.writing() as connection:
            if find(connection, order.id) is None:
                add(connection, order_row(order, state), order.wake_reasons)

    def change_state(self, run_id: str, change: StateChange) -> None:
        """Note that the run is in another state; a terminal one is never left."""
        with self.db.writing() as connection:
            enter(connection, run_id, change)

    def begin_attempt(
        self, run_id: str, attempt: int, started_at: str | None, pid: int | None = None
    ) -> None:
        with self.db.writing() as connection:
            begin_attempt(connection, run_id, attempt, started_at, pid)

    def end_attempt(self, run_id: str, attempt: int, exit: ExitRecord | Mapping[str, Any]) -> None:
        """Note the end of an attempt, as its exit.json tells it."""
        record = exit if isinstance(exit, ExitRecord) else ExitRecord.from_json(exit)
        with self.db.writing() as connection:
            _known(connection, run_id)
            set_attempt(connection, run_id, attempt, exit_row(record))

    def finish(self, run_id: str, outcome: RunOutcome) -> None:
        """Write all that a run's end brings; a run that was finished before stays as it is.

        A run of the control plane is left to its worker, for more follows from its end than rows.
        """
        with self.db.writing() as connection:
            run = _known(connection, run_id)
            if not (run["scheduled"] and _has_agent(connection, run["agent_id"])):
                finish(connection, run_id, outcome)

    def get(self, run_id: str) -> RunView:
        with self.db.reading() as connection:
            return self._view(_known(connection, run_id))

    def list(
        self,
        limit: int = 50,
        before: str | None = None,
        status: RunState | None = None,
        adapter_type: str | None = None,
        **columns: str | None,
    ) -> _Views:
        """Runs, newest first, older than the run `before`; without their whole results.

        `columns` may be company_id, agent_id, task_id and retry_of.
        """
        query = select(runs).order_by(runs.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(runs.c.id < before)
        if status is not None:
            query = query.where(runs.c.status == status)
        if adapter_type is not None:
            query = query.where(runs.c.adapter_type == adapter_type)
        for name, value in columns.items():
            if value is not None:
                query = query.where(runs.c[name] == value)
        with self.db.reading() as connection:
            found = connection.execute(query).mappings()
            return [self._view(row, whole=False) for row in found]

    def history(self, run_id: str) -> builtins.list[StateChange]:
        """The states the run was in, oldest first."""
        with self.db.reading() as connection:
            _known(connection, run_id)
            return history(connection, run_id)

    def unfinished(self) -> builtins.list[str]:
        """Ids of runs in a state that is not terminal, oldest first."""
        open_states = set(typing.get_args(RunState)) - TERMINAL_STATES
        query = select(runs.c.id).where(runs.c.status.in_(open_states)).order_by(runs.c.id)
        with self.db.reading() as connection:
            return builtins.list(connection.scalars(query))

    def finished(self) -> set[str]:
        """Ids of runs whose outcome was written by `finish`."""
        with self.db.reading() as connection:
            return set(connection.scalars(select(runs.c.id).where(runs.c.finalized)))

    def session(self, agent_id: str, adapter_type: str, task_key: str) -> StoredSession | None:
        with self.db.reading() as connection:
            return sessions.load(connection, (agent_id, adapter_type, task_key))

    def sessions(self) -> builtins.list[StoredSession]:
        """Every stored session, the one used last first."""
        with self.db.reading() as connection:
            return sessions.load_all(connection)

    def save_session(self, session: StoredSession) -> None:
        with self.db.writing() as connection:
            sessions.save(connection, session)

    def clear_session(self, agent_id: str, adapter_type: str, task_key: str) -> bool:
        """Forget a session; says whether there was one."""
        with self.db.writing() as connection:
            return sessions.clear(connection, (agent_id, adapter_type, task_key))

    def _view(self, row: RowMapping, *, whole: bool = True) -> RunView:
        return view_of(row, str(self.db.home.run_dir(row["id"])), whole=whole)


def add(connection: Connection, row: Mapping[str, Any], reasons: Iterable[str] = ()) -> None:
    """Add the row of a run and the first line of its history."""
    connection.execute(insert(runs).values(**row))
    reason = ", ".join(reasons) or "created"
    change = StateChange(
        state=row["status"], at=row["created_at"], reason=reason, actor=row["actor"]
    )
    append_change(connection, row["id"], change)


def enter(connection: Connection, run_id: str, change: StateChange, **columns: Any) -> None:
    """Put a run into another state, setting other columns along; a terminal one is never left."""
    status = _known(connection, run_id, lock=True)["status"]
    if status in TERMINAL_STATES:
        _refuse_to_leave(run_id, status, change.state)
        return
    connection.execute(_CHANGE, {"run": run_id, "status": change.state, **columns})
    append_change(connection, run_id, change)


def begin_attempt(
    connection: Connection,
    run_id: str,
    attempt: int,
    started_at: str | None,
    pid: int | None = None,
    change: StateChange | None = None,
) -> RowMapping:
    """Note that an attempt runs, and the state that this means; the run's row as it was before."""
    run = _known(connection, run_id, lock=True)
    set_attempt(connection, run_id, attempt, {"started_at": started_at, "pid": pid})
    values = {
        "started_at": run["started_at"] or started_at,
        "attempts": max(run["attempts"], attempt),
    }
    if change is not None:
        if run["status"] in TERMINAL_STATES:
            _refuse_to_leave(run_id, run["status"], change.state)
        else:
            values["status"] = change.state
            append_change(connection, run_id, change)
    connection.execute(_CHANGE, {"run": run_id, **values})
    return run


def history(connection: Connection, run_id: str) -> list[StateChange]:
    """The states a run was in, oldest first."""
    columns = [state_changes.c[name] for name in StateChange.__struct_fields__]
    query = select(*columns).where(state_changes.c.run_id == run_id)
    found = connection.execute(query.order_by(state_changes.c.number)).mappings()
    return [StateChange(**row) for row in found]


def finish(connection: Connection, run_id: str, outcome: RunOutcome) -> RowMapping | None:
    """Write all that a run's end brings; its row as it was before, None if it was over already."""
    if outcome.state not in TERMINAL_STATES:
        raise StoreError(f"Run {run_id} cannot be finished as {outcome.state}.")
    run = _known(connection, run_id, lock=True)
    if run["status"] in TERMINAL_STATES:
        _refuse_to_leave(run_id, run["status"], outcome.state)
    if run["finalized"]:
        return None
    values = {**outcome_row(run, outcome), "waiting_for": None}
    connection.execute(_CHANGE, {"run": run_id, **values})
    _write_history(connection, run, outcome)
    _write_usage(connection, run, outcome)
    sessions.carry_on(connection, run, outcome)
    return run


def find(connection: Connection, run_id: str, *, lock: bool = False) -> RowMapping | None:
    """The row of a run, held for this transaction where the database can."""
    query = _ONE_LOCKED if lock else _ONE
    return connection.execute(query, {"run": run_id}).mappings().one_or_none()


def _has_agent(connection: Connection, agent_id: str) -> bool:
    query = select(agents.c.id).where(agents.c.id == agent_id)
    return connection.scalar(query) is not None


def _known(connection: Connection, run_id: str, *, lock: bool = False) -> RowMapping:
    row = find(connection, run_id, lock=lock)
    if row is None:
        message = f"The database has no run {run_id}."
        raise RunNotFound(message, hint="`binderclip runs` lists what there is.")
    return row


def _refuse_to_leave(run_id: str, status: str, wanted: str) -> None:
    if status != wanted:
        raise StoreError(f"Run {run_id} is {status} and cannot become {wanted} any more.")


def append_change(connection: Connection, run_id: str, change: StateChange) -> None:
    """Add a line to a run's history."""
    connection.execute(_APPEND, _change_row(run_id, 0, change))


def _change_row(run_id: str, number: int, change: StateChange) -> dict[str, Any]:
    fields = {name: getattr(change, name) for name in change.__struct_fields__}
    return {"run_id": run_id, "number": number, **fields}


def set_attempt(connection: Connection, run_id: str, attempt: int, values: dict[str, Any]) -> None:
    """Write columns of an attempt's row, which is made if it is missing."""
    place = {"of_run": run_id, "number": attempt}
    if not connection.execute(_CHANGE_ATTEMPT, {**place, **values}).rowcount:
        row = {"run_id": run_id, "attempt": attempt, **values}
        connection.execute(_ADD_ATTEMPT, row)


def _write_history(connection: Connection, run: RowMapping, outcome: RunOutcome) -> None:
    """The outcome's history is complete and takes the place of what was noted on the way."""
    run_id = run["id"]
    if outcome.history:
        connection.execute(delete(state_changes).where(state_changes.c.run_id == run_id))
        rows = [_change_row(run_id, n, change) for n, change in enumerate(outcome.history, 1)]
        connection.execute(insert(state_changes), rows)
    ended = outcome.history[-1].state if outcome.history else run["status"]
    if ended != outcome.state:
        result = outcome.result
        reason = (result.error_message if result else None) or outcome.state
        change = StateChange(
            state=outcome.state, at=outcome.ended_at, reason=reason, actor=run["actor"]
        )
        append_change(connection, run_id, change)


def _write_usage(connection: Connection, run: RowMapping, outcome: RunOutcome) -> None:
    connection.execute(delete(usage).where(usage.c.run_id == run["id"]))
    rows = usage_rows(run["id"], run["attempts"], outcome)
    if rows:
        connection.execute(insert(usage), rows)
