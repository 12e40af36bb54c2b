"""What the runs of a job add up to, and how they hang together; pure."""

from __future__ import annotations

from collections.abc import Sequence

from binderclip.contract.checkpoint import CheckpointStatus
from binderclip.contract.job import Job, JobNode, JobRun, JobStatus
from binderclip.contract.run import RunOrder
from binderclip.jobs.normalized import NO_USAGE, add_usage

_TITLE = 120
_STATUS: dict[CheckpointStatus, JobStatus] = {
    "init": "running",
    "proceeding": "running",
    "completed": "completed",
    "stoppedByInteractiveTool": "stoppedByInteractiveTool",
    "stoppedByDelegate": "running",
    "stoppedByExceededMaxSteps": "stoppedByMaxSteps",
    "stoppedByError": "stoppedByError",
}


def added_up(runs: Sequence[JobRun], first: RunOrder | None = None) -> Job:
    """The job of these runs, oldest first; `first` is the order of the oldest, if it is known."""
    usage = NO_USAGE
    for run in runs:
        usage = add_usage(usage, run.usage)
    costs = [run.cost_usd for run in runs]
    return Job(
        id=runs[0].job_id,
        status=_STATUS[runs[-1].stopped],
        coordinator_expert_key=runs[0].expert_key,
        total_steps=sum(run.steps for run in runs),
        usage=usage,
        started_at=min(run.started_at for run in runs),
        finished_at=max(run.finished_at for run in runs),
        cost_usd=None if None in costs else round(sum(cost or 0 for cost in costs), 10),
        task_key=first.task_key if first and first.scheduled else None,
        title=_title(runs),
        runs=tuple(run.id for run in runs),
    )


def tree_of(runs: Sequence[JobRun]) -> tuple[JobNode, ...]:
    """Each run below the one that it continues; those that continue none of them are roots."""
    here = {run.id for run in runs}
    below: dict[str | None, list[JobRun]] = {}
    for run in runs:
        # Ids sort by time: a run cannot go on from a later one, whatever its order says.
        known = run.continues in here and run.continues is not None and run.continues < run.id
        below.setdefault(run.continues if known else None, []).append(run)
    nodes: dict[str, JobNode] = {}
    for run in reversed(runs):
        children = tuple(nodes[child.id] for child in below.get(run.id, ()))
        nodes[run.id] = JobNode(run=run, children=children)
    return tuple(nodes[run.id] for run in below.get(None, ()))


def _title(runs: Sequence[JobRun]) -> str | None:
    for run in runs:
        lines = (run.prompt or run.title or "").strip().splitlines()
        if lines:
            return lines[0][:_TITLE]
    return None
