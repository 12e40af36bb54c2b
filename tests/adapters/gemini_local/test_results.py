"""Results of Gemini CLI runs: the exit code lies both ways, and so do zeros."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.gemini_local import create_adapter
from binderclip.sdk.testing.fixtures import Case, read_case
from binderclip.sdk.testing.replay import Replay, replay

ADAPTER = create_adapter()


def case(name: str) -> Case:
    return read_case(ADAPTER.folder / "fixtures" / name)


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def failed(error: dict[str, Any] | None, *before: dict[str, Any], exit_code: int = 1) -> Replay:
    """A run that began, perhaps did something, and ended in an error."""
    init = {"type": "init", "session_id": "s-1", "model": "gemini-2.5-pro"}
    end: dict[str, Any] = {
        "type": "result",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "status": "error",
    }
    if error is not None:
        end["error"] = error
    return replay(ADAPTER, lines(init, *before, end), exit_code=exit_code)


@pytest.mark.parametrize(
    ("name", "exit_code", "error_code", "family"),
    [
        ("error_401", 145, "auth", "auth"),
        ("bad_key_400", 144, "auth", "auth"),
        ("no_auth", 41, "auth", "auth"),
        ("error_429", 173, "rate_limit", "transient_upstream"),
        ("unreachable", 1, "upstream", "transient_upstream"),
        ("stream_cut", 1, "upstream", "transient_upstream"),
        ("error_400_context", 144, "context_overflow", None),
        ("error_404_model", 1, "bad_config", None),
        ("bad_flag", 1, "bad_config", None),
        ("untrusted", 55, "permission", None),
        ("resume_unknown", 42, "unknown_session", None),
        ("loop_detected", 0, "process_failed", None),
        ("sigint_norelaunch", 0, "cut_output", None),
        ("sigterm_stream", None, "killed", None),
    ],
)
def test_a_recorded_failure_has_its_class(
    name: str, exit_code: int | None, error_code: str, family: str | None
) -> None:
    """A9: failures are told apart, whatever the exit code says."""
    result = case(name).replayed(ADAPTER).result
    assert (result.exit_code, result.error_code, result.error_family) == (
        exit_code,
        error_code,
        family,
    )
    assert result.error_message


def test_an_error_in_the_stream_is_a_failure_although_it_exits_with_zero() -> None:
    """A9: status error, no error object, exit code 0."""
    event = {"type": "error", "severity": "error", "message": "The model returned nothing."}
    result = failed(None, event, exit_code=0).result
    assert (result.error_code, result.error_message) == (
        "process_failed",
        "The model returned nothing.",
    )


def test_a_blocked_answer_is_a_refusal() -> None:
    words = "The model response was blocked due to safety settings."
    result = failed(
        None, {"type": "error", "severity": "error", "message": words}, exit_code=0
    ).result
    assert (result.error_code, result.error_family) == ("refusal", "model_refusal")


def test_the_turn_limit_is_told_by_its_type() -> None:
    result = failed(
        {"type": "FatalTurnLimitedError", "message": "Reached max session turns"}, exit_code=53
    ).result
    assert result.error_code == "turn_limit"


def test_the_exit_code_names_an_api_error_that_has_no_words() -> None:
    """API errors leave with their HTTP status modulo 256: 244 is 500."""
    result = failed({"type": "unknown", "message": "[API Error: oh no]"}, exit_code=244).result
    assert (result.error_code, result.error_message) == ("upstream", "[API Error: oh no]")


def test_a_used_up_quota_says_when_to_try_again() -> None:
    answer = {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota.",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}],
        }
    }
    error = {"type": "unknown", "message": f"[API Error: {json.dumps(answer)}]"}
    result = failed(error, exit_code=173).result
    assert (result.error_code, result.error_family) == ("quota", "provider_quota")
    assert result.retry_not_before == "2026-01-01T00:00:34.000Z"


def test_a_result_before_a_late_death_stands() -> None:
    """A9: an agent that dies after its result has succeeded."""
    result = case("plain").replayed(ADAPTER, exit_code=None, signal="SIGKILL").result
    assert (result.error_code, result.summary) == (None, "The answer is 42.")


@pytest.mark.parametrize("size", [131_072, 700_001])
def test_output_that_a_pipe_cut_is_no_success(size: int) -> None:
    """Trap 1: the tail is lost, the exit code is 0."""
    recorded = case("big_answer")
    result = recorded.replayed(ADAPTER, stdout=recorded.stdout[:size]).result
    assert result.error_code == "cut_output"
    assert result.session_id


def test_thinking_is_found_in_the_total_alone() -> None:
    """D10: disjoint buckets; output includes reasoning."""
    usage = case("tools").replayed(ADAPTER).result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens) == (3090, 8000)
    assert (usage.output_tokens, usage.reasoning_tokens) == (223, 28)
    assert (usage.cache_write_tokens, usage.source) == (None, "derived")


@pytest.mark.parametrize("name", ["stream_cut", "loop_detected", "sigterm_stream"])
def test_zeros_after_an_answer_are_unknown_not_free(name: str) -> None:
    """D10: exact or unknown."""
    result = case(name).replayed(ADAPTER).result
    assert (result.usage, result.cost_usd) == (None, None)


def test_a_resumed_run_is_counted_by_itself() -> None:
    """D10: Gemini's counts are of this run; nothing is subtracted."""
    session = {"sessionId": "822636cf-a64b-45b8-aea7-7aecbd7ce4a0"}
    usage = case("resume_2_second").replayed(ADAPTER, session=session).result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (100, 1300, 14)


@pytest.mark.parametrize("asked", ["auto", "pro", None])
def test_the_model_that_worked_is_named_when_the_cli_chose_it(asked: str | None) -> None:
    models = {"gemini-3-flash-preview": {"total_tokens": 5}, "gemini-2.5-pro": {"total_tokens": 90}}
    output = lines(
        {"type": "init", "session_id": "s-1", "model": asked},
        {"type": "result", "status": "success", "stats": {"models": models}},
    )
    assert replay(ADAPTER, output).result.model == "gemini-2.5-pro"


def test_another_unknown_session_message_is_recognised() -> None:
    """S4: from the runtime's own stderr."""
    stderr = b'Error resuming session: Invalid session identifier "x".\n  Searched in y.\n'
    result = replay(ADAPTER, b"", stderr, exit_code=42, session={"sessionId": "x"}).result
    assert (result.error_code, result.clear_session) == ("unknown_session", True)


def test_an_agent_that_speaks_of_unknown_sessions_is_not_believed() -> None:
    """S4: never from text that the agent wrote."""
    words = "Error resuming session: No previous sessions found for this project."
    output = lines(
        {"type": "init", "session_id": "s-1", "model": "m"},
        {"type": "message", "role": "assistant", "content": words, "delta": True},
        {"type": "result", "status": "success", "stats": {}},
    )
    result = replay(ADAPTER, output, f"{words}\n".encode(), session={"sessionId": "s-1"}).result
    assert (result.error_code, result.clear_session) == (None, False)


def test_an_unsafe_session_id_is_not_kept() -> None:
    """A8: ids are validated before they are stored."""
    output = lines({"type": "init", "session_id": "--yolo; rm", "model": "m"})
    result = replay(ADAPTER, output).result
    assert (result.session_id, result.session_params) == (None, None)
