"""A5, A9, D10: what exit and words of a runtime say together."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from binderclip.contract.run import AgentRef, ExecutionRequest, RuntimeSession, Usage
from binderclip.contract.wire import to_plain
from binderclip.sdk import Facts, Failure, GenericParser, Outcome, Parser, ProcessEnd
from binderclip.sdk.outcome import EndReason, conclude, failure_of

AGENT = AgentRef(id="a", company_id="c", name="A", adapter_type="t")
LIMITS = {"timeoutSec": 60, "idleTimeoutSec": 10, "graceSec": 5, "maxLogBytes": 1000}
OVERLOADED = Failure("upstream", "529 overloaded", "transient_upstream", "2026-01-01T00:00:00.000Z")


def outcome(
    facts: Facts | None = None,
    *,
    structured: bool = True,
    session: dict[str, Any] | None = None,
    stderr: str = "",
    **end: Any,
) -> Outcome:
    parser = Parser() if structured else GenericParser()
    parser.facts = facts or Facts()
    runtime = RuntimeSession(session_params=session)
    request = ExecutionRequest(run_id="r", agent=AGENT, runtime=runtime, config={})
    return Outcome(
        request=request,
        end=ProcessEnd(**end),
        parser=parser,
        stdout_tail="out tail",
        stderr_tail=stderr,
        cwd="/w",
        limits=LIMITS,
    )


def code_and_message(what: Outcome) -> tuple[str, str] | None:
    failure = failure_of(what)
    return (failure.code, failure.message) if failure else None


@pytest.mark.parametrize(
    ("reason", "code", "told"),
    [
        ("timeout", "timeout", "Stopped after 60 s (timeoutSec)."),
        ("idle_timeout", "idle_timeout", "Stopped after 10 s without output (idleTimeoutSec)."),
        ("output_limit", "output_limit", "Stopped after 1000 bytes of output (maxLogBytes)."),
        ("disk_full", "disk_full", "Stopped because the disk of the run logs is full; free space."),
        ("aborted", "lost", "The run's supervisor gave up."),
        ("cancelled", "cancelled", "Cancelled by somebody."),
        ("spawn_failed", "process_failed", "The agent's process could not be started."),
    ],
)
def test_a_limit_decides_before_everything_else(reason: EndReason, code: str, told: str) -> None:
    """A9: failures are told apart, whatever the runtime managed to say before."""
    said = Facts(ended="success", failure=OVERLOADED)
    assert code_and_message(outcome(said, reason=reason, signal="SIGKILL")) == (code, told)


def test_a_cancel_names_who_and_why() -> None:
    end = {"reason": "cancelled", "cancelled_by": "ada", "cancel_reason": "wrong branch"}
    assert code_and_message(outcome(**end)) == ("cancelled", "Cancelled by ada: wrong branch.")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"errno": errno.ENOENT, "where": "exec", "message": "gone"}, "command_not_found"),
        ({"errno": errno.EACCES, "where": "exec", "message": "gone"}, "permission"),
        ({"errno": errno.ENOENT, "where": "chdir", "message": "gone"}, "bad_config"),
        ({"errno": errno.ENOEXEC, "where": "exec", "message": "gone"}, "process_failed"),
    ],
)
def test_a_failed_spawn_is_classed_by_its_error(error: dict[str, Any], code: str) -> None:
    """A9: command not found is its own class."""
    what = outcome(reason="spawn_failed", exit_code=None, error=error)
    assert code_and_message(what) == (code, "gone")


def test_an_unknown_session_wins_over_every_other_word() -> None:
    """S4: it is retried, so it must be seen."""
    said = Facts(unknown_session=True, failure=OVERLOADED, session_id="s-1")
    result = conclude(outcome(said, exit_code=1))
    assert (result.error_code, result.clear_session) == ("unknown_session", True)
    assert (result.session_params, result.session_id) == (None, None)


def test_a_runtimes_own_failure_wins_over_its_exit() -> None:
    """A9: a runtime that exits 0 on failure failed."""
    result = conclude(outcome(Facts(failure=OVERLOADED), exit_code=0))
    assert (result.error_code, result.error_message) == ("upstream", "529 overloaded")
    assert result.error_family == "transient_upstream"
    assert result.retry_not_before == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize("end", [{"exit_code": 1}, {"exit_code": None, "signal": "SIGSEGV"}, {}])
def test_a_runtime_that_dies_after_its_result_succeeded(end: dict[str, Any]) -> None:
    """A5: an earlier failure was recovered from; the end marker counts."""
    said = Facts(ended="success", failure=OVERLOADED, final_text="done")
    result = conclude(outcome(said, **end))
    assert (result.error_code, result.error_message, result.summary) == (None, None, "done")


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (
            {"exit_code": None, "signal": None},
            "lost",
            "The agent ended while nobody watched; its exit is unknown.",
        ),
        (
            {"exit_code": None, "signal": "SIGKILL"},
            "killed",
            "The agent was killed by SIGKILL. Last on stderr: last words",
        ),
        (
            {"exit_code": 7},
            "process_failed",
            "The agent exited with code 7. Last on stderr: last words",
        ),
        (
            {"exit_code": 0},
            "cut_output",
            "The agent exited 0 but its output has no end: it was cut.",
        ),
    ],
)
def test_without_an_end_marker_the_exit_decides(end: dict[str, Any], code: str, told: str) -> None:
    """A9: process errors come with exit code and signal."""
    what = outcome(stderr="first\n  last words  \n\n", **end)
    assert code_and_message(what) == (code, told)


@pytest.mark.parametrize("code", [129, 130, 137, 143])
def test_a_shells_code_for_a_signal_means_killed(code: int) -> None:
    """A9: many runtimes catch a signal and exit with 128 and its number."""
    told = f"The agent was killed (exit code {code}). Last on stderr: bye"
    assert code_and_message(outcome(stderr="bye\n", exit_code=code)) == ("killed", told)
    assert code_and_message(outcome(structured=False, exit_code=128)) == (
        "process_failed",
        "The agent exited with code 128.",
    )


def test_a_failure_marker_without_words_is_still_a_failure() -> None:
    assert code_and_message(outcome(Facts(ended="failure"))) == (
        "process_failed",
        "The agent reported a failure.",
    )


def test_an_unstructured_runtime_needs_no_end_marker() -> None:
    """T3: exit 0 is all that a plain program says."""
    assert failure_of(outcome(structured=False)) is None


def test_last_words_are_not_a_novel() -> None:
    told = failure_of(outcome(stderr="x" * 10_000, exit_code=1))
    assert told is not None
    assert len(told.message) < 600


@pytest.mark.parametrize("message", ["", "  \n"])
def test_a_failure_always_has_a_message(message: str) -> None:
    """A9: errorMessage is always set on failure."""
    result = conclude(outcome(Facts(failure=Failure("quota", message))))
    assert result.error_message == "The agent failed: quota."


def test_raw_tails_are_kept_when_the_runtime_said_nothing_itself() -> None:
    """A9: when parsing fails the raw tail of both streams goes into resultJson."""
    assert conclude(outcome(stderr="err", exit_code=1)).result_json == {
        "stdoutTail": "out tail",
        "stderrTail": "err",
    }
    assert conclude(outcome(Facts(failure=OVERLOADED), exit_code=1)).result_json is None


def test_timeouts_of_both_kinds_are_flagged() -> None:
    """A5: timedOut."""
    assert conclude(outcome(reason="timeout")).timed_out
    assert conclude(outcome(reason="idle_timeout")).timed_out
    assert not conclude(outcome(reason="cancelled")).timed_out


def test_the_session_is_kept_with_its_directory() -> None:
    """S2, S3: what resumes it, and where it was made."""
    result = conclude(outcome(Facts(ended="success", session_id="s-1", model="m", provider="p")))
    assert result.session_params == {"sessionId": "s-1", "cwd": "/w"}
    assert (result.session_id, result.session_display_id) == ("s-1", "s-1")
    assert (result.model, result.provider) == ("m", "p")


@pytest.mark.parametrize("unsafe", ["--flag", "a b", "", "x" * 500])
def test_an_unsafe_session_id_is_not_kept(unsafe: str) -> None:
    """A8: validated before it is stored."""
    assert conclude(outcome(Facts(ended="success", session_id=unsafe))).session_params is None


def test_a_session_that_was_replaced_is_told() -> None:
    """S5: users can see why."""
    said = Facts(ended="success", session_id="new")
    result = conclude(outcome(said, session={"sessionId": "old"}))
    assert result.result_json == {"sessionReplaced": {"asked": "old", "got": "new"}}


def cumulative(tokens: int, cost: float) -> Facts:
    return Facts(
        ended="success",
        session_id="s-1",
        usage=Usage(input_tokens=tokens, output_tokens=tokens),
        usage_basis="session_cumulative",
        cost_usd=cost,
        cost_basis="session_cumulative",
    )


def test_a_sessions_first_totals_are_the_runs_usage_and_are_remembered() -> None:
    """D10: per-run and session-cumulative reports are told apart."""
    result = conclude(outcome(cumulative(100, 0.5)))
    assert result.usage == Usage(input_tokens=100, output_tokens=100)
    assert (result.usage_basis, result.cost_usd) == ("per_run", 0.5)
    assert result.session_params is not None
    assert result.session_params["totals"] == {
        "usage": to_plain(Usage(input_tokens=100, output_tokens=100)),
        "costUsd": 0.5,
    }


def test_a_resumed_runs_usage_is_the_difference() -> None:
    """D10: exact, and marked as derived."""
    first = conclude(outcome(cumulative(100, 0.1))).session_params
    result = conclude(outcome(cumulative(130, 0.3), session=first))
    assert result.usage == Usage(input_tokens=30, output_tokens=30, source="derived")
    assert result.cost_usd == 0.2
    assert result.session_params is not None
    assert result.session_params["totals"]["costUsd"] == 0.3


def test_without_earlier_totals_the_share_of_a_run_is_unknown() -> None:
    """D10: unknown, not the whole session's."""
    result = conclude(outcome(cumulative(130, 0.3), session={"sessionId": "s-1"}))
    assert (result.usage, result.cost_usd, result.usage_basis) == (None, None, None)


@pytest.mark.parametrize("totals", [5, "x", [1], {"usage": 5, "costUsd": "much"}, {"costUsd": 9}])
def test_damaged_totals_are_unknown_not_an_error(totals: object) -> None:
    """D10, A8: stored parameters may be damaged."""
    session = {"sessionId": "s-1", "totals": totals}
    result = conclude(outcome(cumulative(130, 0.3), session=session))
    assert (result.usage, result.cost_usd) == (None, None)


def test_a_session_that_was_not_resumed_counts_from_zero() -> None:
    session = {"sessionId": "other", "totals": {"costUsd": 0.1}}
    assert conclude(outcome(cumulative(130, 0.3), session=session)).cost_usd == 0.3


def test_totals_survive_a_run_that_told_none() -> None:
    """D10: a crashed run does not forget what the session had used."""
    session = {"sessionId": "s-1", "totals": {"costUsd": 0.1}}
    result = conclude(outcome(Facts(session_id="s-1"), session=session, exit_code=1))
    assert result.session_params == {"sessionId": "s-1", "cwd": "/w", "totals": {"costUsd": 0.1}}


def test_per_run_usage_needs_no_totals() -> None:
    usage = Usage(input_tokens=3)
    said = Facts(ended="success", session_id="s-1", usage=usage, cost_usd=0.2)
    result = conclude(outcome(said, session={"sessionId": "s-1"}))
    assert (result.usage, result.cost_usd) == (usage, 0.2)
