"""Results of Paperclip adapters in our words: nothing invented, failures told apart (A5, A9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from binderclip.contract.run import ExecutionResult
from binderclip.plugins.foreign import LARGEST_SESSION, foreign_result

OK = {"exitCode": 0, "signal": None, "timedOut": False}


def mapped(**fields: Any) -> Any:
    return foreign_result({"result": {**OK, **fields}})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"inputTokens": 10, "outputTokens": 2, "cachedInputTokens": 4}, (10, 4, 2)),
        ({"inputTokens": 10, "outputTokens": 2}, (10, None, 2)),
        ({"inputTokens": "10", "outputTokens": 2.0}, (None, None, 2)),
    ],
)
def test_usage_is_taken_as_it_was_told(fields: dict[str, Any], expected: Any) -> None:
    """D10: what was not told is unknown, not 0."""
    usage = mapped(usage=fields).usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == expected
    assert usage.cache_write_tokens is None


def test_cached_tokens_are_taken_out_of_openais_input() -> None:
    told = {"inputTokens": 100, "cachedInputTokens": 70, "outputTokens": 5}
    assert mapped(usage=told, provider="openai").usage.input_tokens == 30
    assert mapped(usage=told, provider="anthropic").usage.input_tokens == 100


def test_zeros_are_unknown() -> None:
    """D10: adapters write 0 where their runtime told nothing."""
    zeros = {"inputTokens": 0, "outputTokens": 0, "cachedInputTokens": 0}
    result = mapped(usage=zeros, costUsd=0)
    assert (result.usage, result.usage_basis, result.cost_usd) == (None, None, None)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, None),
        ({"exitCode": 1}, "process_failed"),
        ({"exitCode": None, "signal": "SIGTERM"}, "killed"),
        ({"timedOut": True}, "timeout"),
        ({"exitCode": 1, "errorCode": "quota"}, "quota"),
        ({"exitCode": 1, "errorCode": "claude_auth_required"}, "auth"),
        ({"exitCode": 1, "errorCode": "max_turns_exhausted"}, "turn_limit"),
        ({"exitCode": 1, "errorCode": "adapter_failed"}, "process_failed"),
        ({"exitCode": None, "errorMessage": "no answer"}, "process_failed"),
        ({"exitCode": 0, "errorCode": "empty_answer"}, "process_failed"),
    ],
)
def test_every_failure_has_a_code_and_a_message(fields: dict[str, Any], code: str | None) -> None:
    result = mapped(**fields)
    assert result.error_code == code
    assert bool(result.error_message) == (code is not None)


def test_a_foreign_code_is_kept_beside_ours() -> None:
    told = mapped(exitCode=1, errorCode="hermes_gateway_down", resultJson={"a": 1})
    assert told.result_json == {"a": 1, "adapterErrorCode": "hermes_gateway_down"}


def test_a_warning_of_a_run_that_ended_well_is_no_failure() -> None:
    result = mapped(errorMessage="deprecated flag")
    assert result.error_code is None
    assert result.result_json == {"adapterWarning": "deprecated flag"}


def test_a_whole_conversation_is_not_kept_as_a_session() -> None:
    """A foreign adapter may return megabytes as session parameters."""
    result = mapped(sessionParams={"messages": "x" * LARGEST_SESSION})
    assert result.session_params is None
    assert "bytes of session parameters" in result.result_json["sessionDropped"]


def test_the_legacy_session_id_is_a_session() -> None:
    result = mapped(sessionId="abc")
    assert (result.session_params, result.session_display_id) == ({"sessionId": "abc"}, "abc")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"thrown": "spawn qwen ENOENT"}, "command_not_found"),
        ({"thrown": "no key"}, "plugin_failed"),
        ({"result": None}, "plugin_failed"),
        ({"result": [1]}, "plugin_failed"),
        ({}, "plugin_failed"),
    ],
)
def test_what_is_no_result_is_a_failed_one(answer: dict[str, Any], code: str) -> None:
    result = foreign_result(answer)
    assert result.error_code == code
    assert result.error_message


@pytest.mark.parametrize("junk", [None, True, -1, 1e300, "", "x", [], [[]], {}, {"a": [None]}])
def test_strange_values_never_raise(junk: Any) -> None:
    """A8: what an adapter returns is untrusted."""
    names = ("exitCode", "signal", "timedOut", "errorCode", "errorMessage", "usage", "costUsd")
    names += ("sessionParams", "sessionId", "resultJson", "summary", "provider", "clearSession")
    for fields in (*({name: junk} for name in names), dict.fromkeys(names, junk)):
        result = foreign_result({"result": {**OK, **fields}})
        assert msgspec.json.decode(msgspec.json.encode(result), type=ExecutionResult) == result
