"""Agents: an adapter with its configuration, a rhythm, and limits (R1, R2)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from binderclip.contract.session import SessionManagement
from binderclip.contract.wire import Wire

AgentStatus = Literal["active", "paused", "archived"]
WorkspaceMode = Literal["worktree", "cwd"]
BudgetPeriod = Literal["day", "month", "total"]


class Budget(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Hard lines; None means that there is none. `period` counts for an agent's budget only."""

    usd: float | None = None
    tokens: int | None = None
    runs: int | None = None
    minutes: float | None = None
    period: BudgetPeriod = "month"

    @property
    def is_set(self) -> bool:
        return any(limit is not None for limit in (self.usd, self.tokens, self.runs, self.minutes))


class Spent(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What an agent used of its budget in the current period."""

    usd: float = 0.0
    tokens: int = 0
    runs: int = 0
    minutes: float = 0.0
    since: str | None = None


class Agent(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Somebody who can be woken; secrets stand in `adapter_config` as references."""

    id: str
    company_id: str
    name: str
    adapter_type: str
    adapter_config: dict[str, Any] = msgspec.field(default_factory=dict)
    role: str | None = None
    status: AgentStatus = "active"
    paused_reason: str | None = None
    heartbeat_minutes: float | None = None
    next_beat_at: str | None = None
    max_concurrent_runs: int = 1
    retry_limit: int = 3
    budget: Budget = Budget()
    run_budget: Budget = Budget()
    session_limits: SessionManagement | None = None
    """Rotation limits instead of the adapter's own (S5)."""
    environment_id: str | None = None
    workspace: WorkspaceMode = "worktree"
    instructions: str | None = None
    """The managed AGENTS.md, for adapters that support one (C1)."""
    created_at: str = ""
    updated_at: str = ""


class Pause(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The circuit breaker: an agent does not work on a task until a person resets this."""

    id: str
    agent_id: str
    task_key: str
    reason: str
    error_code: str | None
    error_message: str | None
    run_id: str
    since: str
    reset_at: str | None = None
    reset_by: str | None = None
