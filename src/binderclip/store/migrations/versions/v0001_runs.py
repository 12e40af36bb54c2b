"""Runs with their attempts, history and usage, and sessions."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Text,
)

revision = "0001"
down_revision = None


def upgrade() -> None:
    _runs()
    _sessions()
    _attempts()
    _state_changes()
    _usage()


def _runs() -> None:
    op.create_table(
        "runs",
        Column("id", Text(), nullable=False),
        Column("status", Text(), nullable=False),
        Column("adapter_type", Text(), nullable=False),
        Column("agent_id", Text(), nullable=False),
        Column("agent_name", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("task_id", Text()),
        Column("task_key", Text(), nullable=False),
        Column("cwd", Text(), nullable=False),
        Column("prompt", Text()),
        Column("wake_reasons", Text(), nullable=False),
        Column("actor", Text(), nullable=False),
        Column("retry_of", Text()),
        Column("resumed", Boolean(), nullable=False),
        Column("created_at", Text(), nullable=False),
        Column("started_at", Text()),
        Column("ended_at", Text()),
        Column("attempts", Integer(), nullable=False),
        Column("session_id", Text()),
        Column("session_reason", Text()),
        Column("provider", Text()),
        Column("model", Text()),
        Column("usage", Text()),
        Column("cost_nanousd", BigInteger()),
        Column("error_code", Text()),
        Column("error_message", Text()),
        Column("summary", Text()),
        Column("result", Text()),
        Column("coverage", Text()),
        Column("finalized", Boolean(), nullable=False),
        PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_adapter_type_id", "runs", ["adapter_type", "id"])
    op.create_index("ix_runs_agent_id_task_id", "runs", ["agent_id", "task_id"])
    op.create_index("ix_runs_status", "runs", ["status"])


def _sessions() -> None:
    op.create_table(
        "sessions",
        Column("agent_id", Text(), nullable=False),
        Column("adapter_type", Text(), nullable=False),
        Column("task_key", Text(), nullable=False),
        Column("params", Text(), nullable=False),
        Column("display_id", Text()),
        Column("cwd", Text()),
        Column("target", Text(), nullable=False),
        Column("last_run_id", Text()),
        Column("runs", Integer(), nullable=False),
        Column("tokens", BigInteger(), nullable=False),
        Column("created_at", Text(), nullable=False),
        Column("updated_at", Text(), nullable=False),
        PrimaryKeyConstraint("agent_id", "adapter_type", "task_key", name="pk_sessions"),
    )
    op.create_index("ix_sessions_updated_at", "sessions", ["updated_at"])


def _attempts() -> None:
    op.create_table(
        "attempts",
        Column("run_id", Text(), nullable=False),
        Column("attempt", Integer(), nullable=False),
        Column("started_at", Text()),
        Column("ended_at", Text()),
        Column("pid", Integer()),
        Column("reason", Text()),
        Column("exit_code", Integer()),
        Column("signal", Text()),
        Column("killed", Boolean()),
        Column("adopted", Boolean()),
        Column("stdout_bytes", BigInteger()),
        Column("stderr_bytes", BigInteger()),
        ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_attempts_run_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("run_id", "attempt", name="pk_attempts"),
    )


def _state_changes() -> None:
    op.create_table(
        "state_changes",
        Column("run_id", Text(), nullable=False),
        Column("number", Integer(), nullable=False),
        Column("state", Text(), nullable=False),
        Column("at", Text(), nullable=False),
        Column("reason", Text(), nullable=False),
        Column("actor", Text(), nullable=False),
        ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_state_changes_run_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("run_id", "number", name="pk_state_changes"),
    )


def _usage() -> None:
    op.create_table(
        "usage",
        Column("run_id", Text(), nullable=False),
        Column("attempt", Integer(), nullable=False),
        Column("input_tokens", BigInteger()),
        Column("cached_input_tokens", BigInteger()),
        Column("cache_write_tokens", BigInteger()),
        Column("output_tokens", BigInteger()),
        Column("reasoning_tokens", BigInteger()),
        Column("source", Text(), nullable=False),
        Column("basis", Text()),
        Column("provider", Text()),
        Column("model", Text()),
        Column("cost_nanousd", BigInteger()),
        ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_usage_run_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("run_id", "attempt", name="pk_usage"),
    )
