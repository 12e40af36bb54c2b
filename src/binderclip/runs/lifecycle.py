"""A run from start to end, top to bottom: the one file that shows the system."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec

from binderclip.contract.errors import BinderclipError
from binderclip.contract.run import ExecutionResult
from binderclip.runs.changes import note_before
from binderclip.runs.drift import with_drift
from binderclip.runs.driver import Drive, driving
from binderclip.runs.execute import Attempt, blocking_checks, found, started
from binderclip.runs.finalize import blocked, conclude, finalize, never_started
from binderclip.runs.price import with_price
from binderclip.runs.spending import Spending
from binderclip.runs.tail import follow
from binderclip.runs.transcript import Transcriber
from binderclip.store.runfile import RunOutcome, read_outcome, write_order


def run(drive: Drive) -> RunOutcome:
    """Start a run and stay with it until it is over."""
    drive.home.make_run_dir(drive.run_id)
    with driving(drive.home, drive.run_id, drive.lock):
        write_order(drive.home, drive.order)
        _begin(drive)
        if problems := blocking_checks(drive):
            return finalize(drive, blocked(problems), None)
        note_before(drive)
        return _to_its_end(drive)


def detach(drive: Drive) -> RunOutcome | None:
    """Start a run and leave it to whoever drives it next; only a blocked one has an outcome."""
    drive.home.make_run_dir(drive.run_id)
    with driving(drive.home, drive.run_id, drive.lock):
        write_order(drive.home, drive.order)
        if problems := blocking_checks(drive):
            return finalize(drive, blocked(problems), None)
        note_before(drive)
        with started(drive, 1) as attempt:
            drive.listener.attempt(attempt.directory)
    return None


def resume(drive: Drive) -> RunOutcome:
    """Take over a run that nobody drives, and stay with it until it is over."""
    with driving(drive.home, drive.run_id):
        outcome = read_outcome(drive.home, drive.run_id)
        if outcome is not None:
            return outcome
        numbers = drive.home.attempts(drive.run_id)
        _begin(drive)
        if not numbers:
            message = "The run was lost before its agent started; nothing ran."
            return finalize(drive, never_started(message), None)
        seq = 0
        for number in numbers:
            with found(drive, number) as attempt:
                drive.enter("running", f"attempt {number}, taken over")
                transcriber, result = _attempt(drive, attempt, seq)
            seq = transcriber.seq
        return _end(drive, _retried(result) if len(numbers) > 1 else result, transcriber)


def _to_its_end(drive: Drive) -> RunOutcome:
    try:
        transcriber, result = _fresh_attempt(drive, 1, 0, "the agent's process runs")
        if result.error_code == "unknown_session" and drive.order.runtime.session_params:
            reason = "a fresh session, since the runtime does not know the stored one"
            drive.listener.notice(f"Once more with {reason}.")
            transcriber, result = _fresh_attempt(drive, 2, transcriber.seq, reason)
            result = _retried(result)
    except _NotStarted as problem:
        return finalize(drive, _could_not_start(problem.cause), None)
    return _end(drive, result, transcriber)


def _retried(result: ExecutionResult) -> ExecutionResult:
    """A second attempt means that the stored session is of no use any more (S4)."""
    return msgspec.structs.replace(result, clear_session=True)


class _NotStarted(Exception):
    """An attempt's command could not be made or started."""

    def __init__(self, cause: BinderclipError) -> None:
        super().__init__(cause)
        self.cause = cause


def _fresh_attempt(
    drive: Drive, number: int, seq: int, reason: str
) -> tuple[Transcriber, ExecutionResult]:
    with ExitStack() as held:
        try:
            attempt = held.enter_context(started(drive, number, fresh=number > 1))
        except BinderclipError as problem:
            raise _NotStarted(problem) from problem
        drive.enter("running", reason)
        return _attempt(drive, attempt, seq)


def _attempt(drive: Drive, attempt: Attempt, seq: int) -> tuple[Transcriber, ExecutionResult]:
    drive.listener.attempt(attempt.directory)
    transcriber = Transcriber(drive.adapter, attempt.directory, attempt.number, seq)
    try:
        exit = follow(attempt, transcriber, drive.listener, Spending(drive, attempt, transcriber))
        return transcriber, conclude(drive, attempt, transcriber, exit)
    finally:
        transcriber.close()


def _end(drive: Drive, result: ExecutionResult, transcriber: Transcriber) -> RunOutcome:
    drive.enter("finalizing", "the agent's process has ended")
    result = with_price(drive, result)
    result = with_drift(drive, result, transcriber.parser, transcriber.log.directory)
    return finalize(drive, result, transcriber.coverage)


def _begin(drive: Drive) -> None:
    # A run that was admitted brings its history along.
    if not drive.history:
        drive.enter("starting", _why(drive), drive.order.created_at)


def _why(drive: Drive) -> str:
    return ", ".join(drive.order.wake_reasons) or "manual"


def _could_not_start(problem: BinderclipError) -> ExecutionResult:
    codes = ("command_not_found", "bad_config", "process_failed", "plugin_failed")
    code = problem.code if problem.code in codes else "process_failed"
    hint = f" {problem.hint}" if problem.hint else ""
    return ExecutionResult(
        exit_code=None,
        signal=None,
        timed_out=False,
        error_code=code,  # type: ignore[arg-type]
        error_message=problem.message + hint,
    )
