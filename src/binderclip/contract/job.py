"""A job: the runs of one task, or of one chain of continuations, and what they add up to (N4)."""

from __future__ import annotations

from typing import Literal

from binderclip.contract.checkpoint import CheckpointStatus, TokenUsage
from binderclip.contract.run import ErrorCode, RunState, UsageSource
from binderclip.contract.wire import Wire

JobStatus = Literal[
    "running",
    "completed",
    "stoppedByMaxSteps",
    "stoppedByInteractiveTool",
    "stoppedByError",
]


class JobRun(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One finished run of a job, as `runs/<run id>/run.json` keeps it."""

    id: str
    job_id: str
    status: RunState
    stopped: CheckpointStatus
    adapter_type: str
    runtime: str
    expert_key: str
    cwd: str
    started_at: int
    finished_at: int
    steps: int
    events: int
    usage: TokenUsage
    usage_source: UsageSource
    cost_usd: float | None = None
    title: str | None = None
    prompt: str | None = None
    continues: str | None = None
    """The run that this one goes on from, or tries again."""
    checkpoints: tuple[str, ...] = ()
    model: str | None = None
    error_code: ErrorCode | None = None
    error_message: str | None = None
    output: str | None = None


class Job(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What `job.json` holds; counts are sums over its runs, the status is the last run's."""

    id: str
    status: JobStatus
    coordinator_expert_key: str
    total_steps: int
    usage: TokenUsage
    started_at: int
    finished_at: int | None = None
    cost_usd: float | None = None
    """None when the cost of any of its runs is unknown."""
    task_key: str | None = None
    title: str | None = None
    runs: tuple[str, ...] = ()
    """Ids, oldest first."""


class JobNode(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A run in the tree of its job: what continued it stands below it."""

    run: JobRun
    children: tuple[JobNode, ...] = ()
