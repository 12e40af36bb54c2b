"""What a run was asked and how it ended, as files of its directory, so that rows can be rebuilt.

`run.json` is written before anything starts, `outcome.json` once, when the run is finalized;
`usage.json` tells what a run has used so far, and only while it goes on.
"""

from __future__ import annotations

from binderclip.contract.entry import Coverage
from binderclip.contract.errors import RunNotFound
from binderclip.contract.run import (
    ExecutionResult,
    RunOrder,
    RunState,
    StateChange,
    Usage,
    UsageBasis,
)
from binderclip.contract.wire import Wire
from binderclip.store.home import Home
from binderclip.store.jsonfile import encode, read_json, write_atomic

ORDER = "run.json"
OUTCOME = "outcome.json"
USAGE = "usage.json"


class AttemptUsage(Wire, frozen=True, kw_only=True):
    """What one attempt used and cost."""

    attempt: int
    usage: Usage | None = None
    basis: UsageBasis | None = None
    cost_usd: float | None = None
    provider: str | None = None
    model: str | None = None


class RunOutcome(Wire, frozen=True, kw_only=True):
    """How a run ended; also of one that never had an attempt."""

    state: RunState
    ended_at: str
    result: ExecutionResult | None = None
    coverage: Coverage | None = None
    session_reason: str | None = None
    history: tuple[StateChange, ...] = ()
    """Every state the run was in, the last one included."""
    usage: tuple[AttemptUsage, ...] = ()
    """By attempt; when empty, what the result tells belongs to the last attempt."""
    session_target: str = "local"
    """Where the session lives that the result names."""


class UsageSoFar(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a run that goes on has used and cost until now, as far as its runtime told."""

    usage: Usage | None = None
    cost_usd: float | None = None


def write_order(home: Home, order: RunOrder) -> None:
    """Make the run's directory and keep the order in it."""
    write_atomic(home.make_run_dir(order.id) / ORDER, encode(order))


def read_order(home: Home, run_id: str) -> RunOrder:
    try:
        return read_json(home.run_dir(run_id) / ORDER, RunOrder)
    except FileNotFoundError as problem:
        message = f"Run {run_id} has no {ORDER} in {home.run_dir(run_id)}."
        raise RunNotFound(message, hint="`binderclip runs` lists what there is.") from problem


def write_outcome(home: Home, run_id: str, outcome: RunOutcome) -> None:
    write_atomic(home.make_run_dir(run_id) / OUTCOME, encode(outcome), durable=True)


def read_outcome(home: Home, run_id: str) -> RunOutcome | None:
    """How the run ended, or None while it is not finalized."""
    try:
        return read_json(home.run_dir(run_id) / OUTCOME, RunOutcome)
    except FileNotFoundError:
        return None


def write_usage(home: Home, run_id: str, used: UsageSoFar) -> None:
    write_atomic(home.run_dir(run_id) / USAGE, encode(used))


def read_usage(home: Home, run_id: str) -> UsageSoFar | None:
    """What the run has used so far; None if nobody told, or if it is over."""
    try:
        return read_json(home.run_dir(run_id) / USAGE, UsageSoFar)
    except FileNotFoundError:
        return None


def clear_usage(home: Home, run_id: str) -> None:
    """From now on the outcome tells it."""
    (home.run_dir(run_id) / USAGE).unlink(missing_ok=True)
