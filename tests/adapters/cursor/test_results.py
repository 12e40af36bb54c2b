"""Results of Cursor runs: errors without a result line, sessions, usage of the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.cursor import create_adapter
from binderclip.sdk.testing.fixtures import Case, read_case
from binderclip.sdk.testing.replay import replay

ADAPTER = create_adapter()
SESSION = {"sessionId": "s-1"}
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "Auto"}
END = {"type": "result", "subtype": "success", "is_error": False, "result": "all of it"}


def case(name: str) -> Case:
    return read_case(ADAPTER.folder / "fixtures" / name)


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize(
    ("name", "error_code", "family"),
    [
        ("no_auth", "auth", "auth"),
        ("bad_model", "bad_config", None),
        ("bad_flag", "bad_config", None),
        ("no_trust", "permission", None),
        ("usage_limit", "quota", "provider_quota"),
        ("connection_lost", "upstream", "transient_upstream"),
        ("error_result", "rate_limit", "transient_upstream"),
        ("resume_unknown", "unknown_session", None),
        ("sigterm_stream", "killed", None),
        ("cut", "cut_output", None),
    ],
)
def test_a_failure_has_its_class(name: str, error_code: str, family: str | None) -> None:
    """A9: failures are told apart, although most have no result line."""
    result = case(name).replayed(ADAPTER).result
    assert (result.error_code, result.error_family) == (error_code, family)
    assert result.error_message


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("Error: Not logged in", "auth"),
        ("ConnectError: [unauthenticated] Error", "auth"),
        ("ConnectError: [resource_exhausted] Error", "rate_limit"),
        ("RetriableError: Agent turn stopped after repeated resume attempts", "upstream"),
        ("ActionRequiredError: OUTDATED_CLIENT", "bad_config"),
        ("Error: something else", "process_failed"),
        ("words that say nothing", "process_failed"),
    ],
)
def test_stderr_tells_why_a_run_has_no_result(stderr: str, code: str) -> None:
    result = replay(ADAPTER, lines(INIT), stderr.encode(), exit_code=1).result
    assert result.error_code == code
    assert stderr.removeprefix("Error: ") in (result.error_message or "")


def test_a_refused_model_does_not_list_all_others() -> None:
    message = case("bad_model").replayed(ADAPTER).result.error_message
    assert message == "Cannot use this model: no-such-model."


def test_complaints_of_a_run_that_succeeded_do_not_count() -> None:
    """A9: the runtime's own end marker stands."""
    stderr = b"ConnectError: [unavailable] retrying\n"
    assert replay(ADAPTER, lines(INIT, END), stderr).result.error_code is None


def test_exit_0_without_a_result_is_no_success() -> None:
    """A9, trap 3: the exit code alone decides nothing."""
    assert replay(ADAPTER, lines(INIT)).result.error_code == "cut_output"


def test_a_result_that_says_error_fails_even_with_exit_0() -> None:
    failed = {**END, "is_error": True, "result": "model overloaded"}
    result = replay(ADAPTER, lines(INIT, failed)).result
    assert (result.error_code, result.error_message) == ("upstream", "model overloaded")


def test_the_last_message_is_the_final_text() -> None:
    """The result's text is all messages in one."""
    result = case("tools").replayed(ADAPTER).result
    assert result.summary == "Done: I read notes.txt and wrote out.txt."
    assert replay(ADAPTER, lines(INIT, END)).result.summary == "all of it"


def test_usage_is_that_of_the_run_also_after_a_resume() -> None:
    """D10: input without cached tokens; nothing is subtracted."""
    usage = case("resume_2_second").replayed(ADAPTER).result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens) == (
        130,
        17408,
        0,
    )
    assert (usage.output_tokens, usage.reasoning_tokens) == (17, None)


@pytest.mark.parametrize("name", ["plain_old_version", "connection_lost", "sigterm_stream"])
def test_usage_that_was_not_told_is_unknown(name: str) -> None:
    """D10: exact or unknown, never 0."""
    result = case(name).replayed(ADAPTER).result
    assert (result.usage, result.cost_usd) == (None, None)


def test_a_killed_run_can_be_continued() -> None:
    """S1: the id is on the first line."""
    assert case("sigterm_stream").replayed(ADAPTER).result.session_id is not None


def test_another_chat_than_the_one_asked_for_is_told() -> None:
    """S5: why a session was replaced."""
    result = case("resume_replaced").replayed(ADAPTER).result
    assert result.error_code is None
    assert result.result_json is not None
    assert result.result_json["sessionReplaced"]["got"] == result.session_id


@pytest.mark.parametrize(
    "words",
    ["Error: unknown session s-1", "Chat s-1 not found", "Could not resume chat s-1"],
)
def test_an_unknown_session_is_recognised_from_stderr(words: str) -> None:
    """S4: from the runtime's own channel."""
    result = replay(ADAPTER, b"", words.encode(), exit_code=1, session=SESSION).result
    assert (result.error_code, result.clear_session) == ("unknown_session", True)
    assert result.session_params is None


def test_an_agent_that_speaks_of_unknown_sessions_is_not_believed() -> None:
    """S4: never from text that the agent wrote, nor once a session has begun."""
    words = "Error: unknown session s-1"
    message = {"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}}
    output = lines(INIT, message, END)
    result = replay(ADAPTER, output, words.encode(), session=SESSION).result
    assert (result.error_code, result.clear_session) == (None, False)


def test_refused_tools_are_listed_with_the_result() -> None:
    told = case("rejected").replayed(ADAPTER).result
    assert told.error_code is None
    assert told.result_json is not None
    assert [denial["title"] for denial in told.result_json["permissionDenials"]] == [
        "bash check.sh"
    ]
