"""One worker for each home and each database, by locks that end with the process."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import Connection, func, select

from binderclip.contract.errors import Conflict
from binderclip.store.database import Database
from binderclip.supervisor import locks

LOCK = "worker.lock"
_DATABASE_LOCK = 0x62637770
"""Workers of several homes on one PostgreSQL would take each other's runs for abandoned."""


class WorkerLock:
    """Held from the beginning to `release`; Conflict if another worker has it."""

    def __init__(self, db: Database) -> None:
        self._path = db.home.path / LOCK
        held = locks.take(str(self._path))
        if held is None:
            raise _busy(f"Another binderclip server works on {db.home.path}{_holder(self._path)}.")
        self._held = held
        os.ftruncate(held, 0)
        os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
        self._session: Connection | None = None
        try:
            self._session = _lock_database(db)
        except BaseException:
            locks.release(held)
            raise

    def release(self) -> None:
        if self._session is not None:
            self._session.close()
        locks.release(self._held)


def _lock_database(db: Database) -> Connection | None:
    if db.engine.dialect.name != "postgresql":
        return None
    session = db.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    if session.scalar(select(func.pg_try_advisory_lock(_DATABASE_LOCK))):
        # Never back into the pool: the lock ends when this connection does.
        session.detach()
        return session
    session.close()
    raise _busy("A binderclip server of another home works on this database.")


def _busy(message: str) -> Conflict:
    hint = "Use that one, end it, or set BINDERCLIP_HOME to another directory."
    return Conflict(message, code="home_busy", hint=hint)


def _holder(path: Path) -> str:
    try:
        pid = path.read_text().strip()
    except OSError:
        return ""
    return f" (process {pid})" if pid.isdigit() else ""
