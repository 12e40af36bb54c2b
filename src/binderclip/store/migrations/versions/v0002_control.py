"""Companies, agents, tasks and all that decides when an agent runs."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Text,
    column,
    false,
    table,
    text,
)

revision = "0002"
down_revision = "0001"
_QUEUED = text("scheduled AND status = 'queued'")
_ACTIVE = text("scheduled AND status IN ('starting', 'running', 'finalizing')")


def upgrade() -> None:
    _activity()
    _companies()
    _idempotency()
    _operations()
    _pauses()
    _session_resets()
    _agents()
    _approvals()
    _environments()
    _secrets()
    _wakes()
    _tasks()
    _comments()
    _interactions()
    _task_blockers()
    _runs()


def _activity() -> None:
    op.create_table(
        "activity",
        Column("id", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("at", Text(), nullable=False),
        Column("actor", Text(), nullable=False),
        Column("verb", Text(), nullable=False),
        Column("subject_kind", Text(), nullable=False),
        Column("subject_id", Text(), nullable=False),
        Column("detail", Text(), nullable=False),
        PrimaryKeyConstraint("id", name="pk_activity"),
    )
    op.create_index("ix_activity_company_id_id", "activity", ["company_id", "id"])
    op.create_index(
        "ix_activity_subject_kind_subject_id_id", "activity", ["subject_kind", "subject_id", "id"]
    )


def _companies() -> None:
    op.create_table(
        "companies",
        Column("id", Text(), nullable=False),
        Column("name", Text(), nullable=False),
        Column("forbid_dangerous", Boolean(), nullable=False),
        Column("network", Text(), nullable=False),
        Column("created_at", Text(), nullable=False),
        Column("updated_at", Text(), nullable=False),
        PrimaryKeyConstraint("id", name="pk_companies"),
    )
    op.bulk_insert(
        table(
            "companies",
            column("id"),
            column("name"),
            column("forbid_dangerous", Boolean),
            column("network"),
            column("created_at"),
            column("updated_at"),
        ),
        [
            {
                "id": "local",
                "name": "Local",
                "forbid_dangerous": False,
                "network": "open",
                "created_at": "1970-01-01T00:00:00.000Z",
                "updated_at": "1970-01-01T00:00:00.000Z",
            }
        ],
    )


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        Column("scope", Text(), nullable=False),
        Column("key", Text(), nullable=False),
        Column("request", Text(), nullable=False),
        Column("status", Integer(), nullable=False),
        Column("answer", Text(), nullable=False),
        Column("created_at", Text(), nullable=False),
        PrimaryKeyConstraint("scope", "key", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])


def _operations() -> None:
    op.create_table(
        "operations",
        Column("id", Text(), nullable=False),
        Column("run_id", Text(), nullable=False),
        Column("task_id", Text()),
        Column("kind", Text(), nullable=False),
        Column("status", Text(), nullable=False),
        Column("started_at", Text(), nullable=False),
        Column("ended_at", Text()),
        Column("error", Text()),
        Column("detail", Text(), nullable=False),
        Column("waived_by", Text()),
        Column("waive_reason", Text()),
        PrimaryKeyConstraint("id", name="pk_operations"),
    )
    op.create_index("ix_operations_run_id_id", "operations", ["run_id", "id"])
    op.create_index("ix_operations_task_id_kind_id", "operations", ["task_id", "kind", "id"])


def _pauses() -> None:
    op.create_table(
        "pauses",
        Column("id", Text(), nullable=False),
        Column("agent_id", Text(), nullable=False),
        Column("task_key", Text(), nullable=False),
        Column("reason", Text(), nullable=False),
        Column("error_code", Text()),
        Column("error_message", Text()),
        Column("run_id", Text(), nullable=False),
        Column("since", Text(), nullable=False),
        Column("reset_at", Text()),
        Column("reset_by", Text()),
        PrimaryKeyConstraint("id", name="pk_pauses"),
    )
    op.create_index("ix_pauses_agent_id_task_key", "pauses", ["agent_id", "task_key"])
    op.create_index(
        "uq_pauses_open",
        "pauses",
        ["agent_id", "task_key"],
        unique=True,
        sqlite_where=text("reset_at IS NULL"),
        postgresql_where=text("reset_at IS NULL"),
    )


def _session_resets() -> None:
    op.create_table(
        "session_resets",
        Column("agent_id", Text(), nullable=False),
        Column("adapter_type", Text(), nullable=False),
        Column("task_key", Text(), nullable=False),
        Column("at", Text(), nullable=False),
        Column("by", Text(), nullable=False),
        PrimaryKeyConstraint("agent_id", "adapter_type", "task_key", name="pk_session_resets"),
    )


def _agents() -> None:
    op.create_table(
        "agents",
        Column("id", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("name", Text(), nullable=False),
        Column("adapter_type", Text(), nullable=False),
        Column("adapter_config", Text(), nullable=False),
        Column("role", Text()),
        Column("status", Text(), nullable=False),
        Column("paused_reason", Text()),
        Column("heartbeat_minutes", Float()),
        Column("next_beat_at", Text()),
        Column("max_concurrent_runs", Integer(), nullable=False),
        Column("retry_limit", Integer(), nullable=False),
        Column("budget", Text(), nullable=False),
        Column("run_budget", Text(), nullable=False),
        Column("session_limits", Text()),
        Column("environment_id", Text()),
        Column("workspace", Text(), nullable=False),
        Column("instructions", Text()),
        Column("created_at", Text(), nullable=False),
        Column("updated_at", Text(), nullable=False),
        ForeignKeyConstraint(["company_id"], ["companies.id"], name="fk_agents_company_id"),
        PrimaryKeyConstraint("id", name="pk_agents"),
    )
    op.create_index("ix_agents_next_beat_at", "agents", ["next_beat_at"])
    op.create_index(
        "uq_agents_name",
        "agents",
        ["company_id", "name"],
        unique=True,
        sqlite_where=text("status <> 'archived'"),
        postgresql_where=text("status <> 'archived'"),
    )


def _approvals() -> None:
    op.create_table(
        "approvals",
        Column("id", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("kind", Text(), nullable=False),
        Column("status", Text(), nullable=False),
        Column("payload", Text(), nullable=False),
        Column("requested_by", Text()),
        Column("run_id", Text()),
        Column("task_ids", Text(), nullable=False),
        Column("decision_note", Text()),
        Column("created_at", Text(), nullable=False),
        Column("decided_at", Text()),
        Column("decided_by", Text()),
        ForeignKeyConstraint(["company_id"], ["companies.id"], name="fk_approvals_company_id"),
        PrimaryKeyConstraint("id", name="pk_approvals"),
    )
    op.create_index(
        "ix_approvals_company_id_status_id", "approvals", ["company_id", "status", "id"]
    )


def _environments() -> None:
    op.create_table(
        "environments",
        Column("id", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("name", Text(), nullable=False),
        Column("kind", Text(), nullable=False),
        Column("config", Text(), nullable=False),
        Column("created_at", Text(), nullable=False),
        Column("updated_at", Text(), nullable=False),
        ForeignKeyConstraint(["company_id"], ["companies.id"], name="fk_environments_company_id"),
        PrimaryKeyConstraint("id", name="pk_environments"),
    )
    op.create_index("uq_environments_name", "environments", ["company_id", "name"], unique=True)


def _secrets() -> None:
    op.create_table(
        "secrets",
        Column("id", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("name", Text(), nullable=False),
        Column("sealed", Text(), nullable=False),
        Column("created_at", Text(), nullable=False),
        Column("updated_at", Text(), nullable=False),
        ForeignKeyConstraint(["company_id"], ["companies.id"], name="fk_secrets_company_id"),
        PrimaryKeyConstraint("id", name="pk_secrets"),
    )
    op.create_index("uq_secrets_name", "secrets", ["company_id", "name"], unique=True)


def _wakes() -> None:
    op.create_table(
        "wakes",
        Column("id", Text(), nullable=False),
        Column("run_id", Text(), nullable=False),
        Column("agent_id", Text(), nullable=False),
        Column("task_id", Text()),
        Column("reason", Text(), nullable=False),
        Column("actor", Text(), nullable=False),
        Column("at", Text(), nullable=False),
        Column("prompt", Text()),
        Column("comment_id", Text()),
        Column("approval_id", Text()),
        Column("coalesced", Boolean(), nullable=False),
        ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_wakes_run_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_wakes"),
    )
    op.create_index("ix_wakes_run_id_id", "wakes", ["run_id", "id"])
    op.create_index("ix_wakes_task_id_reason_at", "wakes", ["task_id", "reason", "at"])


def _tasks() -> None:
    op.create_table(
        "tasks",
        Column("id", Text(), nullable=False),
        Column("company_id", Text(), nullable=False),
        Column("number", Integer(), nullable=False),
        Column("title", Text(), nullable=False),
        Column("body", Text(), nullable=False),
        Column("status", Text(), nullable=False),
        Column("priority", Text(), nullable=False),
        Column("assignee_agent_id", Text()),
        Column("parent_id", Text()),
        Column("cwd", Text()),
        Column("workspace", Text()),
        Column("environment_id", Text()),
        Column("checkout_run_id", Text()),
        Column("created_by", Text(), nullable=False),
        Column("created_at", Text(), nullable=False),
        Column("updated_at", Text(), nullable=False),
        Column("completed_at", Text()),
        ForeignKeyConstraint(
            ["assignee_agent_id"], ["agents.id"], name="fk_tasks_assignee_agent_id"
        ),
        ForeignKeyConstraint(["company_id"], ["companies.id"], name="fk_tasks_company_id"),
        ForeignKeyConstraint(["parent_id"], ["tasks.id"], name="fk_tasks_parent_id"),
        PrimaryKeyConstraint("id", name="pk_tasks"),
    )
    op.create_index("ix_tasks_assignee_agent_id_status", "tasks", ["assignee_agent_id", "status"])
    op.create_index("ix_tasks_company_id_status_id", "tasks", ["company_id", "status", "id"])
    op.create_index("ix_tasks_parent_id", "tasks", ["parent_id"])
    op.create_index("uq_tasks_number", "tasks", ["company_id", "number"], unique=True)


def _comments() -> None:
    op.create_table(
        "comments",
        Column("id", Text(), nullable=False),
        Column("task_id", Text(), nullable=False),
        Column("author", Text(), nullable=False),
        Column("body", Text(), nullable=False),
        Column("run_id", Text()),
        Column("created_at", Text(), nullable=False),
        ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name="fk_comments_task_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("id", name="pk_comments"),
    )
    op.create_index("ix_comments_task_id_id", "comments", ["task_id", "id"])


def _interactions() -> None:
    op.create_table(
        "interactions",
        Column("id", Text(), nullable=False),
        Column("task_id", Text(), nullable=False),
        Column("run_id", Text()),
        Column("agent_id", Text()),
        Column("kind", Text(), nullable=False),
        Column("status", Text(), nullable=False),
        Column("payload", Text(), nullable=False),
        Column("response", Text()),
        Column("created_at", Text(), nullable=False),
        Column("resolved_at", Text()),
        Column("resolved_by", Text()),
        ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name="fk_interactions_task_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("id", name="pk_interactions"),
    )
    op.create_index("ix_interactions_status_id", "interactions", ["status", "id"])
    op.create_index("ix_interactions_task_id_id", "interactions", ["task_id", "id"])


def _task_blockers() -> None:
    op.create_table(
        "task_blockers",
        Column("task_id", Text(), nullable=False),
        Column("blocker_id", Text(), nullable=False),
        ForeignKeyConstraint(
            ["blocker_id"], ["tasks.id"], name="fk_task_blockers_blocker_id", ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name="fk_task_blockers_task_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("task_id", "blocker_id", name="pk_task_blockers"),
    )
    op.create_index("ix_task_blockers_blocker_id", "task_blockers", ["blocker_id"])


def _runs() -> None:
    op.add_column("runs", Column("scheduled", Boolean(), server_default=false(), nullable=False))
    op.add_column("runs", Column("not_before", Text()))
    op.add_column("runs", Column("waiting_for", Text()))
    op.add_column("runs", Column("budget_note", Text()))
    op.add_column("runs", Column("cancel", Text()))
    op.add_column("runs", Column("failure", Text()))
    op.add_column("runs", Column("retries", Integer(), server_default="0", nullable=False))
    op.drop_index("ix_runs_status", table_name="runs")
    op.create_index("ix_runs_agent_id_id", "runs", ["agent_id", "id"])
    op.create_index("ix_runs_company_id_id", "runs", ["company_id", "id"])
    op.create_index("ix_runs_status_id", "runs", ["status", "id"])
    op.create_index("ix_runs_task_id_id", "runs", ["task_id", "id"])
    op.create_index(
        "uq_runs_active",
        "runs",
        ["agent_id", "task_key"],
        unique=True,
        sqlite_where=_ACTIVE,
        postgresql_where=_ACTIVE,
    )
    op.create_index(
        "uq_runs_active_task",
        "runs",
        ["task_id"],
        unique=True,
        sqlite_where=_ACTIVE,
        postgresql_where=_ACTIVE,
    )
    op.create_index(
        "uq_runs_queued",
        "runs",
        ["agent_id", "task_key"],
        unique=True,
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    )
