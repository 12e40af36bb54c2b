"""The database's tables as they are today; `migrations/` leads older databases here.

Times are ISO 8601 text, structures are JSON text in camelCase, money is whole nano-dollars.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    event,
    false,
    insert,
    text,
)
from sqlalchemy.types import TypeDecorator

SCHEMA_VERSION = "0003"
"""The newest migration; a database made from these tables is stamped with it."""


QUEUED = "scheduled AND status = 'queued'"
ACTIVE = "scheduled AND status IN ('starting', 'running', 'finalizing')"


class AnyText(TypeDecorator[str]):
    """Text as agents and people produce it: what a database refuses to hold is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _unique_while(name: str, columns: tuple[str, ...], condition: str) -> Index:
    """A rule that the database itself keeps, for rows that meet the condition."""
    where = text(condition)
    return Index(name, *columns, unique=True, sqlite_where=where, postgresql_where=where)


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
    Column("scheduled", Boolean, nullable=False, server_default=false()),
    Column("not_before", AnyText),
    Column("waiting_for", AnyText),
    Column("budget_note", AnyText),
    Column("cancel", AnyText),
    Column("failure", AnyText),
    Column("retries", Integer, nullable=False, server_default="0"),
    Index(None, "status", "id"),
    Index(None, "adapter_type", "id"),
    Index(None, "agent_id", "task_id"),
    Index(None, "agent_id", "id"),
    Index(None, "company_id", "id"),
    Index(None, "task_id", "id"),
    _unique_while("uq_runs_queued", ("agent_id", "task_key"), QUEUED),
    _unique_while("uq_runs_active", ("agent_id", "task_key"), ACTIVE),
    _unique_while("uq_runs_active_task", ("task_id",), ACTIVE),
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

session_resets = Table(
    "session_resets",
    metadata,
    Column("agent_id", AnyText, primary_key=True),
    Column("adapter_type", AnyText, primary_key=True),
    Column("task_key", AnyText, primary_key=True),
    Column("at", AnyText, nullable=False),
    Column("by", AnyText, nullable=False),
)

companies = Table(
    "companies",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("name", AnyText, nullable=False),
    Column("forbid_dangerous", Boolean, nullable=False),
    Column("network", AnyText, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Column("updated_at", AnyText, nullable=False),
)

LOCAL = {
    "id": "local",
    "name": "Local",
    "forbid_dangerous": False,
    "network": "open",
    "created_at": "1970-01-01T00:00:00.000Z",
    "updated_at": "1970-01-01T00:00:00.000Z",
}
"""The company that every database has from the start."""


@event.listens_for(companies, "after_create")
def _add_local_company(_table: Table, connection: Connection, **_: object) -> None:
    connection.execute(insert(companies).values(**LOCAL))


agents = Table(
    "agents",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("company_id", AnyText, ForeignKey("companies.id"), nullable=False),
    Column("name", AnyText, nullable=False),
    Column("adapter_type", AnyText, nullable=False),
    Column("adapter_config", AnyText, nullable=False),
    Column("role", AnyText),
    Column("status", AnyText, nullable=False),
    Column("paused_reason", AnyText),
    Column("heartbeat_minutes", Float),
    Column("next_beat_at", AnyText),
    Column("max_concurrent_runs", Integer, nullable=False),
    Column("retry_limit", Integer, nullable=False),
    Column("budget", AnyText, nullable=False),
    Column("run_budget", AnyText, nullable=False),
    Column("session_limits", AnyText),
    Column("environment_id", AnyText),
    Column("workspace", AnyText, nullable=False),
    Column("instructions", AnyText),
    Column("created_at", AnyText, nullable=False),
    Column("updated_at", AnyText, nullable=False),
    Index(None, "next_beat_at"),
    _unique_while("uq_agents_name", ("company_id", "name"), "status <> 'archived'"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("company_id", AnyText, ForeignKey("companies.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("title", AnyText, nullable=False),
    Column("body", AnyText, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("priority", AnyText, nullable=False),
    Column("assignee_agent_id", AnyText, ForeignKey("agents.id")),
    Column("parent_id", AnyText, ForeignKey("tasks.id")),
    Column("cwd", AnyText),
    Column("workspace", AnyText),
    Column("environment_id", AnyText),
    Column("checkout_run_id", AnyText),
    Column("created_by", AnyText, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Column("updated_at", AnyText, nullable=False),
    Column("completed_at", AnyText),
    Column("branch_template", AnyText),
    Column("base_ref", AnyText),
    Column("with_dirty_files", Boolean, server_default=false(), nullable=False),
    Index("uq_tasks_number", "company_id", "number", unique=True),
    Index(None, "company_id", "status", "id"),
    Index(None, "assignee_agent_id", "status"),
    Index(None, "parent_id"),
)

task_blockers = Table(
    "task_blockers",
    metadata,
    Column("task_id", AnyText, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("blocker_id", AnyText, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "blocker_id"),
)

comments = Table(
    "comments",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("task_id", AnyText, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    Column("author", AnyText, nullable=False),
    Column("body", AnyText, nullable=False),
    Column("run_id", AnyText),
    Column("created_at", AnyText, nullable=False),
    Index(None, "task_id", "id"),
)

interactions = Table(
    "interactions",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("task_id", AnyText, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    Column("run_id", AnyText),
    Column("agent_id", AnyText),
    Column("kind", AnyText, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("payload", AnyText, nullable=False),
    Column("response", AnyText),
    Column("created_at", AnyText, nullable=False),
    Column("resolved_at", AnyText),
    Column("resolved_by", AnyText),
    Index(None, "task_id", "id"),
    Index(None, "status", "id"),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("company_id", AnyText, ForeignKey("companies.id"), nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("payload", AnyText, nullable=False),
    Column("requested_by", AnyText),
    Column("run_id", AnyText),
    Column("task_ids", AnyText, nullable=False),
    Column("decision_note", AnyText),
    Column("created_at", AnyText, nullable=False),
    Column("decided_at", AnyText),
    Column("decided_by", AnyText),
    Index(None, "company_id", "status", "id"),
)

wakes = Table(
    "wakes",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("run_id", AnyText, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("agent_id", AnyText, nullable=False),
    Column("task_id", AnyText),
    Column("reason", AnyText, nullable=False),
    Column("actor", AnyText, nullable=False),
    Column("at", AnyText, nullable=False),
    Column("prompt", AnyText),
    Column("comment_id", AnyText),
    Column("approval_id", AnyText),
    Column("coalesced", Boolean, nullable=False),
    Index(None, "run_id", "id"),
    Index(None, "task_id", "reason", "at"),
)

pauses = Table(
    "pauses",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("agent_id", AnyText, nullable=False),
    Column("task_key", AnyText, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("error_code", AnyText),
    Column("error_message", AnyText),
    Column("run_id", AnyText, nullable=False),
    Column("since", AnyText, nullable=False),
    Column("reset_at", AnyText),
    Column("reset_by", AnyText),
    Index(None, "agent_id", "task_key"),
    _unique_while("uq_pauses_open", ("agent_id", "task_key"), "reset_at IS NULL"),
)

environments = Table(
    "environments",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("company_id", AnyText, ForeignKey("companies.id"), nullable=False),
    Column("name", AnyText, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("config", AnyText, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Column("updated_at", AnyText, nullable=False),
    Index("uq_environments_name", "company_id", "name", unique=True),
)

secrets = Table(
    "secrets",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("company_id", AnyText, ForeignKey("companies.id"), nullable=False),
    Column("name", AnyText, nullable=False),
    Column("sealed", AnyText, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Column("updated_at", AnyText, nullable=False),
    Index("uq_secrets_name", "company_id", "name", unique=True),
)

operations = Table(
    "operations",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("run_id", AnyText, nullable=False),
    Column("task_id", AnyText),
    Column("kind", AnyText, nullable=False),
    Column("status", AnyText, nullable=False),
    Column("started_at", AnyText, nullable=False),
    Column("ended_at", AnyText),
    Column("error", AnyText),
    Column("detail", AnyText, nullable=False),
    Column("waived_by", AnyText),
    Column("waive_reason", AnyText),
    Index(None, "run_id", "id"),
    Index(None, "task_id", "kind", "id"),
)

activity = Table(
    "activity",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("company_id", AnyText, nullable=False),
    Column("at", AnyText, nullable=False),
    Column("actor", AnyText, nullable=False),
    Column("verb", AnyText, nullable=False),
    Column("subject_kind", AnyText, nullable=False),
    Column("subject_id", AnyText, nullable=False),
    Column("detail", AnyText, nullable=False),
    Index(None, "company_id", "id"),
    Index(None, "subject_kind", "subject_id", "id"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope", AnyText, primary_key=True),
    Column("key", AnyText, primary_key=True),
    Column("request", AnyText, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", AnyText, nullable=False),
    Column("created_at", AnyText, nullable=False),
    Index(None, "created_at"),
)
"""Answers to creating requests, so that a repeated one gets the same."""

version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""The stamp; alembic keeps this table by itself, so it is not part of the schema."""
