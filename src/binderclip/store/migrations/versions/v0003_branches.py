"""How the worktree of a task is made: its branch, what it starts from, uncommitted files."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, Text, false

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("tasks", Column("branch_template", Text()))
    op.add_column("tasks", Column("base_ref", Text()))
    op.add_column(
        "tasks", Column("with_dirty_files", Boolean(), server_default=false(), nullable=False)
    )
