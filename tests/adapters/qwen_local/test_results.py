"""Results of Qwen Code runs: errors, limits, and counts that cover a whole session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.qwen_local import create_adapter
from binderclip.sdk.testing.fixtures import Case, read_case
from binderclip.sdk.testing.replay import replay

ADAPTER = create_adapter()
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "m"}
TOTALS = {"inputTokens": 3000, "cachedInputTokens": 1600, "outputTokens": 24}


def case(name: str) -> Case:
    return read_case(ADAPTER.folder / "fixtures" / name)


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def said(text: str, **usage: int) -> dict[str, Any]:
    message = {"content": [{"type": "text", "text": text}], "usage": usage}
    return {"type": "assistant", "parent_tool_use_id": None, "message": message}


def ended(message: str | None = None, **usage: int) -> dict[str, Any]:
    end: dict[str, Any] = {"type": "result", "is_error": message is not None, "usage": usage}
    return {**end, "error": {"message": message}} if message else {**end, "result": "done"}


@pytest.mark.parametrize(
    ("name", "exit_code", "error_code", "family"),
    [
        ("error_401", 1, "auth", "auth"),
        ("no_auth", 1, "auth", "auth"),
        ("error_400_context", 1, "context_overflow", None),
        ("stream_cut", 1, "upstream", "transient_upstream"),
        ("bad_flag", 1, "bad_config", None),
        ("turn_limit", 53, "turn_limit", None),
        ("resume_unknown", 1, "unknown_session", None),
        ("big_answer", 0, "cut_output", None),
        ("sigterm_stream", None, "killed", None),
        ("sigint_stream", None, "killed", None),
        ("error_429", None, "killed", None),
        ("error_500", None, "killed", None),
        ("stream_error", None, "killed", None),
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


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("[API Error: 429 slow down]", "rate_limit"),
        ("[API Error: 429 You exceeded your current quota]", "quota"),
        ("[API Error: 503]", "upstream"),
        ("[API Error: 404 no such model]", "bad_config"),
        ("[API Error: Overloaded]", "upstream"),
        ("Missing API key for OpenAI-compatible auth. Set it.", "auth"),
        ("something else", "process_failed"),
    ],
)
def test_a_results_message_is_classified(message: str, code: str) -> None:
    result = replay(ADAPTER, lines(INIT, ended(message)), exit_code=1).result
    assert (result.error_code, result.error_message) == (code, message)


def test_a_run_that_waits_for_a_retry_is_stopped_by_the_idle_limit() -> None:
    """Trap 5: silence is not a hang, retries are not failures; the limit's reason stands."""
    result = case("error_429").replayed(ADAPTER, reason="idle_timeout").result
    assert (result.error_code, result.timed_out) == ("idle_timeout", True)


def test_a_budget_of_tool_calls_ends_with_its_class() -> None:
    stderr = b"Reached max tool calls.\n"
    result = replay(ADAPTER, lines(INIT), stderr, exit_code=55).result
    assert (result.error_code, result.error_message) == ("budget", "Reached max tool calls.")


def test_a_failed_sub_agent_does_not_fail_the_run() -> None:
    """A result with no counts comes from a sub-agent; the last result counts."""
    output = lines(
        INIT,
        ended("sub-agent broke", input_tokens=0, output_tokens=0),
        said("fine"),
        ended(input_tokens=10, output_tokens=2, cache_read_input_tokens=4),
    )
    result = replay(ADAPTER, output).result
    assert (result.error_code, result.summary) == (None, "done")
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.cached_input_tokens) == (6, 4)


def test_an_api_error_is_not_the_agents_answer() -> None:
    assert case("error_401").replayed(ADAPTER).result.summary is None
    cut = case("stream_cut").replayed(ADAPTER).result.summary
    assert cut and cut.startswith("This answer") and "API Error" not in cut


def test_a_resumed_run_is_counted_without_the_earlier_ones() -> None:
    """D10, trap 2: the counts cover the session."""
    session = {"sessionId": "2151a150-35b9-4b9d-bf81-71f960770948", "totals": {"usage": TOTALS}}
    result = case("resume_2_second").replayed(ADAPTER, session=session).result
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.cached_input_tokens) == (200, 2600)
    assert (result.usage.output_tokens, result.usage.source) == (28, "derived")


def test_a_resumed_run_whose_past_is_not_known_has_unknown_usage() -> None:
    """D10: exact or unknown."""
    session = {"sessionId": "2151a150-35b9-4b9d-bf81-71f960770948"}
    result = case("resume_2_second").replayed(ADAPTER, session=session).result
    assert result.usage is None
    assert result.session_params is not None
    assert result.session_params["totals"]["usage"]["inputTokens"] == 3200


def test_the_steps_of_a_run_without_a_result_are_counted_once_over_all_runs() -> None:
    """D10: what a stopped run used is in the session's next count, and is subtracted there."""
    before = {"sessionId": "s-1", "totals": {"usage": TOTALS}}
    step = {"input_tokens": 500, "output_tokens": 7, "cache_read_input_tokens": 100}
    stopped = replay(ADAPTER, lines(INIT, said("hm", **step)), exit_code=53, session=before).result
    assert stopped.usage is not None
    assert (stopped.usage.input_tokens, stopped.usage.output_tokens) == (400, 7)
    total = {"input_tokens": 5700, "output_tokens": 41, "cache_read_input_tokens": 1900}
    following = replay(ADAPTER, lines(INIT, ended(**total)), session=stopped.session_params).result
    assert following.usage is not None
    assert (following.usage.input_tokens, following.usage.cached_input_tokens) == (400, 200)
    assert following.usage.output_tokens == 10


def test_a_stopped_run_of_a_session_without_totals_invents_none() -> None:
    step = {"input_tokens": 500, "output_tokens": 7, "cache_read_input_tokens": 100}
    output = lines(INIT, said("hm", **step))
    result = replay(ADAPTER, output, exit_code=53, session={"sessionId": "s-1"}).result
    assert result.session_params == {"sessionId": "s-1"}


def test_zeros_after_an_answer_are_unknown_not_free() -> None:
    """D10: exact or unknown."""
    assert case("stream_cut").replayed(ADAPTER).result.usage is None


def test_no_session_is_kept_from_a_run_that_never_began() -> None:
    """A8: the id in an early error belongs to a session that was never saved."""
    assert case("no_auth").replayed(ADAPTER).result.session_params is None


def test_denied_tools_are_told_although_the_run_succeeds() -> None:
    denial = {"tool_name": "run_shell_command", "tool_use_id": "t"}
    output = lines(INIT, {**ended(), "permission_denials": [denial]})
    result = replay(ADAPTER, output).result
    assert result.error_code is None
    assert result.result_json == {"permissionDenials": [denial]}


def test_an_agent_that_speaks_of_unknown_sessions_is_not_believed() -> None:
    """S4: never from text that the agent wrote."""
    words = "No saved session found with ID s-1. Run `qwen --resume`."
    output = lines(INIT, said(words), ended())
    result = replay(ADAPTER, output, words.encode(), session={"sessionId": "s-1"}).result
    assert (result.error_code, result.clear_session) == (None, False)
