"""What misleads a parser of Claude Code: exit codes, echoed ids, sums, repeated text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.claude_local import create_adapter
from binderclip.sdk import Assistant, Diff, Result, Thinking, ToolCall, ToolResult, Usage
from binderclip.sdk.testing.fixtures import Case, cases_of
from binderclip.sdk.testing.replay import Replay, replay

ADAPTER = create_adapter()
CASES: dict[str, Case] = {case.name: case for case in cases_of(ADAPTER)}
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "11111111-2222-4333-8444-555555555555",
    "model": "m",
    "claude_code_version": "2.1.325",
}


def seen(name: str, **options: Any) -> Replay:
    return CASES[name].replayed(ADAPTER, **options)


def told(*events: Any, exit_code: int = 0, stderr: bytes = b"") -> Replay:
    lines = "".join(json.dumps(event) + "\n" for event in events)
    return replay(ADAPTER, lines.encode(), stderr, exit_code=exit_code)


def result(**fields: Any) -> dict[str, Any]:
    usual = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1}
    return {**usual, "session_id": INIT["session_id"], "result": "ok", **fields}


def of(kind: Any, run: Replay) -> list[Any]:
    return [entry for entry in run.entries if type(entry) is kind]


@pytest.mark.parametrize(
    ("case", "code", "family"),
    [
        ("error_401", "auth", "auth"),
        ("error_401_oauth", "auth", "auth"),
        ("no_auth", "auth", "auth"),
        ("v2.1.197_error_401", "auth", "auth"),
        ("error_400_credit", "quota", "provider_quota"),
        ("usage_limit", "quota", "provider_quota"),
        ("error_429", "rate_limit", "transient_upstream"),
        ("error_500", "upstream", "transient_upstream"),
        ("unreachable", "upstream", "transient_upstream"),
        ("error_400_context", "context_overflow", None),
        ("error_404_model", "bad_config", None),
        ("refusal", "refusal", "model_refusal"),
        ("max_turns", "turn_limit", None),
        ("max_budget", "budget", None),
        ("max_tokens", "upstream", None),
        ("bad_flag", "bad_config", None),
        ("no_verbose", "bad_config", None),
        ("no_sandbox", "bad_config", None),
        ("as_root", "permission", None),
        ("sigint_stream", "killed", None),
        ("sigterm_stream", "killed", None),
        ("resume_unknown", "unknown_session", None),
        ("resume_bad_name", "unknown_session", None),
        ("v2.1.197_resume_unknown", "unknown_session", None),
    ],
)
def test_failures_are_told_apart(case: str, code: str, family: str | None) -> None:
    """A9."""
    run = seen(case).result
    assert (run.error_code, run.error_family) == (code, family)
    assert run.error_message


@pytest.mark.parametrize("case", ["error_429_once", "stream_error", "permission_denied", "plain"])
def test_a_run_that_recovered_is_no_failure(case: str) -> None:
    """A9: retries are system entries, never errors."""
    run = seen(case)
    assert run.result.error_code is None
    assert not [entry for entry in of(Result, run) if entry.is_error]


def test_an_interrupt_fails_although_the_exit_code_is_0() -> None:
    assert CASES["sigint_stream"].exit_code == 0
    assert seen("sigint_stream").result.error_code == "killed"


def test_an_api_error_has_subtype_success_and_still_fails() -> None:
    entry = of(Result, seen("error_401", exit_code=0))[0]
    assert (entry.subtype, entry.is_error) == ("success", True)


def test_a_death_after_a_good_result_is_success() -> None:
    """A9: what the runtime said stands, whatever killed it afterwards."""
    assert seen("plain", exit_code=1).result.error_code is None
    assert seen("plain", exit_code=None, signal="SIGKILL").result.error_code is None


def test_a_limit_that_stopped_the_run_wins_over_its_result() -> None:
    """A11."""
    assert seen("sigint_stream", reason="timeout").result.error_code == "timeout"
    assert seen("sigterm_stream", reason="cancelled").result.error_code == "cancelled"


def test_a_cut_result_line_is_no_success() -> None:
    run = seen("plain", stdout=CASES["plain"].stdout[:-200])
    assert run.result.error_code == "cut_output"
    assert run.coverage.unknown == 1


def test_the_echoed_id_of_an_unknown_session_is_not_kept() -> None:
    """S4, A8."""
    for case in ("resume_unknown", "resume_bad_name", "v2.1.197_resume_unknown"):
        run = seen(case).result
        assert (run.session_params, run.session_id, run.clear_session) == (None, None, True)


def test_an_unknown_session_is_told_by_stderr_alone_too() -> None:
    """S4."""
    assert seen("resume_unknown", stdout=b"").result.error_code == "unknown_session"


def test_the_agents_own_words_about_sessions_mean_nothing() -> None:
    """S4: never from text the agent wrote, nor from a hook's stderr in a run that began."""
    words = "No conversation found with session ID: 1"
    message = {"role": "assistant", "content": [{"type": "text", "text": words}]}
    run = told(
        INIT,
        {"type": "assistant", "message": message},
        result(result=words),
        stderr=words.encode() + b"\n",
    )
    assert run.result.error_code is None
    assert run.result.session_id == INIT["session_id"]


def test_an_id_of_a_session_that_never_began_is_not_kept() -> None:
    assert seen("no_sandbox").result.session_params is None


@pytest.mark.parametrize("bad", ["--flag", "a b", "", 5, None, "x" * 300])
def test_an_unsafe_session_id_is_not_kept(bad: object) -> None:
    """A8."""
    run = told({**INIT, "session_id": bad}, result(session_id=bad))
    assert run.result.session_params is None


def test_when_a_usage_limit_ends_is_kept() -> None:
    """A5: retryNotBefore."""
    assert seen("usage_limit").result.retry_not_before == "2026-11-16T01:00:00.000Z"


def test_a_moment_out_of_range_is_left_out() -> None:
    info = {"status": "rejected", "resetsAt": 1e300, "rateLimitType": "five_hour"}
    failed = result(is_error=True, api_error_status=429, result="limit")
    run = told(INIT, {"type": "rate_limit_event", "rate_limit_info": info}, failed, exit_code=1)
    assert (run.result.error_code, run.result.retry_not_before) == ("quota", None)


def test_usage_and_cost_of_a_resumed_run_are_its_own() -> None:
    """D10: `total_cost_usd` and `modelUsage` cover the whole session."""
    first = seen("resume_1_first").result
    second = seen("resume_2_second", session=first.session_params).result
    assert second.session_id == first.session_id
    assert second.cost_usd == 0.0009
    assert second.usage == Usage(
        input_tokens=100,
        cached_input_tokens=1300,
        cache_write_tokens=0,
        output_tokens=14,
        reasoning_tokens=0,
    )


def test_an_older_version_tells_the_cost_of_the_run_itself() -> None:
    """D10."""
    assert seen("v2.1.197_resume_2_second").result.cost_usd == 0.0009


def test_usage_of_several_results_is_added_up() -> None:
    """D10: work in the background prints a result each time the agent goes on."""
    run = seen("background_command")
    assert len(of(Result, run)) == 2
    assert run.result.usage is not None
    assert (run.result.usage.input_tokens, run.result.usage.output_tokens) == (300, 30)
    assert (run.result.cost_usd, run.result.summary) == (0.00135, "it ended")


def test_tokens_of_sub_agents_are_counted() -> None:
    """D10: `usage` leaves them out, the count by model has them."""
    usage = seen("subagent_in_background").result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3400, 340)


def test_a_try_that_was_given_up_is_counted() -> None:
    usage = seen("stream_error").result.usage
    assert usage is not None
    assert usage.input_tokens == 200


def test_a_cost_that_the_cli_guessed_is_unknown() -> None:
    """D10: no price for the model, no cost."""
    assert b'"costBasis":"unknown"' in CASES["bad_model_name"].stdout
    assert seen("bad_model_name").result.cost_usd is None


def test_what_an_interrupted_request_used_is_unknown() -> None:
    """D10: not 0."""
    run = seen("sigint_stream").result
    assert (run.usage, run.cost_usd) == (None, None)


def test_the_last_real_words_are_the_summary_of_a_failed_run() -> None:
    assert seen("max_turns").result.summary == "Step."
    assert seen("error_401").result.summary is None


def test_denied_tools_are_listed_although_the_run_succeeded() -> None:
    told_by = seen("permission_denied").result.result_json or {}
    assert [denied["tool_name"] for denied in told_by["permissionDenials"]] == ["Write"]


def test_streamed_text_is_shown_once() -> None:
    """T4: deltas merge, and the whole message that follows is not repeated."""
    parts, whole = seen("partial_messages"), seen("tools")
    for kind in (Assistant, Thinking):
        assert [e.text for e in of(kind, parts)] == [e.text for e in of(kind, whole)]
    assert parts.result.usage == whole.result.usage


def test_a_message_that_was_not_streamed_is_shown_in_a_streaming_run() -> None:
    message = {"id": "other", "content": [{"type": "text", "text": "unstreamed"}]}
    run = told(INIT, {"type": "assistant", "message": message}, result())
    assert [entry.text for entry in of(Assistant, run)] == ["unstreamed"]


def test_tools_have_kinds_titles_and_exit_codes() -> None:
    """T1b."""
    run = seen("plan_and_tools")
    calls = {entry.name: entry for entry in of(ToolCall, run)}
    assert {name: call.tool_kind for name, call in calls.items()} == {
        "TaskCreate": "todo",
        "TaskUpdate": "todo",
        "TaskList": "todo",
        "Bash": "shell",
        "NoSuch": "other",
        "Read": "read",
        "Write": "write",
        "Agent": "agent",
    }
    shells = [e for e in of(ToolResult, run) if e.tool_name == "Bash" and not e.parent_tool_use_id]
    assert [(entry.is_error, entry.exit_code) for entry in shells] == [(False, None), (True, 3)]
    assert calls["Read"].title == "/tmp/ws/notes.txt"


def test_the_plan_follows_the_task_tools() -> None:
    """T1b: items of a todo call."""
    plans = [
        e.input["items"] for e in of(ToolCall, seen("plan_and_tools")) if e.tool_kind == "todo"
    ]
    assert plans[-1] == [
        {"text": "Look around", "status": "in_progress"},
        {"text": "Write it", "status": "pending"},
    ]


def test_a_todo_list_is_its_items() -> None:
    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}, 7]
    block = {"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {"todos": todos}}
    run = told(INIT, {"type": "assistant", "message": {"content": [block]}}, result())
    assert of(ToolCall, run)[0].input["items"] == [
        {"text": "a", "status": "completed"},
        {"text": "b", "status": "pending"},
    ]


def test_entries_of_a_sub_agent_name_the_call_that_began_it() -> None:
    """T1b."""
    run = seen("plan_and_tools")
    agent = next(entry for entry in of(ToolCall, run) if entry.name == "Agent")
    inner = [entry for entry in run.entries if entry.parent_tool_use_id]
    assert {entry.parent_tool_use_id for entry in inner} == {agent.tool_use_id}
    assert {type(entry).__name__ for entry in inner} == {"User", "ToolCall", "ToolResult"}


def test_edits_and_new_files_become_diffs() -> None:
    """T1: diff entries carry the call and the path."""
    edited = [(e.change_type, e.text) for e in of(Diff, seen("edit"))]
    assert ("remove", "first line of notes") in edited
    assert ("add", "FIRST line of notes") in edited
    written = of(Diff, seen("tools"))
    assert [e.text for e in written if e.change_type == "add"] == [
        "written by the agent",
        "second line",
    ]
    assert {e.path for e in written} == {"/tmp/ws/out.txt"}


def test_images_are_attachments_and_not_text() -> None:
    """T1b."""
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 1000}
    content = [{"type": "text", "text": "see"}, {"type": "image", "source": source}]
    block = {"type": "tool_result", "tool_use_id": "t", "content": content}
    entry = of(ToolResult, told({"type": "user", "message": {"content": [block]}}))[0]
    assert entry.content == "see\n[image/png]"
    assert [part.media_type for part in entry.attachments] == ["image/png"]


def test_new_events_are_kept_and_counted() -> None:
    """T4: a line of no known shape is shown raw."""
    run = told(
        INIT,
        {"type": "brand_new", "x": 1},
        {"type": "system", "subtype": "brand_new"},
        {"type": 5},
        result(new_field={"a": 1}),
    )
    assert (run.coverage.lines, run.coverage.unknown) == (5, 3)
    assert run.result.error_code is None


def test_lines_end_at_lf_alone() -> None:
    text = "one\u2028two\u0085three\rfour"
    message = {"content": [{"type": "text", "text": text}]}
    lines = [INIT, {"type": "assistant", "message": message}, result(result=text)]
    stdout = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    run = replay(ADAPTER, stdout.encode())
    assert run.result.summary == text
    assert run.coverage.unknown == 0


def test_older_result_lines_give_their_text() -> None:
    """N1: `content` and `text` count, as does a line of type output."""
    assert told({"type": "result", "content": "Hello World"}).result.summary == "Hello World"
    assert told({"type": "output", "text": "Hello"}, result(result="")).result.summary is None
