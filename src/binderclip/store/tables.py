"""The database's tables as they are today; `migrations/` leads older databases here.

Times are ISO 8601 text, structures are JSON text in camelCase, money is whole nano-dollars.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator

SCHEMA_VERSION = "0001"
"""The newest migration; a database made from these tables is stamped with it."""


class AnyText(TypeDecorator[str]):
    """Text as agents and people produce it: what a database refuses to hold is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("status", AnyText, nullable=False),
    Column("adapter_type", AnyText, nullable=False),
    Column("agent_id", AnyText, nullable=False),
    Column("agent_name", AnyText, nullable=False),
    Column("company_id", AnyText, nullable=False),
    Column("task_id", AnyText),
    Column("task_key", AnyText, nullable=False),
    Column("cwd", AnyText, nullable=False),
    Column("prompt", AnyText),
    Column("wake_reasons", AnyText, nullable=False),
    Column("actor", AnyText, nullable=False),
    Column("retry_of", AnyText),
    Column("resumed", Boolean, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Column("started_at", AnyText),
    Column("ended_at", AnyText),
    Column("attempts", Integer, nullable=False),
    Column("session_id", AnyText),
    Column("session_reason", AnyText),
    Column("provider", AnyText),
    Column("model", AnyText),
    Column("usage", AnyText),
    Column("cost_nanousd", BigInteger),
    Column("error_code", AnyText),
    Column("error_message", AnyText),
    Column("summary", AnyText),
    Column("result", AnyText),
    Column("coverage", AnyText),
    Column("finalized", Boolean, nullable=False),
    Index(None, "status"),
    Index(None, "adapter_type", "id"),
    Index(None, "agent_id", "task_id"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("run_id", AnyText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("started_at", AnyText),
    Column("ended_at", AnyText),
    Column("pid", Integer),
    Column("reason", AnyText),
    Column("exit_code", Integer),
    Column("signal", AnyText),
    Column("killed", Boolean),
    Column("adopted", Boolean),
    Column("stdout_bytes", BigInteger),
    Column("stderr_bytes", BigInteger),
)

state_changes = Table(
    "state_changes",
    metadata,
    Column("run_id", AnyText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", AnyText, nullable=False),
    Column("at", AnyText, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("actor", AnyText, nullable=False),
)

usage = Table(
    "usage",
    metadata,
    Column("run_id", AnyText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("input_tokens", BigInteger),
    Column("cached_input_tokens", BigInteger),
    Column("cache_write_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("source", AnyText, nullable=False),
    Column("basis", AnyText),
    Column("provider", AnyText),
    Column("model", AnyText),
    Column("cost_nanousd", BigInteger),
)

sessions = Table(
    "sessions",
    metadata,
    Column("agent_id", AnyText, primary_key=True),
    Column("adapter_type", AnyText, primary_key=True),
    Column("task_key", AnyText, primary_key=True),
    Column("params", AnyText, nullable=False),
    Column("display_id", AnyText),
    Column("cwd", AnyText),
    Column("target", AnyText, nullable=False),
    Column("last_run_id", AnyText),
    Column("runs", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Column("updated_at", AnyText, nullable=False),
    Index(None, "updated_at"),
)

version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""The stamp; alembic keeps this table by itself, so it is not part of the schema."""
