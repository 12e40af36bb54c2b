"""One database for all processes of a home; SQLite in WAL mode unless a URL names another.

A transaction that may write begins immediately: a reader that turns writer would fail at once
instead of waiting. The schema is current after `open`, or `open` raises.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, insert, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from binderclip.contract.errors import StoreError, StoreTooNew
from binderclip.store import tables
from binderclip.store.home import Home

BUSY_TIMEOUT_MS = 10_000
_SQLITE = "sqlite:///"
_SET_UP_LOCK = 0x62696E64


class Database:
    """An open database; its engine may be used from many threads."""

    def __init__(self, home: Home, engine: Engine) -> None:
        self.home = home
        self.engine = engine
        self._writing_engine = engine.execution_options(binderclip_writes=True)
        self._reading_engine = engine
        self._writers = threading.Lock() if engine.dialect.name == "sqlite" else None
        if engine.dialect.name == "postgresql":
            # What SQLite does by itself: a transaction that reads sees one state.
            self._reading_engine = engine.execution_options(isolation_level="REPEATABLE READ")

    @classmethod
    def open(cls, home: Home) -> Database:
        """Connect, and make or migrate the schema where that is needed."""
        home.ensure()
        database = cls(home, _engine(home))
        try:
            with _explained(home):
                if not _is_current(database.engine):
                    database._set_up()
        except BaseException:
            database.close()
            raise
        return database

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database and never waits for writers."""
        with _explained(self.home), self._reading_engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write; it waits for other writers before it begins."""
        with self._turn(), _explained(self.home), self._writing_engine.begin() as connection:
            yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Writers of this process wait here: SQLite would let them sleep and look again."""
        if self._writers is None:
            yield
            return
        taken = self._writers.acquire(timeout=BUSY_TIMEOUT_MS / 1000)
        try:
            yield
        finally:
            if taken:
                self._writers.release()

    def close(self) -> None:
        self.engine.dispose()

    def _set_up(self) -> None:
        """Under a lock of its own, since many processes may open a new home at once."""
        with _alone(self.home.path / "database.lock"), self._writing_engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                _set_up_sqlite(connection)
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    # The lock above holds for this machine only.
                    connection.execute(select(func.pg_advisory_xact_lock(_SET_UP_LOCK)))
                _make_current(connection, self.home)
            connection.invalidate()


def _engine(home: Home) -> Engine:
    if not home.database_url.startswith(_SQLITE):
        return _postgres(home)
    path = Path(home.database_url.removeprefix(_SQLITE))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as problem:
        hint = "Check its owner, or set BINDERCLIP_HOME to another directory."
        raise StoreError(f"{path} cannot be opened: {problem.strerror}.", hint=hint) from problem
    # A URL object, since a path may hold characters that mean something in a URL.
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, pool_size=30, max_overflow=20)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgres(home: Home) -> Engine:
    url = make_url(home.database_url)
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    try:
        return create_engine(url, pool_size=10, max_overflow=40, pool_pre_ping=True)
    except ModuleNotFoundError as problem:
        raise StoreError(
            f"BINDERCLIP_DATABASE_URL needs the Python package {problem.name}.",
            hint='Install it with `pip install "binderclip[fleet]"`.',
        ) from problem


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver would begin transactions by itself, and only when it sees a write.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("binderclip_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_sqlite(connection: Connection) -> None:
    raw: Any = connection.connection.dbapi_connection
    raw.execute("PRAGMA journal_mode = WAL")
    # Migrations rebuild tables; a dropped parent must not take its children along.
    raw.execute("PRAGMA foreign_keys = OFF")


def _is_current(engine: Engine) -> bool:
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            if mode != "wal":
                return False
        return _stamp(connection) == tables.SCHEMA_VERSION


def _stamp(connection: Connection) -> str | None:
    """The version of the schema; None when there is nothing yet."""
    names = inspect(connection).get_table_names()
    if tables.version.name in names:
        return connection.scalar(select(tables.version.c.version_num))
    if names:
        raise StoreError(
            "The database holds tables that are not binderclip's.",
            hint="Name another one in BINDERCLIP_DATABASE_URL.",
        )
    return None


def _make_current(connection: Connection, home: Home) -> None:
    stamp = _stamp(connection)
    if stamp is None:
        tables.metadata.create_all(connection)
        tables.version.create(connection)
        connection.execute(insert(tables.version).values(version_num=tables.SCHEMA_VERSION))
    elif stamp > tables.SCHEMA_VERSION:
        raise StoreTooNew(
            f"The database of {home.path} was written by a newer binderclip (schema {stamp}, "
            f"this one knows {tables.SCHEMA_VERSION}).",
            hint="Upgrade binderclip, or set BINDERCLIP_HOME to another directory.",
        )
    elif stamp < tables.SCHEMA_VERSION:
        from binderclip.store.migrate import upgrade

        upgrade(connection)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextmanager
def _explained(home: Home) -> Iterator[None]:
    """Turn the database's own errors into one that says what to do."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as problem:
        cause = getattr(problem, "orig", None) or problem
        raise StoreError(
            f"The database of {home.path} cannot be used: {cause}.",
            hint="Check its owner and the free space. A damaged one can be moved away: "
            "it is rebuilt from the run directories.",
        ) from problem
