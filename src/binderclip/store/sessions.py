"""Sessions as rows: one per agent, adapter type and task (S1)."""

from __future__ import annotations

from importlib import import_module
from typing import TypeAlias

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    and_,
    bindparam,
    delete,
    insert,
    select,
)

from binderclip.contract.run import ExecutionResult
from binderclip.contract.session import StoredSession
from binderclip.sdk.resume import next_session
from binderclip.sdk.usage import total_tokens
from binderclip.store.rows import session_of, session_row
from binderclip.store.runfile import RunOutcome
from binderclip.store.tables import session_resets, sessions

Key: TypeAlias = tuple[str, str, str]
"""Agent id, adapter type, task key."""
_KEY = ("of_agent", "of_type", "of_task")


def _is(table: Table) -> ColumnElement[bool]:
    columns = (table.c.agent_id, table.c.adapter_type, table.c.task_key)
    return and_(*(column == bindparam(name) for column, name in zip(columns, _KEY, strict=True)))


# Built once, since building a statement takes longer than running it.
_ONE = select(sessions).where(_is(sessions))
_CLEAR = delete(sessions).where(_is(sessions))
_LAST_RESET = select(session_resets).where(_is(session_resets))
_CLEAR_RESET = delete(session_resets).where(_is(session_resets))


def load(connection: Connection, key: Key) -> StoredSession | None:
    row = connection.execute(_ONE, _named(key)).mappings().one_or_none()
    return None if row is None else session_of(row)


def load_all(connection: Connection) -> list[StoredSession]:
    """Every session, the one used last first."""
    rows = connection.execute(select(sessions).order_by(sessions.c.updated_at.desc()))
    return [session_of(row) for row in rows.mappings()]


def save(connection: Connection, session: StoredSession) -> None:
    key = (session.agent_id, session.adapter_type, session.task_key)
    connection.execute(_CLEAR_RESET, _named(key))
    row = session_row(session)
    # Two runs of one session may end at once; both databases know how to insert or change.
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    names = [column.name for column in sessions.primary_key]
    statement = dialect.insert(sessions).values(**row)
    connection.execute(statement.on_conflict_do_update(index_elements=names, set_=row))


def clear(connection: Connection, key: Key) -> bool:
    """Forget a session; says whether there was one."""
    return connection.execute(_CLEAR, _named(key)).rowcount > 0


def reset(connection: Connection, key: Key, by: str, at: str) -> bool:
    """Forget a session because somebody wants it so; the next run tells it (S5)."""
    if not clear(connection, key):
        return False
    connection.execute(_CLEAR_RESET, _named(key))
    row = dict(zip(("agent_id", "adapter_type", "task_key"), key, strict=True))
    connection.execute(insert(session_resets).values(**row, at=at, by=by))
    return True


def last_reset(connection: Connection, key: Key) -> RowMapping | None:
    """Who reset a session by hand and when, if that was the last thing that happened to it."""
    return connection.execute(_LAST_RESET, _named(key)).mappings().one_or_none()


def carry_on(connection: Connection, run: RowMapping, outcome: RunOutcome) -> None:
    """Keep, replace or clear the session of a run that ended (S1)."""
    key = (run["agent_id"], run["adapter_type"], run["task_key"])
    earlier = load(connection, key)
    result = outcome.result
    if result is None or (earlier is not None and earlier.updated_at > outcome.ended_at):
        # Nothing is known, or a later run was finished before this one was recovered.
        return
    if next_session(earlier.params if earlier else None, result) is None:
        if earlier is not None:
            clear(connection, key)
    elif result.session_params:
        fresh = StoredSession(
            agent_id=key[0],
            adapter_type=key[1],
            task_key=key[2],
            params=result.session_params,
            created_at=outcome.ended_at,
        )
        resumed = earlier is not None and run["resumed"] and not result.clear_session
        save(connection, _used(earlier if resumed and earlier else fresh, run, outcome, result))
    elif earlier is not None and run["resumed"]:
        save(connection, _used(earlier, run, outcome, result))


def _used(
    session: StoredSession, run: RowMapping, outcome: RunOutcome, result: ExecutionResult
) -> StoredSession:
    """The session after one more run."""
    tokens = total_tokens(result.usage)
    if result.usage_basis != "session_cumulative":
        tokens += session.tokens
    return msgspec.structs.replace(
        session,
        params=result.session_params or session.params,
        display_id=result.session_display_id or result.session_id or session.display_id,
        cwd=run["cwd"],
        target=outcome.session_target,
        last_run_id=run["id"],
        runs=session.runs + 1,
        tokens=tokens,
        updated_at=outcome.ended_at,
    )


def _named(key: Key) -> dict[str, str]:
    return dict(zip(_KEY, key, strict=True))
