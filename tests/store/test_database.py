"""Opening a database: new, older, newer, damaged, and by many processes at once."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, MetaData, create_engine, insert, select, text

from binderclip.contract.errors import StoreError, StoreTooNew
from binderclip.store import migrate, tables
from binderclip.store.database import Database
from binderclip.store.home import Home
from tests.postgres import Server

SESSION = {
    "agent_id": "a",
    "adapter_type": "process",
    "task_key": "t",
    "params": "{}",
    "target": "local",
    "runs": 1,
    "tokens": 0,
    "created_at": "",
    "updated_at": "",
}
TODAY = tables.SCHEMA_VERSION
OLDER = sorted(
    path.name[1:5]
    for path in (migrate.FOLDER / "versions").glob("v*.py")
    if path.name[1:5] != TODAY
)
SECOND = """
from alembic import op
from sqlalchemy import Column, Text

revision = "0999"
down_revision = "{today}"


def upgrade():
    op.add_column("sessions", Column("colour", Text, server_default="blue"))
    {then}
"""
OPENS = """
import sys
from pathlib import Path
from binderclip.store.database import Database
from binderclip.store.home import Home
Database.open(Home(Path(sys.argv[1]))).close()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def newer_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second migration, as if this were the next release; its file."""
    folder = tmp_path / "100% migrations"
    shutil.copytree(migrate.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(migrate, "FOLDER", folder)
    second = folder / "versions" / "v0999_colour.py"
    second.write_text(SECOND.format(then="", today=TODAY))
    monkeypatch.setattr(tables, "SCHEMA_VERSION", "0999")
    return second


def file_of(home: Home) -> Path:
    return home.path / "binderclip.db"


def schema(path: Path) -> list[tuple[str, str, str]]:
    query = "select type, name, coalesce(sql, '') from sqlite_master order by type, name"
    connection = sqlite3.connect(path)
    try:
        return [
            (kind, name, " ".join(sql.split())) for kind, name, sql in connection.execute(query)
        ]
    finally:
        connection.close()


def shapes(path: Path) -> dict[str, object]:
    """Tables by their columns and keys, since added columns stand elsewhere in the text."""
    found: dict[str, object] = {}
    for kind, name, sql in schema(path):
        if "alembic_version" in name:
            continue
        found[name] = sql if kind != "table" else table_shape(path, name)
    return found


def table_shape(path: Path, name: str) -> object:
    columns = rows_of(path, f"pragma_table_xinfo('{name}')")
    keys = sorted(row[2:] for row in rows_of(path, f"pragma_foreign_key_list('{name}')"))
    return columns, keys


def rows_of(path: Path, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"select * from {table}").fetchall()
    finally:
        connection.close()


def execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.execute(statement)
        connection.commit()
    finally:
        connection.close()


def open_once(home: Home) -> None:
    Database.open(home).close()


def test_a_new_database_is_private_and_in_wal_mode(home: Home) -> None:
    """D5: WAL, a busy timeout of ten seconds, synchronous NORMAL, foreign keys."""
    with Database.open(home) as database, database.reading() as connection:
        asked = ("journal_mode", "busy_timeout", "synchronous", "foreign_keys")
        found = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in asked]
        stamp = connection.scalar(select(tables.version.c.version_num))
    assert found == ["wal", 10_000, 1, 1]
    assert stamp == tables.SCHEMA_VERSION
    assert stat.S_IMODE(file_of(home).stat().st_mode) == 0o600


def test_the_snapshot_equals_the_migrations(home: Home, tmp_path: Path) -> None:
    open_once(home)
    migrated = tmp_path / "migrated.db"
    engine = create_engine(f"sqlite:///{migrated}")
    with engine.begin() as connection:
        migrate.upgrade(connection)
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, tables.metadata) == []
        assert context.get_current_revision() == tables.SCHEMA_VERSION
    engine.dispose()

    assert shapes(migrated) == shapes(file_of(home))
    assert rows_of(migrated, "companies") == rows_of(file_of(home), "companies")


def test_the_migrations_lead_postgres_to_the_same_tables(postgres: Server, tmp_path: Path) -> None:
    """D5: the same on SQLite and Postgres."""
    home = Home(tmp_path / "home", postgres.database()).ensure()
    with pytest.MonkeyPatch.context() as today:
        today.setattr(tables, "SCHEMA_VERSION", "0001")
        engine = create_engine(home.database_url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            migrate.upgrade(connection, "0001")
        engine.dispose()
    with Database.open(home) as database, database.reading() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, tables.metadata) == []
        assert context.get_current_revision() == tables.SCHEMA_VERSION
        assert connection.execute(text("select id from companies")).scalars().all() == ["local"]


def test_a_database_server_that_is_away_is_explained(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", "postgresql://nobody@127.0.0.1:9/none")
    with pytest.raises(StoreError, match="cannot be used"):
        Database.open(home)


def test_a_current_database_opens_without_alembic(home: Home) -> None:
    """D11: alembic is imported only when the schema version differs."""
    code = OPENS + "assert 'alembic' not in sys.modules\n"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, str(home.path)], check=True)
    assert file_of(home).exists()


def test_an_older_database_is_migrated_and_keeps_its_rows(home: Home, newer_schema: Path) -> None:
    with pytest.MonkeyPatch.context() as today:
        today.setattr(tables, "SCHEMA_VERSION", TODAY)
        with Database.open(home) as database, database.writing() as connection:
            connection.execute(insert(tables.sessions).values(**SESSION))
    for _ in range(2):
        with Database.open(home) as database, database.reading() as connection:
            assert connection.execute(text("select colour from sessions")).scalar() == "blue"
            assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1


def fill(engine: Engine) -> dict[str, dict[str, Any]]:
    """Put a row into every table of an old database, each column set; the rows by table."""
    values: dict[type, Any] = {str: "k", int: 7, bool: True, float: 0.5}
    known = MetaData()
    known.reflect(engine)
    rows: dict[str, dict[str, Any]] = {}
    with engine.begin() as connection:
        for table in known.sorted_tables:
            if table.name != "alembic_version":
                row = {column.name: values[column.type.python_type] for column in table.columns}
                connection.execute(insert(table).values(**row))
                rows[table.name] = row
    return rows


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("kept_by", ["sqlite", "postgres"])
def test_every_row_of_every_older_version_is_kept(
    kept_by: str, version: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """D5: whatever an older binderclip wrote is there after an upgrade, value by value."""
    server = request.getfixturevalue("postgres") if kept_by == "postgres" else None
    home = Home(tmp_path / "home", server.database() if server else None).ensure()
    engine = create_engine(home.database_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        migrate.upgrade(connection, version)
    rows = fill(engine)
    engine.dispose()
    assert {"runs", "attempts", "state_changes", "sessions", "usage"} <= rows.keys()
    with Database.open(home) as database, database.reading() as connection:
        stamp = connection.scalar(select(tables.version.c.version_num))
        assert stamp == tables.SCHEMA_VERSION
        for name, row in rows.items():
            table = tables.metadata.tables[name]
            found = [dict(each) for each in connection.execute(select(table)).mappings()]
            assert row in [{key: each[key] for key in row} for each in found], name


def test_a_migration_that_fails_changes_nothing(home: Home, newer_schema: Path) -> None:
    with pytest.MonkeyPatch.context() as today:
        today.setattr(tables, "SCHEMA_VERSION", TODAY)
        open_once(home)
    before = schema(file_of(home))
    newer_schema.write_text(SECOND.format(then='op.execute("select * from nowhere")', today=TODAY))
    with pytest.raises(StoreError, match="no such table: nowhere"):
        open_once(home)
    assert schema(file_of(home)) == before


def test_a_newer_database_is_refused_and_left_alone(home: Home) -> None:
    open_once(home)
    execute(file_of(home), "update alembic_version set version_num = '9999'")
    before = schema(file_of(home))
    with pytest.raises(StoreTooNew, match="9999") as caught:
        open_once(home)
    assert caught.value.hint is not None and "Upgrade binderclip" in caught.value.hint
    assert schema(file_of(home)) == before


def test_a_database_of_somebody_else_is_refused(home: Home) -> None:
    execute(home.ensure().path / "binderclip.db", "create table recipes (name text)")
    with pytest.raises(StoreError, match="not binderclip's"):
        open_once(home)
    assert [name for _, name, _ in schema(file_of(home))] == ["recipes"]


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_damaged_file_is_explained(home: Home, content: bytes) -> None:
    file = home.ensure().path / "binderclip.db"
    file.write_bytes(content)
    with pytest.raises(StoreError, match="cannot be used") as caught:
        open_once(home)
    assert caught.value.hint is not None and "rebuilt" in caught.value.hint
    assert file.read_bytes() == content


def test_a_file_that_cannot_be_opened_is_named(home: Home) -> None:
    (home.ensure().path / "binderclip.db").mkdir()
    with pytest.raises(StoreError, match=r"binderclip\.db cannot be opened"):
        open_once(home)


def test_a_path_with_odd_characters_is_a_path(tmp_path: Path) -> None:
    home = Home(tmp_path / "what? 100% #1 ü")
    open_once(home)
    assert file_of(home).stat().st_size > 0


def test_many_processes_may_open_a_new_home_at_once(home: Home) -> None:
    command = [sys.executable, "-c", OPENS, str(home.path)]
    children = [subprocess.Popen(command) for _ in range(6)]
    assert [child.wait() for child in children] == [0] * 6
    open_once(home)


def test_a_reader_sees_one_state_while_others_write(home: Home) -> None:
    count = text("select count(*) from sessions")
    with Database.open(home) as database:
        with database.reading() as reader:
            assert reader.execute(count).scalar() == 0
            with database.writing() as writer:
                writer.execute(insert(tables.sessions).values(**SESSION))
            assert reader.execute(count).scalar() == 0
        with database.reading() as reader:
            assert reader.execute(count).scalar() == 1


def test_an_exception_undoes_the_transaction(home: Home) -> None:
    with Database.open(home) as database:
        with pytest.raises(KeyError), database.writing() as writer:
            writer.execute(insert(tables.sessions).values(**SESSION))
            raise KeyError
        with database.reading() as reader:
            assert reader.execute(text("select count(*) from sessions")).scalar() == 0


def test_a_process_killed_in_a_transaction_leaves_no_half_of_it(home: Home) -> None:
    """D5: a crash anywhere loses the transaction as a whole, and the lock goes with it."""
    code = OPENS + (
        "from sqlalchemy import text\n"
        "database = Database.open(Home(Path(sys.argv[1])))\n"
        "with database.writing() as connection:\n"
        "    for n in range(2000):\n"
        "        connection.execute(text('insert into sessions values'\n"
        "            \" (:n, 'x', 'y', :p, null, null, 'local', null, 1, 0, '', '')\"),\n"
        "            {'n': str(n), 'p': 'x' * 5000})\n"
        "    print('inside', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(home.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"inside\n"
        os.kill(child.pid, signal.SIGKILL)
    with Database.open(home) as database, database.writing() as connection:
        assert connection.execute(text("select count(*) from sessions")).scalar() == 0
        assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
