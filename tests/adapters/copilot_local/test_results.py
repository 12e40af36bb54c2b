"""Results of Copilot runs: errors, sessions, and counts from the file it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.copilot_local import create_adapter
from binderclip.adapters.copilot_local.spending import SESSION_FILE, USAGE_FILE
from binderclip.sdk import (
    AgentRef,
    ExecutionRequest,
    ExecutionResult,
    Outcome,
    ProcessEnd,
    RuntimeSession,
)
from binderclip.sdk.testing.fixtures import Case, read_case
from binderclip.sdk.testing.replay import replay

ADAPTER = create_adapter()
BEGIN = {"type": "user.message", "data": {"content": "go"}}
END = {"type": "result", "sessionId": "s-1", "exitCode": 0}


def case(name: str) -> Case:
    return read_case(ADAPTER.folder / "fixtures" / name)


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def error(**data: Any) -> dict[str, Any]:
    return {"type": "session.error", "data": data}


def concluded(
    name: str,
    scratch: Path,
    session: dict[str, Any] | None = None,
    end: ProcessEnd | None = None,
) -> ExecutionResult:
    """The result of a recording whose run left these files."""
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type=ADAPTER.type)
    request = ExecutionRequest(
        run_id="r", agent=agent, runtime=RuntimeSession(session_params=session), config={}
    )
    parser = case(name).replayed(ADAPTER).builder.parser
    return ADAPTER.conclude(
        Outcome(request=request, end=end or ProcessEnd(), parser=parser, scratch=scratch)
    )


def spent(scratch: Path, *counts: int) -> None:
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
    metrics = {"m": {"usage": dict(zip(names, counts, strict=True))}} if counts else {}
    (scratch / USAGE_FILE).write_text(json.dumps({"modelMetrics": metrics}))


def buckets(result: ExecutionResult) -> tuple[int | None, ...] | None:
    used = result.usage
    if used is None:
        return None
    return (
        used.input_tokens,
        used.cached_input_tokens,
        used.cache_write_tokens,
        used.output_tokens,
    )


@pytest.mark.parametrize(
    ("name", "exit_code", "error_code", "family"),
    [
        ("error_401", 1, "auth", "auth"),
        ("error_429", 1, "rate_limit", "transient_upstream"),
        ("error_400_context", 1, "context_overflow", None),
        ("stream_error", 1, "upstream", "transient_upstream"),
        ("bad_flag", 1, "bad_config", None),
        ("resume_unknown", 1, "unknown_session", None),
        ("sigterm_stream", None, "killed", None),
        ("sigint_stream", None, "killed", None),
        ("plain_text", 0, "cut_output", None),
    ],
)
def test_a_recorded_failure_has_its_class(
    name: str, exit_code: int | None, error_code: str, family: str | None
) -> None:
    """A9: failures are told apart."""
    result = case(name).replayed(ADAPTER).result
    assert (result.exit_code, result.error_code, result.error_family) == (
        exit_code,
        error_code,
        family,
    )
    assert result.error_message


@pytest.mark.parametrize("name", ["error_429_once", "tool_error", "denied"])
def test_retries_failed_tools_and_denials_do_not_fail_a_run(name: str) -> None:
    assert case(name).replayed(ADAPTER).result.error_code is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"errorType": "quota", "message": "used up"}, "quota"),
        ({"errorType": "policy", "message": "not enabled"}, "permission"),
        ({"errorType": "query", "statusCode": 503, "message": "x"}, "upstream"),
        ({"errorType": "query", "statusCode": 404, "message": "no such model"}, "bad_config"),
        ({"errorType": "query", "message": "Last error: fetch failed"}, "upstream"),
        ({"errorType": "query", "message": "something else"}, "process_failed"),
        ({}, "process_failed"),
    ],
)
def test_an_error_event_is_classified(data: dict[str, Any], code: str) -> None:
    result = replay(
        ADAPTER, lines(BEGIN, error(**data), {**END, "exitCode": 1}), exit_code=1
    ).result
    assert result.error_code == code
    assert result.error_message


def test_a_used_up_quota_says_when_it_is_filled() -> None:
    """A5: retryNotBefore."""
    quotas = {
        "chat": {"hasQuota": True, "resetDate": "2026-11-20T00:00:00Z"},
        "premium": {"hasQuota": False, "resetDate": "2026-12-01T02:00:00+02:00"},
        "broken": {"hasQuota": False, "resetDate": "soon"},
    }
    failed = {"type": "model.call_failure", "data": {"statusCode": 402, "quotaSnapshots": quotas}}
    output = lines(BEGIN, failed, error(errorType="quota", message="used up"))
    result = replay(ADAPTER, output, exit_code=1).result
    assert (result.error_family, result.retry_not_before) == (
        "provider_quota",
        "2026-12-01T00:00:00.000Z",
    )


def test_an_error_that_was_overcome_is_forgotten() -> None:
    answer = {"type": "assistant.message", "data": {"content": "fine", "toolRequests": []}}
    result = replay(ADAPTER, lines(BEGIN, error(message="x"), answer, END)).result
    assert (result.error_code, result.summary) == (None, "fine")


def test_an_error_counts_even_if_the_exit_code_is_0() -> None:
    """A9: results do not trust the exit code."""
    result = replay(ADAPTER, lines(BEGIN, error(errorType="quota", message="x"), END)).result
    assert result.error_code == "quota"


def test_a_limit_of_credits_is_a_budget() -> None:
    data = {"usedAiCredits": 31, "maxAiCredits": 30}
    reached = {"type": "session_limits_exhausted.requested", "data": data}
    result = replay(ADAPTER, lines(BEGIN, reached, END)).result
    assert (result.error_code, result.error_message) == (
        "budget",
        "The limit of 30 AI credits is reached (31 used).",
    )


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("Error: No authentication information found.\n\nCopilot can be\n", "auth"),
        ("BYOK providers require an explicit model. Run `copilot help`\n", "bad_config"),
        ("error: unexpected argument '--x' found\n", "bad_config"),
        ("Error: something else\nmore\n", "process_failed"),
    ],
)
def test_a_run_that_never_began_says_why_on_stderr(stderr: str, code: str) -> None:
    result = replay(ADAPTER, b"", stderr.encode(), exit_code=1).result
    assert result.error_code == code


def test_an_agent_that_speaks_of_unknown_sessions_is_not_believed() -> None:
    """S4: never from text that the agent wrote."""
    words = "Error: No session, task, or name matched 's-1'."
    answer = {"type": "assistant.message", "data": {"content": words}}
    session = {"sessionId": "s-1"}
    result = replay(ADAPTER, lines(BEGIN, answer, END), words.encode(), session=session).result
    assert (result.error_code, result.clear_session) == (None, False)


def test_an_answer_with_tool_requests_is_not_the_last_word() -> None:
    data = {"content": "Let me look.", "toolRequests": [{"name": "bash"}]}
    result = replay(ADAPTER, lines(BEGIN, {"type": "assistant.message", "data": data}, END)).result
    assert result.summary is None


def test_denied_tools_are_listed_with_the_result() -> None:
    told = case("denied").replayed(ADAPTER).result.result_json
    assert told is not None
    assert "rm notes.txt" in [denial["title"] for denial in told["permissionDenials"]]


def test_tokens_come_from_the_file_in_disjoint_buckets(tmp_path: Path) -> None:
    """D10: input includes what was read from and written to the cache."""
    recorded = ADAPTER.folder / "fixtures" / "usage_output_file" / "usage.json"
    (tmp_path / USAGE_FILE).write_bytes(recorded.read_bytes())
    assert buckets(concluded("usage_output_file", tmp_path)) == (1440, 8000, 1650, 195)


def test_thinking_is_told_only_as_a_part_of_the_output(tmp_path: Path) -> None:
    """D10: output includes reasoning, or reasoning is unknown."""
    for reasoning, told in ((5, 5), (500, None)):
        used = {"inputTokens": 9, "outputTokens": 20, "reasoningTokens": reasoning}
        metrics = {"modelMetrics": {"m": {"usage": used}}}
        (tmp_path / USAGE_FILE).write_text(json.dumps(metrics))
        usage = concluded("plain", tmp_path).usage
        assert usage is not None
        assert (usage.output_tokens, usage.reasoning_tokens) == (20, told)


def test_a_resumed_run_is_counted_without_the_earlier_ones(tmp_path: Path) -> None:
    """D10, trap 2: the counts cover the session."""
    spent(tmp_path, 2300, 800, 300, 12)
    first = concluded("resume_1_first", tmp_path)
    assert buckets(first) == (1200, 800, 300, 12)
    spent(tmp_path, 5000, 2800, 400, 40)
    second = concluded("resume_2_second", tmp_path, first.session_params)
    assert buckets(second) == (600, 2000, 100, 28)


def test_a_resumed_run_whose_past_is_not_known_has_unknown_usage(tmp_path: Path) -> None:
    """D10: exact or unknown."""
    spent(tmp_path, 5000, 2800, 400, 40)
    session = {"sessionId": "c7532a45-fb99-4874-80cd-8c4b4f02826d"}
    result = concluded("resume_2_second", tmp_path, session)
    assert result.usage is None
    assert result.session_params is not None
    assert result.session_params["totals"]["usage"]["inputTokens"] == 1800


@pytest.mark.parametrize(
    ("name", "expected"), [("error_401", (0, 0, 0, 0)), ("stream_error", None)]
)
def test_no_counts_mean_zero_only_if_nothing_was_generated(
    name: str, expected: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """D10: an answer that broke off was not free."""
    spent(tmp_path)
    assert buckets(concluded(name, tmp_path, end=ProcessEnd(1))) == expected


@pytest.mark.parametrize("content", [b"", b"[]", b'{"modelMetrics": 3}', b"\xff"])
def test_a_broken_usage_file_leaves_usage_unknown(content: bytes, tmp_path: Path) -> None:
    """A8: output is untrusted."""
    (tmp_path / USAGE_FILE).write_bytes(content)
    assert concluded("plain", tmp_path).usage is None


def test_a_killed_run_can_be_continued(tmp_path: Path) -> None:
    """S1: its id was chosen before, since Copilot tells it only at the end."""
    (tmp_path / SESSION_FILE).write_text("chosen-1")
    killed = ProcessEnd(None, "SIGTERM")
    result = concluded("sigterm_stream", tmp_path, end=killed)
    assert (result.error_code, result.session_params) == ("killed", {"sessionId": "chosen-1"})
    assert concluded("bad_flag", tmp_path, end=ProcessEnd(1)).session_params is None


def test_a_session_is_not_invented_for_saved_output() -> None:
    assert case("sigterm_stream").replayed(ADAPTER).result.session_params is None
