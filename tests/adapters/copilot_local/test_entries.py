"""Entries from Copilot's events, beyond what the recordings hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.copilot_local import create_adapter
from binderclip.sdk import Assistant, Diff, Init, Stdout, System, Thinking, ToolCall, ToolResult
from binderclip.sdk.testing.replay import Replay, replay


def event(kind: str, agent: str | None = None, /, **data: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"type": kind, "data": data, "timestamp": "2026-11-15T19:00:00.000Z"}
    return {**told, "agentId": agent} if agent else told


def parsed(*events: dict[str, Any]) -> Replay:
    return replay(create_adapter(), b"".join(json.dumps(e).encode() + b"\n" for e in events))


def start(name: str, arguments: object, **more: Any) -> dict[str, Any]:
    return event("tool.execution_start", toolCallId="t", toolName=name, arguments=arguments, **more)


def done(success: bool = True, **more: Any) -> dict[str, Any]:
    return event("tool.execution_complete", toolCallId="t", success=success, **more)


@pytest.mark.parametrize(
    ("name", "arguments", "more", "kind", "title"),
    [
        ("bash", {"command": "ls"}, {}, "shell", "ls"),
        ("view", {"path": "a"}, {}, "read", "a"),
        ("grep", {"pattern": "x+"}, {}, "search", "x+"),
        ("web_fetch", {"url": "http://localhost"}, {}, "web", "http://localhost"),
        ("task", {"description": "look"}, {}, "agent", "look"),
        ("skill", {"skill": "paperclip"}, {}, "other", "paperclip"),
        ("docs-search", {"q": 1}, {"mcpServerName": "docs"}, "mcp", None),
        ("sql", {}, {"toolTitle": "Updating todos"}, "other", "Updating todos"),
        ("edit", "not an object", {}, "edit", None),
    ],
)
def test_a_tool_has_kind_and_title(
    name: str, arguments: object, more: dict[str, Any], kind: str, title: str | None
) -> None:
    """T1b: renderers decide by kind and title, never by names."""
    (entry,) = parsed(start(name, arguments, **more)).entries
    assert isinstance(entry, ToolCall)
    assert (entry.tool_kind, entry.title) == (kind, title)


def test_a_checklist_becomes_items() -> None:
    """T1b: input.items of a todo call."""
    todos = "# Plan\n- [x] read\n- [ ] write\n- [-] test\n"
    (entry,) = parsed(start("update_todo", {"todos": todos})).entries
    assert isinstance(entry, ToolCall)
    assert [item["status"] for item in entry.input["items"]] == [
        "completed",
        "pending",
        "in_progress",
    ]


def test_a_patch_over_several_files_is_shown_by_file() -> None:
    patch = "\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    two = patch + patch.replace("/x", "/y").lstrip("\n")
    edits = [{"path": "/ws/x", "kind": "edit"}]
    result = {"content": "ok", "detailedContent": two}
    seen = parsed(start("apply_patch", {}), done(result=result, fileEdits=edits)).entries
    heads = [e.path for e in seen if isinstance(e, Diff) and e.change_type == "file_header"]
    assert heads == ["/ws/x", "y"]


@pytest.mark.parametrize(
    ("name", "arguments", "texts"),
    [
        ("create", {"path": "a", "file_text": "one\n"}, ["a", "one"]),
        ("edit", {"path": "a", "old_str": "one", "new_str": "two"}, ["one", "two"]),
    ],
)
def test_an_edit_without_a_patch_is_shown_by_its_arguments(
    name: str, arguments: dict[str, str], texts: list[str]
) -> None:
    shown = parsed(start(name, arguments), done(result={"content": "ok"})).entries
    assert [entry.text for entry in shown if isinstance(entry, Diff)][-2:] == texts
    failed = parsed(start(name, arguments), done(False, error={"message": "no"})).entries
    assert [entry for entry in failed if isinstance(entry, Diff)] == []


def test_a_command_that_fails_is_an_error_although_the_tool_succeeded() -> None:
    """T5: red, with the exit code."""
    end = done(result={"content": "x"}, shellExecution={"exitCode": 3})
    found = parsed(start("bash", {}), end).entries[-1]
    assert isinstance(found, ToolResult)
    assert (found.exit_code, found.is_error, found.duration_ms) == (3, True, 0)


def test_images_of_a_tool_are_attachments() -> None:
    result = {"content": "", "binaryResultsForLlm": [{"mimeType": "image/png"}, 3]}
    found = parsed(start("view", {}), done(result=result)).entries[-1]
    assert isinstance(found, ToolResult)
    assert [(a.media_type, a.ref) for a in found.attachments] == [("image/png", "file 1")]


def test_texts_are_shown_once_streamed_or_whole() -> None:
    """T4: deltas merge; the whole message that follows adds nothing."""
    seen = parsed(
        event("assistant.reasoning_delta", reasoningId="r1", deltaContent="h"),
        event("assistant.reasoning_delta", reasoningId="r1", deltaContent="m"),
        event("assistant.message_delta", messageId="m1", deltaContent="Hel"),
        event("assistant.message_delta", messageId="m1", deltaContent="lo"),
        event("assistant.message", messageId="m1", content="Hello", reasoningText="hm"),
        event("assistant.reasoning", reasoningId="r1", content="hm"),
        event("assistant.message", messageId="m2", content="Whole", reasoningText="so"),
        event("assistant.reasoning", reasoningId="r2", content="so"),
    ).entries
    shown = [(type(e), e.text) for e in seen if isinstance(e, Assistant | Thinking)]
    assert shown == [(Thinking, "hm"), (Assistant, "Hello"), (Thinking, "so"), (Assistant, "Whole")]


def test_a_sub_agents_words_belong_to_its_call_and_are_not_the_answer() -> None:
    """T1b: parentToolUseId."""
    seen = parsed(
        event("subagent.started", "a1", toolCallId="t1", agentName="explore"),
        event("assistant.reasoning_delta", "a1", reasoningId="r", deltaContent="hm"),
        event("assistant.message", "a1", messageId="m", content="sub"),
        event("session.error", "a1", message="sub-agent broke", errorType="query"),
        event("assistant.message", messageId="n", content="main"),
        {"type": "result", "sessionId": "s-1", "exitCode": 0},
    )
    assert [entry.parent_tool_use_id for entry in seen.entries] == [*["t1"] * 4, None, None]
    assert (seen.result.summary, seen.result.error_code) == ("main", None)


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("session.warning", {"message": "careful"}, "careful"),
        ("session.info", {"infoType": "notification", "message": "note"}, "note"),
        ("abort", {"reason": "user_initiated"}, "Aborted: user_initiated."),
        (
            "session.compaction_complete",
            {"success": False, "error": "x"},
            "The conversation was no",
        ),
        ("session.mcp_server_status_changed", {"serverName": "d", "error": "x"}, "MCP server d: x"),
        ("hook.end", {"success": False, "hookType": "h", "error": {"message": "x"}}, "Hook h fail"),
    ],
)
def test_what_the_runtime_notes_is_a_note(kind: str, data: dict[str, Any], text: str) -> None:
    """T1: notices and retries are `system`, never errors."""
    (entry,) = parsed(event(kind, **data)).entries
    assert isinstance(entry, System)
    assert entry.text.startswith(text)


def test_the_model_is_told_once() -> None:
    seen = parsed(
        event("session.tools_updated", model="m"),
        event("session.tools_updated", model="m"),
        event("model.call_start", model="m"),
    )
    assert [type(entry) for entry in seen.entries] == [Init]


def test_known_events_without_content_are_silent_and_unknown_ones_are_kept() -> None:
    """T4: understood and unknown."""
    quiet = ("assistant.turn_end", "tool.shell_output", "hook.end", "session.skills_loaded")
    seen = parsed(*(event(kind) for kind in quiet), event("news.flash"), {"type": 3})
    assert (seen.coverage.understood, seen.coverage.unknown) == (4, 2)
    assert {type(entry) for entry in seen.entries} == {Stdout}


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "assistant.message", "data": {"content": 3, "messageId": [], "model": {}}},
        {"type": "assistant.message_delta", "data": {"deltaContent": {}}, "agentId": []},
        {"type": "tool.execution_start", "data": {"toolCallId": {}, "arguments": 7}},
        {"type": "tool.execution_complete", "data": {"result": [], "shellExecution": 1}},
        {"type": "tool.execution_complete", "data": {"fileEdits": 3, "error": "x"}},
        {"type": "session.error", "data": {"statusCode": "x", "message": None}},
        {"type": "model.call_failure", "data": {"errorMessage": 4, "quotaSnapshots": []}},
        {"type": "session_limits_exhausted.requested", "data": {"usedAiCredits": "x"}},
        {"type": "result", "usage": 3, "sessionId": {}, "exitCode": "x"},
        {"type": "user.message", "data": "text"},
    ],
)
def test_wrong_types_inside_a_known_event_never_raise(wrong: dict[str, Any]) -> None:
    """A8: output is untrusted."""
    seen = parsed(wrong)
    assert (seen.builder.failures, seen.builder.dropped, seen.coverage.understood) == ([], 0, 1)
