"""A run and its attempts: states, wakes, usage, the context and result of `execute` (A4, A5)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from binderclip.contract.entry import Coverage
from binderclip.contract.target import ExecutionTarget
from binderclip.contract.usage import Usage as Usage
from binderclip.contract.usage import UsageSource as UsageSource
from binderclip.contract.wire import Wire

RunState = Literal[
    "queued",
    "starting",
    "running",
    "finalizing",
    "succeeded",
    "failed",
    "timed_out",
    "cancelled",
    "lost",
]
TERMINAL_STATES: frozenset[RunState] = frozenset(
    {"succeeded", "failed", "timed_out", "cancelled", "lost"}
)
WakeReason = Literal[
    "assignment", "comment", "mention", "approval", "timer", "manual", "dependency", "retry"
]
ErrorCode = Literal[
    "auth",
    "quota",
    "rate_limit",
    "upstream",
    "context_overflow",
    "refusal",
    "turn_limit",
    "budget",
    "unknown_session",
    "command_not_found",
    "bad_config",
    "permission",
    "timeout",
    "idle_timeout",
    "cancelled",
    "killed",
    "cut_output",
    "process_failed",
    "parse_failed",
    "lost",
    "preflight_failed",
    "workspace_failed",
    "restore_conflict",
    "plugin_failed",
    "unknown_adapter",
    "output_limit",
    "disk_full",
]
ErrorFamily = Literal["transient_upstream", "provider_quota", "model_refusal", "auth"]
UsageBasis = Literal["per_run", "session_cumulative"]


class AgentRef(Wire, frozen=True, kw_only=True):
    id: str
    company_id: str
    name: str
    adapter_type: str
    adapter_config: dict[str, Any] = msgspec.field(default_factory=dict)


class RuntimeSession(Wire, frozen=True, kw_only=True):
    """The session that a run is asked to continue; all None for a fresh one."""

    session_id: str | None = None
    session_params: dict[str, Any] | None = None
    session_display_id: str | None = None
    task_key: str | None = None


class InvocationMeta(Wire, frozen=True, kw_only=True):
    """What `onMeta` tells before the spawn; the environment is redacted."""

    adapter_type: str
    command: str
    command_args: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, str] = msgspec.field(default_factory=dict)
    prompt: str | None = None
    notes: tuple[str, ...] = ()
    context: dict[str, Any] = msgspec.field(default_factory=dict)


class SpawnInfo(Wire, frozen=True, kw_only=True):
    pid: int
    process_group_id: int | None
    started_at: str


class ExecutionRequest(Wire, frozen=True, kw_only=True):
    """The data of A4's context; the callbacks stand beside it in the SDK."""

    run_id: str
    agent: AgentRef
    runtime: RuntimeSession
    config: dict[str, Any]
    context: dict[str, Any] = msgspec.field(default_factory=dict)
    auth_token: str | None = None
    execution_target: ExecutionTarget = ExecutionTarget()


class ExecutionResult(Wire, frozen=True, kw_only=True):
    """What `execute` returns (A5)."""

    exit_code: int | None
    signal: str | None
    timed_out: bool
    error_message: str | None = None
    error_code: ErrorCode | None = None
    error_family: ErrorFamily | None = None
    retry_not_before: str | None = None
    usage: Usage | None = None
    usage_basis: UsageBasis | None = None
    session_params: dict[str, Any] | None = None
    session_display_id: str | None = None
    session_id: str | None = None
    provider: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    result_json: dict[str, Any] | None = None
    summary: str | None = None
    clear_session: bool = False


class RunOrder(Wire, frozen=True, kw_only=True):
    """What a run was asked to do, as `run.json` keeps it; secrets in `config` are masked."""

    id: str
    adapter_type: str
    agent: AgentRef
    cwd: str
    created_at: str
    prompt: str | None = None
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    context: dict[str, Any] = msgspec.field(default_factory=dict)
    task_key: str | None = None
    wake_reasons: tuple[str, ...] = ()
    actor: str = "cli"
    adapter_path: str | None = None
    """Where the adapter was loaded from, if a person named a file of their own."""
    adapter_version: str | None = None
    runtime_name: str | None = None
    """What the adapter calls its runtime, so that a run which never started can tell it too."""
    runtime: RuntimeSession = RuntimeSession()
    session_reason: str | None = None
    retry_of: str | None = None
    job_id: str | None = None
    """The job that this run joins; None where task, retry or continuation tells it."""
    continues: str | None = None
    """The run whose session this one goes on with."""
    scheduled: bool = False
    """Admitted by the control plane: counts for its limits; an ad-hoc run does not (R2)."""


class StateChange(Wire, frozen=True, kw_only=True):
    """One row of a run's history."""

    state: RunState
    at: str
    reason: str
    actor: str


class RunView(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A run as listings and the API show it."""

    id: str
    status: RunState
    adapter_type: str
    cwd: str | None = None
    title: str | None = None
    """The first line of the prompt; of a run without one, the command line that it is."""
    prompt: str | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    task_id: str | None = None
    wake_reasons: tuple[str, ...] = ()
    created_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    attempts: int = 0
    session_id: str | None = None
    session_reason: str | None = None
    provider: str | None = None
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    error_code: ErrorCode | None = None
    error_message: str | None = None
    retry_of: str | None = None
    summary: str | None = None
    result: ExecutionResult | None = None
    coverage: Coverage | None = None
    directory: str | None = None
    company_id: str | None = None
    scheduled: bool = False
    not_before: str | None = None
    waiting_for: str | None = None
    """Why a queued run has not started yet, in words."""
    budget_note: str | None = None
    """How a budget holds for this run: in flight, or only between runs."""
