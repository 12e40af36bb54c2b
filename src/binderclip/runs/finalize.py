"""Ending a run: its result from the log, its state, its record; doing it twice is harmless (D5)."""

from __future__ import annotations

import msgspec

from binderclip.contract.check import Check
from binderclip.contract.entry import Coverage
from binderclip.contract.run import ExecutionRequest, ExecutionResult, RunOrder, RunState
from binderclip.runs.changes import note_changes
from binderclip.runs.driver import Drive
from binderclip.runs.execute import SCRATCH, Attempt, clear_scratch
from binderclip.runs.transcript import Transcriber
from binderclip.sdk.outcome import Outcome, ProcessEnd
from binderclip.store.runfile import RunOutcome, clear_usage, write_outcome
from binderclip.supervisor.launch import ExitRecord, read_meta

TAIL_BYTES = 8 * 1024
BUDGET = "budget"
"""Who cancels a run that has crossed its budget."""
_STATES: dict[str, RunState] = {
    "timeout": "timed_out",
    "idle_timeout": "timed_out",
    "cancelled": "cancelled",
    "budget": "cancelled",
    "lost": "lost",
}


def conclude(
    drive: Drive, attempt: Attempt, transcriber: Transcriber, exit: ExitRecord
) -> ExecutionResult:
    """The result of one attempt, computed from its files."""
    meta = read_meta(str(attempt.directory)) or {}
    outcome = Outcome(
        request=request_of(drive, attempt.number),
        end=ProcessEnd(
            exit_code=exit.exit_code,
            signal=exit.signal,
            reason=exit.reason,
            cancelled_by=exit.cancel.by if exit.cancel else None,
            cancel_reason=exit.cancel.reason if exit.cancel else None,
            error=dict(exit.error) if exit.error else None,
        ),
        parser=transcriber.parser,
        stdout_tail=transcriber.log.tail("stdout", TAIL_BYTES).decode("utf-8", "replace"),
        stderr_tail=transcriber.log.tail("stderr", TAIL_BYTES).decode("utf-8", "replace"),
        cwd=drive.order.cwd,
        attempt_dir=attempt.directory,
        scratch=attempt.directory / SCRATCH,
        limits=meta.get("limits", {}),
    )
    return _by_budget(drive.adapter.conclude(outcome), exit)


def _by_budget(result: ExecutionResult, exit: ExitRecord) -> ExecutionResult:
    """Stopped by its budget: cancelled all the same, but under a name of its own."""
    if result.error_code != "cancelled" or exit.cancel is None or exit.cancel.by != BUDGET:
        return result
    return msgspec.structs.replace(result, error_code="budget", error_message=exit.cancel.reason)


def state_of(result: ExecutionResult) -> RunState:
    """The terminal state that a result means."""
    if result.error_code is None:
        return "succeeded"
    return _STATES.get(result.error_code, "failed")


def finalize(
    drive: Drive, result: ExecutionResult, coverage: Coverage | None, ended_at: str | None = None
) -> RunOutcome:
    """Bring the run's work back and write its outcome; from then on it is over."""
    if drive.place is not None:
        result = drive.place.finalize(result)
    note_changes(drive, result)
    state = state_of(result)
    drive.enter(state, result.error_message or "the agent finished", ended_at)
    outcome = RunOutcome(
        state=state,
        result=result,
        coverage=coverage,
        ended_at=drive.history[-1].at,
        history=tuple(drive.history),
        session_target=drive.place.session_target if drive.place else "local",
    )
    write_outcome(drive.home, drive.run_id, outcome)
    clear_usage(drive.home, drive.run_id)
    for number in drive.home.attempts(drive.run_id):
        clear_scratch(drive.home.attempt_dir(drive.run_id, number))
    drive.listener.finalized(drive.home, drive.run_id)
    return outcome


def blocked(checks: list[Check]) -> ExecutionResult:
    """The result of a run that its checks kept from starting."""
    told = "; ".join(f"{check.message} {check.hint or ''}".strip() for check in checks)
    return ExecutionResult(
        exit_code=None,
        signal=None,
        timed_out=False,
        error_code="preflight_failed",
        error_message=told,
        result_json={"checks": [msgspec.to_builtins(check) for check in checks]},
    )


def never_started(message: str) -> ExecutionResult:
    """The result of a run whose driver died before there was an attempt."""
    return ExecutionResult(
        exit_code=None, signal=None, timed_out=False, error_code="lost", error_message=message
    )


def request_of(drive: Drive, number: int) -> ExecutionRequest:
    """What an attempt was asked; a second one starts without the session."""
    order = drive.order
    request = drive.request or request_from(order)
    if number > 1:
        return msgspec.structs.replace(
            request, runtime=msgspec.structs.replace(request.runtime, session_params=None)
        )
    return request


def request_from(order: RunOrder) -> ExecutionRequest:
    """What can be known of a request from the run's own file: all but its secrets."""
    return ExecutionRequest(
        run_id=order.id,
        agent=order.agent,
        runtime=order.runtime,
        config=order.config,
        context=order.context,
    )
