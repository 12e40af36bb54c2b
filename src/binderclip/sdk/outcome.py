"""From a finished process to a result: what its exit and its own words say together (A5, A9).

The exit code alone decides nothing: runtimes exit 0 on failure and die after their result.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, Literal

import msgspec

from binderclip.contract.run import ErrorCode, ExecutionRequest, ExecutionResult, Usage
from binderclip.sdk.parser import Facts, Failure, Parser
from binderclip.sdk.resume import safe_session_id
from binderclip.sdk.usage import subtract, usage_from_plain
from binderclip.sdk.values import as_number, parse_object

EndReason = Literal[
    "exited",
    "timeout",
    "idle_timeout",
    "cancelled",
    "output_limit",
    "disk_full",
    "spawn_failed",
    "aborted",
]


SIGNALLED = frozenset({129, 130, 137, 143})
"""Exit codes by which a program tells that SIGHUP, SIGINT, SIGKILL or SIGTERM ended it."""


class ProcessEnd(msgspec.Struct, frozen=True):
    """How the agent's process ended, as its supervisor saw it."""

    exit_code: int | None = 0
    signal: str | None = None
    reason: EndReason = "exited"
    cancelled_by: str | None = None
    cancel_reason: str | None = None
    error: dict[str, Any] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """Everything a result is computed from; all of it can be read again from the run's files."""

    request: ExecutionRequest
    end: ProcessEnd
    parser: Parser
    stdout_tail: str = ""
    stderr_tail: str = ""
    cwd: str | None = None
    attempt_dir: Path | None = None
    scratch: Path | None = None
    """The run's private directory, for runtimes that tell something only in a file."""
    limits: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        return self.parser.facts


def failure_of(outcome: Outcome) -> Failure | None:
    """Why the run failed, or None: limits first, then the runtime's words, then its exit."""
    return _stopped(outcome) or _told(outcome.facts) or _by_exit(outcome)


def conclude(outcome: Outcome) -> ExecutionResult:
    """The result of a run, fully populated (A6)."""
    facts, end = outcome.facts, outcome.end
    failure = failure_of(outcome)
    totals = session_totals(outcome)
    session = session_params(outcome, totals)
    usage, cost = run_usage(outcome)
    return ExecutionResult(
        exit_code=end.exit_code,
        signal=end.signal,
        timed_out=end.reason in ("timeout", "idle_timeout"),
        error_message=_message(failure) if failure else None,
        error_code=failure.code if failure else None,
        error_family=failure.family if failure else None,
        retry_not_before=failure.retry_not_before if failure else None,
        usage=usage,
        usage_basis="per_run" if usage else None,
        session_params=session,
        session_display_id=session["sessionId"] if session else None,
        session_id=session["sessionId"] if session else None,
        provider=facts.provider,
        model=facts.model,
        cost_usd=cost,
        result_json=_result_json(outcome, failure) or None,
        summary=facts.final_text,
        clear_session=facts.unknown_session,
    )


def _message(failure: Failure) -> str:
    """Never empty: a failure without words still says its class (A9)."""
    return failure.message if failure.message.strip() else f"The agent failed: {failure.code}."


def session_params(outcome: Outcome, totals: dict[str, Any]) -> dict[str, Any] | None:
    """What resumes this session: its id, where it was made, and the totals it had by now."""
    found = safe_session_id(outcome.facts.session_id)
    if found is None or outcome.facts.unknown_session:
        return None
    params: dict[str, Any] = {"sessionId": found}
    if outcome.cwd:
        params["cwd"] = outcome.cwd
    return {**params, "totals": totals} if totals else params


def session_totals(outcome: Outcome) -> dict[str, Any]:
    """The cumulative counts that the runtime told, for subtracting next time."""
    facts = outcome.facts
    totals: dict[str, Any] = {}
    if facts.usage_basis == "session_cumulative" and facts.usage is not None:
        totals["usage"] = msgspec.to_builtins(facts.usage)
    if facts.cost_basis == "session_cumulative" and facts.cost_usd is not None:
        totals["costUsd"] = facts.cost_usd
    if not totals and _resumed(outcome):
        return _earlier_totals(outcome)
    return totals


def run_usage(outcome: Outcome) -> tuple[Usage | None, float | None]:
    """Usage and cost of this run alone; unknown where a session's earlier totals are (D10)."""
    facts = outcome.facts
    usage, cost = facts.usage, facts.cost_usd
    if not _resumed(outcome):
        return usage, cost
    before = _earlier_totals(outcome)
    if usage is not None and facts.usage_basis == "session_cumulative":
        earlier = usage_from_plain(before.get("usage"))
        usage = subtract(usage, earlier) if earlier else None
    if cost is not None and facts.cost_basis == "session_cumulative":
        spent = as_number(before.get("costUsd"), -1)
        cost = round(cost - spent, 10) if 0 <= spent <= cost else None
    return usage, cost


def _earlier_totals(outcome: Outcome) -> dict[str, Any]:
    return parse_object((outcome.request.runtime.session_params or {}).get("totals"))


def _resumed(outcome: Outcome) -> bool:
    asked = (outcome.request.runtime.session_params or {}).get("sessionId")
    return bool(asked) and asked == outcome.facts.session_id


def _stopped(outcome: Outcome) -> Failure | None:
    end, limits = outcome.end, outcome.limits
    if end.reason == "timeout":
        return Failure("timeout", f"Stopped after {limits.get('timeoutSec')} s (timeoutSec).")
    if end.reason == "idle_timeout":
        quiet = limits.get("idleTimeoutSec")
        return Failure("idle_timeout", f"Stopped after {quiet} s without output (idleTimeoutSec).")
    if end.reason == "cancelled":
        by = end.cancelled_by or "somebody"
        why = f": {end.cancel_reason}" if end.cancel_reason else ""
        return Failure("cancelled", f"Cancelled by {by}{why}.")
    if end.reason == "output_limit":
        size = limits.get("maxLogBytes")
        return Failure("output_limit", f"Stopped after {size} bytes of output (maxLogBytes).")
    if end.reason == "disk_full":
        return Failure("disk_full", "Stopped because the disk of the run logs is full; free space.")
    if end.reason == "spawn_failed":
        return _not_spawned(end.error or {})
    if end.reason == "aborted":
        return Failure("lost", _told_by_supervisor(end.error) or "The run's supervisor gave up.")
    return None


def _told_by_supervisor(error: dict[str, Any] | None) -> str:
    return str((error or {}).get("message") or "")


def _not_spawned(error: dict[str, Any]) -> Failure:
    number, where = error.get("errno"), error.get("where")
    message = _told_by_supervisor(error) or "The agent's process could not be started."
    code: ErrorCode = "process_failed"
    if where == "chdir":
        code = "bad_config"
    elif number == errno.ENOENT:
        code = "command_not_found"
    elif number == errno.EACCES:
        code = "permission"
    return Failure(code, message)


def _told(facts: Facts) -> Failure | None:
    if facts.unknown_session:
        return Failure("unknown_session", "The runtime does not know the session it was given.")
    if facts.ended == "success":
        return None
    return facts.failure


def _by_exit(outcome: Outcome) -> Failure | None:
    end, facts = outcome.end, outcome.facts
    if facts.ended == "success":
        return None
    if end.exit_code is None and end.signal is None:
        return Failure("lost", "The agent ended while nobody watched; its exit is unknown.")
    if end.signal is not None:
        return Failure("killed", f"The agent was killed by {end.signal}.{_last_words(outcome)}")
    if end.exit_code in SIGNALLED:
        words = _last_words(outcome)
        return Failure("killed", f"The agent was killed (exit code {end.exit_code}).{words}")
    if end.exit_code:
        words = _last_words(outcome)
        return Failure("process_failed", f"The agent exited with code {end.exit_code}.{words}")
    if facts.ended == "failure":
        return Failure("process_failed", f"The agent reported a failure.{_last_words(outcome)}")
    if outcome.parser.structured:
        return Failure("cut_output", "The agent exited 0 but its output has no end: it was cut.")
    return None


def _last_words(outcome: Outcome) -> str:
    lines = [line.strip() for line in outcome.stderr_tail.splitlines() if line.strip()]
    return f" Last on stderr: {lines[-1][:500]}" if lines else ""


def _result_json(outcome: Outcome, failure: Failure | None) -> dict[str, Any]:
    result = dict(outcome.facts.result_json)
    if failure is not None and not outcome.facts.failure:
        result["stdoutTail"] = outcome.stdout_tail
        result["stderrTail"] = outcome.stderr_tail
    asked = (outcome.request.runtime.session_params or {}).get("sessionId")
    told = outcome.facts.session_id
    if asked and told and asked != told and not outcome.facts.unknown_session:
        result["sessionReplaced"] = {"asked": asked, "got": told}
    return result
