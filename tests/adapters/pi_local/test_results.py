"""What a run of Pi came to, where its exit code and its events do not say it plainly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.pi_local import create_adapter
from binderclip.sdk import Assistant, Diff, System, Thinking, ToolCall, ToolResult
from binderclip.sdk.testing.fixtures import Case, cases_of
from binderclip.sdk.testing.replay import Replay, replay

ADAPTER = create_adapter()
CASES: dict[str, Case] = {case.name: case for case in cases_of(ADAPTER)}
SESSION = "01a1e099-785f-72cd-984f-86c8f0de4934"


def recorded(name: str) -> Replay:
    return CASES[name].replayed(ADAPTER)


def told(*events: dict[str, Any], stderr: str = "", exit_code: int = 0) -> Replay:
    stdout = "".join(f"{json.dumps(event)}\n" for event in events).encode()
    return replay(ADAPTER, stdout, stderr.encode(), exit_code=exit_code)


def said(text: str, reason: str = "stop", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "content": content, "stopReason": reason, **more}
    return {"type": "message_end", "message": message}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bad_flag", "bad_config"),
        ("error_400_context", "context_overflow"),
        ("error_401", "auth"),
        ("error_404_model", "bad_config"),
        ("error_429", "rate_limit"),
        ("max_tokens", "cut_output"),
        ("no_auth", "auth"),
        ("refusal", "refusal"),
        ("resume_other_directory", "unknown_session"),
        ("resume_unknown", "unknown_session"),
        ("sigint_stream", "killed"),
        ("sigterm_tool", "killed"),
        ("stream_cut", "upstream"),
        ("stream_error", "upstream"),
        ("unknown_model", "bad_config"),
        ("unreachable", "upstream"),
        ("v0.74.2_error_401", "auth"),
    ],
)
def test_every_failure_has_its_class(name: str, code: str) -> None:
    """A9: Pi exits 0 on most of them."""
    result = recorded(name).result
    assert result.error_code == code
    assert result.error_message


@pytest.mark.parametrize(
    "name", ["plain", "tools", "tool_error", "error_429_once", "v0.74.2_plain"]
)
def test_success_is_a_good_last_message_of_a_settled_run(name: str) -> None:
    assert recorded(name).result.error_code is None


def test_an_end_that_is_followed_by_a_retry_is_no_end() -> None:
    """One `agent_end` comes per attempt; a run cut after it has not settled."""
    whole = CASES["plain"].stdout
    assert whole.endswith(b'{"type":"agent_settled"}\n')
    cut = replay(ADAPTER, whole.removesuffix(b'{"type":"agent_settled"}\n'))
    assert cut.result.error_code == "cut_output"


def test_the_old_end_counts_until_another_attempt_begins() -> None:
    """Versions before 0.8 never settle."""
    end: dict[str, Any] = {"type": "agent_end", "messages": []}
    assert told(said("Done."), end).result.error_code is None
    retried = told(said("", "error", errorMessage="terminated"), end, {"type": "agent_start"})
    assert retried.result.error_code == "upstream"


def test_retries_are_notices_and_not_errors() -> None:
    """Trap 5: the last message decides."""
    seen = recorded("error_429_once")
    notices = [entry.text for entry in seen.entries if isinstance(entry, System)]
    assert notices == ["Retry 1 of 3 in 2 s: 429 Rate limited once. (rate_limit_error)"]
    assert seen.result.summary == "Recovered after one retry."


def test_streamed_text_is_shown_once_and_unstreamed_text_as_well() -> None:
    """T1: deltas, else the message."""
    shown = [e.text for e in recorded("plain").entries if isinstance(e, Assistant)]
    assert shown == ["The answer is 42."]
    unstreamed = told(said("All at once."), {"type": "agent_settled"})
    shown = [e.text for e in unstreamed.entries if isinstance(e, Assistant)]
    assert shown == ["All at once."]
    thoughts = [e.text for e in recorded("tools").entries if isinstance(e, Thinking)]
    assert thoughts == ["I will look at the directory first.", "All is done."]


def test_lines_end_at_line_feeds_only() -> None:
    """Trap 6: other separators stand inside of JSON strings."""
    text = "one\u2028two\u0085three\rfour"
    line = json.dumps(said(text), ensure_ascii=False) + '\n{"type":"agent_settled"}\n'
    seen = replay(ADAPTER, line.encode())
    assert seen.result.summary == text
    assert seen.coverage.unknown == 0


def test_calls_summaries_and_nested_calls_add_up() -> None:
    """D10: each model call once; repetitions in other events are not added."""
    counts = {"input": 5, "output": 7, "cacheRead": 2, "cacheWrite": 1, "reasoning": 3}
    usage = {**counts, "cost": {"total": 0.1}}
    message = said("Done.", usage=usage)["message"]
    seen = told(
        {"type": "message_update", "usage": usage, "assistantMessageEvent": {"type": "start"}},
        {"type": "message_end", "message": {"role": "toolResult", "usage": usage}},
        {"type": "compaction_end", "result": {"usage": usage}},
        {"type": "message_end", "message": message},
        {"type": "turn_end", "message": message},
        {"type": "agent_end", "messages": [message], "willRetry": False},
        {"type": "agent_settled"},
    )
    found = seen.result.usage
    assert found is not None
    assert (found.input_tokens, found.cached_input_tokens, found.cache_write_tokens) == (15, 6, 3)
    assert (found.output_tokens, found.reasoning_tokens) == (21, 9)
    assert seen.result.cost_usd == 0.3


def test_a_cost_of_nothing_for_something_is_unknown() -> None:
    """D10: exact or unknown, not 0."""
    usage = {"input": 5, "output": 7, "cost": {"total": 0}}
    seen = told(said("Done.", usage=usage), {"type": "agent_settled"})
    assert seen.result.cost_usd is None
    assert recorded("error_401").result.cost_usd == 0


def test_a_resumed_run_counts_for_itself() -> None:
    """Trap 2: nothing is subtracted."""
    session = {"sessionId": SESSION, "totals": {"usage": {"inputTokens": 1200}}}
    usage = CASES["resume_2_second"].replayed(ADAPTER, session=session).result.usage
    assert usage is not None
    assert usage.input_tokens == 100


def test_an_unknown_session_is_believed_only_before_the_first_event() -> None:
    """S4: never after the session has spoken."""
    words = f"No session found matching '{SESSION}'\n"
    assert told(stderr=words, exit_code=1).result.clear_session
    opened = {"type": "session", "id": SESSION}
    assert not told(opened, stderr=words, exit_code=1).result.clear_session


def test_a_command_that_failed_is_an_error_with_its_exit_code() -> None:
    results = [e for e in recorded("tool_error").entries if isinstance(e, ToolResult)]
    assert [(r.exit_code, r.is_error) for r in results] == [(3, True), (None, True), (None, True)]
    ran = [e.exit_code for e in recorded("tools").entries if isinstance(e, ToolResult)]
    assert ran == [0, None, None]


def test_parallel_calls_and_edits_are_told_in_common_terms() -> None:
    """T1b: kinds, titles and diffs."""
    entries = recorded("edit").entries
    calls = [(e.tool_kind, e.title) for e in entries if isinstance(e, ToolCall)]
    assert calls == [
        ("shell", "echo hello && ls"),
        ("read", "/tmp/ws/notes.txt"),
        ("edit", "/tmp/ws/notes.txt"),
    ]
    changes = [(e.change_type, e.text) for e in entries if isinstance(e, Diff)]
    assert ("remove", "first line of notes") in changes
    assert ("add", "FIRST line of notes") in changes
    written = [e.text for e in recorded("tools").entries if isinstance(e, Diff)]
    assert written == ["/tmp/ws/out.txt", "written by the agent", "second line"]


def test_the_model_is_the_one_that_answered() -> None:
    result = recorded("plain").result
    assert (result.provider, result.model) == ("anthropic", "claude-sonnet-4-5")


def test_an_event_of_an_unknown_type_is_kept_and_counted() -> None:
    """T4: coverage."""
    seen = told({"type": "news"}, said("Done."), {"type": "agent_settled"})
    assert (seen.coverage.lines, seen.coverage.unknown) == (3, 1)
    assert seen.result.error_code is None
