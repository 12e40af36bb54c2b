"""What misleads a parser of Codex: retries, thread totals, silent commands, names as ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.codex_local import create_adapter
from binderclip.adapters.codex_local.failures import failure_of
from binderclip.adapters.codex_local.items import unwrapped
from binderclip.sdk import (
    AgentRef,
    Assistant,
    Diff,
    ExecutionRequest,
    Outcome,
    ProcessEnd,
    Result,
    RuntimeSession,
    System,
    ToolCall,
    ToolResult,
    Usage,
)
from binderclip.sdk.testing.fixtures import Case, cases_of
from binderclip.sdk.testing.replay import Replay, replay

ADAPTER = create_adapter()
CASES: dict[str, Case] = {case.name: case for case in cases_of(ADAPTER)}
THREAD = {"type": "thread.started", "thread_id": "01a1e090-aa0d-74b0-99cf-5f96b4da1703"}
DONE = {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}}


def seen(name: str, **options: Any) -> Replay:
    return CASES[name].replayed(ADAPTER, **options)


def told(*events: Any, exit_code: int = 0, stderr: bytes = b"") -> Replay:
    lines = "".join(json.dumps(event) + "\n" for event in events)
    return replay(ADAPTER, lines.encode(), stderr, exit_code=exit_code)


def item(state: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{state}", "item": {"id": "item_0", **fields}}


def of(kind: Any, run: Replay) -> list[Any]:
    return [entry for entry in run.entries if type(entry) is kind]


@pytest.mark.parametrize(
    ("case", "code", "family"),
    [
        ("error_401", "auth", "auth"),
        ("no_auth", "auth", "auth"),
        ("error_429", "rate_limit", "transient_upstream"),
        ("error_500", "upstream", "transient_upstream"),
        ("overloaded", "upstream", "transient_upstream"),
        ("stream_cut", "upstream", "transient_upstream"),
        ("stream_error", "upstream", "transient_upstream"),
        ("usage_limit", "quota", "provider_quota"),
        ("quota", "quota", "provider_quota"),
        ("context_length", "context_overflow", None),
        ("error_400_context", "context_overflow", None),
        ("error_404_model", "bad_config", None),
        ("bad_flag", "bad_config", None),
        ("bad_setting", "bad_config", None),
        ("no_git_check", "bad_config", None),
        ("resume_unknown", "unknown_session", None),
        ("sigterm_stream", "killed", None),
        ("unreachable", "killed", None),
        ("sigint_stream", "process_failed", None),
    ],
)
def test_failures_are_told_apart(case: str, code: str, family: str | None) -> None:
    """A9."""
    run = seen(case).result
    assert (run.error_code, run.error_family) == (code, family)
    assert run.error_message


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("You've hit your usage limit. Try again later.", "quota"),
        ("You\u2019ve hit your usage limit. Try again later.", "quota"),
        ("Your workspace is out of credits. Add credits to continue.", "quota"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "auth"),
        ("unexpected status 403 Forbidden: nope, url: http://127.0.0.1/v1", "auth"),
        ("unexpected status 502 Bad Gateway: sign in again", "upstream"),
        ("This content was flagged for possible biological risk.", "refusal"),
        ('{"error": {"message": "context length exceeded"}}', "context_overflow"),
        ("{not json", "process_failed"),
        ("flour", "process_failed"),
    ],
)
def test_messages_are_classified_by_status_and_then_by_words(message: str, code: str) -> None:
    """A9: no status code, no class, only words."""
    assert failure_of(message).code == code


@pytest.mark.parametrize("case", ["error_429_once", "unknown_model", "tool_error", "plain"])
def test_retries_and_warnings_are_no_failure(case: str) -> None:
    """A9: an `error` line that reconnects, an error item before the turn, a failed command."""
    run = seen(case)
    assert run.result.error_code is None
    assert not [entry for entry in of(Result, run) if entry.is_error]


def test_a_retry_is_shown_as_the_system_speaking() -> None:
    shown = [entry.text for entry in of(System, seen("error_429_once"))]
    assert shown == [
        "Reconnecting... 1/1 (exceeded retry limit, last status: 429 Too Many Requests)"
    ]


def test_the_last_error_counts_when_the_turn_never_ended() -> None:
    run = told(THREAD, {"type": "error", "message": "Quota exceeded. Check it."}, exit_code=1)
    assert run.result.error_code == "quota"


def test_a_failed_turn_wins_over_exit_code_0() -> None:
    """A9: the exit code alone decides nothing."""
    assert seen("error_401", exit_code=0).result.error_code == "auth"
    assert seen("plain", exit_code=1).result.error_code is None


def test_a_cut_stream_is_no_success() -> None:
    run = seen("plain", stdout=CASES["plain"].stdout[:-40])
    assert run.result.error_code == "cut_output"


def test_a_limit_that_stopped_the_run_wins() -> None:
    """A11."""
    assert seen("unreachable", reason="idle_timeout").result.error_code == "idle_timeout"


def test_usage_of_each_run_of_a_thread_is_its_own() -> None:
    """D10: Codex counts 2300, 3700 and 11840 for the whole thread."""
    session: dict[str, Any] | None = None
    runs = []
    for number in (1, 2, 3):
        result = seen(f"resume_thrice_{number}", session=session).result
        session = result.session_params
        runs.append(result.usage)
    assert runs == [
        Usage(
            input_tokens=1500,
            cached_input_tokens=800,
            cache_write_tokens=0,
            output_tokens=12,
            reasoning_tokens=0,
        ),
        Usage(
            input_tokens=100,
            cached_input_tokens=1300,
            cache_write_tokens=0,
            output_tokens=14,
            reasoning_tokens=0,
            source="derived",
        ),
        Usage(
            input_tokens=140,
            cached_input_tokens=7000,
            cache_write_tokens=1000,
            output_tokens=60,
            reasoning_tokens=10,
            source="derived",
        ),
    ]


def test_usage_of_a_thread_with_an_unknown_past_is_unknown() -> None:
    """D10: exact or unknown."""
    thread = seen("resume_1_first").result.session_id
    run = seen("resume_2_second", session={"sessionId": thread}).result
    assert run.usage is None
    assert run.session_params is not None
    assert run.session_params["totals"]["usage"]["inputTokens"] == 1600


def test_a_failed_run_keeps_the_totals_of_its_thread() -> None:
    """D10: else the run after it would be charged twice."""
    first = seen("resume_1_first").result.session_params
    assert first is not None
    thread = {"type": "thread.started", "thread_id": first["sessionId"]}
    failed = {"type": "turn.failed", "error": {"message": "Quota exceeded."}}
    lines = "".join(json.dumps(event) + "\n" for event in (thread, failed))
    run = replay(ADAPTER, lines.encode(), exit_code=1, session=first).result
    assert run.session_params == first


def test_a_thread_that_was_replaced_is_told() -> None:
    """S4: an unknown name starts a new thread with exit code 0."""
    asked = "01a1e090-aa0d-74b0-99cf-5f96b4da1703"
    run = seen("resume_unknown_name", session={"sessionId": asked}).result
    assert run.error_code is None
    assert (run.result_json or {})["sessionReplaced"]["asked"] == asked
    assert run.session_id != asked


def test_the_agents_own_words_about_threads_mean_nothing() -> None:
    """S4: stderr repeats what the model asked for once a thread began."""
    words = "Error: thread/resume: thread/resume failed: no rollout found for thread id 1"
    said = item("completed", type="agent_message", text=words)
    run = told(THREAD, said, DONE, stderr=words.encode() + b"\n")
    assert run.result.error_code is None
    assert run.result.session_id == THREAD["thread_id"]


@pytest.mark.parametrize("bad", ["--last", "a b", 5, None, "x" * 300])
def test_an_unsafe_thread_id_is_not_kept(bad: object) -> None:
    """A8."""
    assert told({**THREAD, "thread_id": bad}, DONE).result.session_params is None


def test_a_command_whose_end_was_not_told_is_closed() -> None:
    """T5: no card stays open when the turn is over."""
    results = {entry.tool_use_id: entry for entry in of(ToolResult, seen("long_command"))}
    assert results["item_0"].content == "quick\n"
    assert (results["item_1"].exit_code, results["item_1"].is_error) == (None, False)
    assert "did not tell" in results["item_1"].content


def test_commands_have_kind_title_and_exit_code() -> None:
    """T1b: shown as the agent wrote them."""
    run = seen("tool_error")
    first = of(ToolCall, run)[0]
    assert (first.tool_kind, first.title) == ("shell", "echo to-stderr >&2; exit 3")
    assert [(e.exit_code, e.is_error) for e in of(ToolResult, run)] == [(3, True), (1, True)]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/bin/bash -lc 'echo a && ls'", "echo a && ls"),
        ("/bin/bash -lc \"cat '/tmp/x'\"", "cat '/tmp/x'"),
        ("bash -lc ls", "ls"),
        ("/bin/bash -lc 'unbalanced", "/bin/bash -lc 'unbalanced"),
        ("/bin/bash -lc a b", "/bin/bash -lc a b"),
        ("git status", "git status"),
    ],
)
def test_the_shell_around_a_command_is_taken_off(command: str, shown: str) -> None:
    assert unwrapped(command) == shown


def test_changed_files_are_named() -> None:
    """T1: Codex tells which files, not which lines."""
    run = seen("patches")
    assert [(e.change_type, e.text) for e in of(Diff, run)] == [
        ("file_header", "add /tmp/ws/new.txt"),
        ("file_header", "update /tmp/ws/notes.txt"),
        ("file_header", "delete /tmp/ws/new.txt"),
    ]
    assert [e.tool_kind for e in of(ToolCall, run)] == ["edit", "edit"]
    assert of(ToolCall, seen("tools"))[-1].tool_kind == "write"


def test_lines_of_a_change_are_shown_where_a_version_tells_them() -> None:
    changes = [{"path": "a.py", "kind": "update", "diff": "@@ -1 +1 @@\n-a\n+b\n"}]
    done = item("completed", type="file_change", changes=changes, status="completed")
    kinds = [entry.change_type for entry in of(Diff, told(THREAD, done, DONE))]
    assert kinds == ["file_header", "hunk", "remove", "add"]


def test_a_plan_is_one_entry_that_changes() -> None:
    """T1b: todo items replace the earlier state."""
    steps = [{"text": "a", "completed": False}, {"text": "b", "completed": False}]
    ready = [{"text": "a", "completed": True}, {"text": "b", "completed": False}]
    run = told(
        THREAD,
        item("started", type="todo_list", items=steps),
        item("updated", type="todo_list", items=ready),
        item("completed", type="todo_list", items=ready),
        DONE,
    )
    plans = of(ToolCall, run)
    assert len(plans) == 1
    assert plans[0].tool_kind == "todo"
    assert plans[0].input["items"] == [
        {"text": "a", "status": "completed"},
        {"text": "b", "status": "pending"},
    ]


def test_other_tools_have_their_kinds_and_results() -> None:
    """T1b."""
    content = [{"type": "text", "text": "3"}]
    run = told(
        THREAD,
        item(
            "started", id="m", type="mcp_tool_call", server="calc", tool="add", arguments={"a": 1}
        ),
        item(
            "completed",
            id="m",
            type="mcp_tool_call",
            server="calc",
            tool="add",
            result={"content": content},
            status="completed",
        ),
        item("completed", id="w", type="web_search", query="weather"),
        item(
            "completed",
            id="f",
            type="mcp_tool_call",
            server="calc",
            tool="add",
            error={"message": "no"},
            status="failed",
        ),
        item(
            "completed",
            id="c",
            type="collab_tool_call",
            tool="spawn_agent",
            prompt="look",
            receiver_thread_ids=["t"],
            agents_states={"t": {"message": "looked"}},
            status="completed",
        ),
        DONE,
    )
    kinds = [(call.name, call.tool_kind) for call in of(ToolCall, run)]
    assert kinds == [
        ("calc.add", "mcp"),
        ("web_search", "web"),
        ("calc.add", "mcp"),
        ("spawn_agent", "agent"),
    ]
    results = [(entry.content, entry.is_error) for entry in of(ToolResult, run)]
    assert results == [("3", False), ("", False), ("no", True), ("looked", False)]


def test_a_message_that_only_started_is_not_shown() -> None:
    run = told(
        THREAD,
        item("started", type="agent_message", text=""),
        item("updated", type="agent_message", text="ha"),
        item("completed", type="agent_message", text="hallo"),
        DONE,
    )
    assert [entry.text for entry in of(Assistant, run)] == ["hallo"]
    assert run.result.summary == "hallo"


def test_new_events_and_items_are_kept_and_counted() -> None:
    """T4."""
    run = told(
        THREAD, {"type": "turn.paused"}, item("completed", type="hologram"), {"type": []}, DONE
    )
    assert (run.coverage.lines, run.coverage.unknown) == (5, 3)
    assert run.result.error_code is None


def test_a_megabyte_of_output_is_kept_whole() -> None:
    """T4: one line, not cut by us; Codex itself leaves out what exceeds a megabyte."""
    shell = of(ToolResult, seen("big_output"))[0]
    assert len(shell.content) > 1024**2
    assert "\n... 1 bytes omitted ...\n" in shell.content


@pytest.mark.parametrize(
    ("config", "model"), [({"model": "gpt-5.5"}, "gpt-5.5"), ({}, None), ({"model": 5}, None)]
)
def test_the_model_is_the_one_that_was_asked_for(config: dict[str, Any], model: str | None) -> None:
    """A5: Codex itself does not tell it, so without a setting it is unknown."""
    agent = AgentRef(id="a", company_id="c", name="A", adapter_type="codex_local")
    request = ExecutionRequest(run_id="r", agent=agent, runtime=RuntimeSession(), config=config)
    parser = ADAPTER.create_parser()
    for line in CASES["plain"].stdout.decode().strip().split("\n"):
        parser.parse_line(line, "t")
    outcome = Outcome(request=request, end=ProcessEnd(), parser=parser)
    assert ADAPTER.conclude(outcome).model == model
