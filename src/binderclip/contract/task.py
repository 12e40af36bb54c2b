"""Tasks, called issues on the wire, and what people and agents say about them (R1)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from binderclip.contract.agent import WorkspaceMode
from binderclip.contract.wire import Wire

TaskStatus = Literal["backlog", "todo", "in_progress", "in_review", "blocked", "done", "cancelled"]
CLOSED_STATUSES: frozenset[TaskStatus] = frozenset({"done", "cancelled"})
Priority = Literal["critical", "high", "medium", "low"]
InteractionKind = Literal["request_confirmation", "suggest_tasks", "ask_user_questions"]
InteractionStatus = Literal["open", "accepted", "rejected", "answered", "cancelled"]
ApprovalStatus = Literal["pending", "approved", "rejected", "cancelled"]


class Task(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A piece of work; `identifier` is its short name in the company, like `T-12`."""

    id: str
    company_id: str
    identifier: str
    title: str
    body: str = ""
    status: TaskStatus = "todo"
    priority: Priority = "medium"
    assignee_agent_id: str | None = None
    parent_id: str | None = None
    blocked_by: tuple[str, ...] = ()
    cwd: str | None = None
    workspace: WorkspaceMode | None = None
    environment_id: str | None = None
    branch_template: str | None = None
    """The branch of its worktree, with `{task}` and `{agent}` in it."""
    base_ref: str | None = None
    """What its worktree starts from; the HEAD of its repository if None."""
    with_dirty_files: bool = False
    """Whether uncommitted files are taken along into its worktree."""
    checkout_run_id: str | None = None
    created_by: str = "person"
    created_at: str = ""
    updated_at: str = ""
    completed_at: str | None = None


class Comment(Wire, frozen=True, kw_only=True, omit_defaults=False):
    id: str
    task_id: str
    author: str
    """`person`, or `agent:<id>`."""
    body: str
    run_id: str | None = None
    created_at: str = ""


class Interaction(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A question of an agent that a person answers; the run that asked is over by then."""

    id: str
    task_id: str
    run_id: str | None
    agent_id: str | None
    kind: InteractionKind
    status: InteractionStatus = "open"
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    response: dict[str, Any] | None = None
    created_at: str = ""
    resolved_at: str | None = None
    resolved_by: str | None = None


class Approval(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Something that only a person may allow, linked to tasks."""

    id: str
    company_id: str
    kind: str
    status: ApprovalStatus = "pending"
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    requested_by: str | None = None
    """The agent that asked."""
    run_id: str | None = None
    task_ids: tuple[str, ...] = ()
    decision_note: str | None = None
    created_at: str = ""
    decided_at: str | None = None
    decided_by: str | None = None
