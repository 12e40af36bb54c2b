"""Entries of Qwen Code's events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.qwen_local import create_adapter
from binderclip.sdk import Assistant, Diff, Stdout, System, Thinking, ToolCall, ToolResult, User
from binderclip.sdk.testing.replay import Replay, replay


def parsed(*events: dict[str, Any]) -> Replay:
    output = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return replay(create_adapter(), output)


def assistant(*blocks: object, parent: str | None = None) -> dict[str, Any]:
    return {
        "type": "assistant",
        "parent_tool_use_id": parent,
        "message": {"content": list(blocks)},
    }


def call(name: str, parameters: object) -> dict[str, Any]:
    return assistant({"type": "tool_use", "id": "t1", "name": name, "input": parameters})


def done(content: object, is_error: bool = False) -> dict[str, Any]:
    block = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": content,
        "is_error": is_error,
    }
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def streamed(kind: str, text: str, parent: str | None = None) -> dict[str, Any]:
    delta = {"type": f"{kind}_delta", kind: text}
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    return {"type": "stream_event", "parent_tool_use_id": parent, "event": event}


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "title"),
    [
        ("run_shell_command", {"command": "ls"}, "shell", "ls"),
        ("read_file", {"file_path": "a.txt"}, "read", "a.txt"),
        ("grep_search", {"pattern": "x+"}, "search", "x+"),
        ("web_fetch", {"url": "http://localhost"}, "web", "http://localhost"),
        ("agent", {"description": "look"}, "agent", "look"),
        ("skill", {"skill": "paperclip"}, "other", "paperclip"),
        ("mcp__github__search", {"q": "x"}, "mcp", None),
        ("edit", "not an object", "edit", None),
    ],
)
def test_a_tool_has_kind_and_title(
    name: str, parameters: object, kind: str, title: str | None
) -> None:
    """T1b: renderers decide by kind and title, never by names."""
    (entry,) = parsed(call(name, parameters)).entries
    assert isinstance(entry, ToolCall)
    assert (entry.tool_kind, entry.title) == (kind, title)


def test_todos_become_items() -> None:
    """T1b: input.items of a todo call."""
    todos = [{"id": "1", "content": "write tests", "status": "pending"}, None]
    (entry,) = parsed(call("todo_write", {"todos": todos})).entries
    assert isinstance(entry, ToolCall)
    assert entry.input["items"] == [{"text": "write tests", "status": "pending"}]


def test_an_edit_shows_its_diff_only_when_it_succeeded() -> None:
    parameters = {"file_path": "/ws/a.txt", "old_string": "one", "new_string": "two"}
    good = parsed(call("edit", parameters), done("updated")).entries
    assert [entry.text for entry in good if isinstance(entry, Diff)][-2:] == ["one", "two"]
    bad = parsed(call("edit", parameters), done("no match", is_error=True)).entries
    assert [entry for entry in bad if isinstance(entry, Diff)] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("Command: x\nOutput: hi\nError: (none)\nExit Code: 3\nSignal: (none)", 3),
        ("Command: x\nOutput: Exit Code: 9\nExit Code: 0\nSignal: (none)", 0),
        ("hi\nExit Code: 3\n", None),
        ("Command: x\nExit Code: (none)\n", None),
    ],
)
def test_an_exit_code_in_words_is_read(content: str, code: int | None) -> None:
    found = parsed(call("run_shell_command", {"command": "x"}), done(content)).entries[-1]
    assert isinstance(found, ToolResult)
    assert found.exit_code == code


def test_a_result_in_blocks_is_joined() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image"}, 5]
    found = parsed(call("read_file", {}), done(blocks)).entries[-1]
    assert isinstance(found, ToolResult)
    assert found.content == "a\n\n"


def test_a_streamed_text_is_not_shown_twice() -> None:
    """T4: deltas merge; the whole message that follows adds nothing."""
    found = parsed(
        streamed("thinking", "h"),
        streamed("thinking", "m"),
        assistant({"type": "thinking", "thinking": "hm"}),
        streamed("text", "Hel"),
        streamed("text", "lo"),
        assistant({"type": "text", "text": "Hello"}),
        assistant({"type": "text", "text": "Once more"}),
    ).entries
    shown = [(type(e), e.text) for e in found if isinstance(e, Assistant | Thinking)]
    assert shown == [(Thinking, "hm"), (Assistant, "Hello"), (Assistant, "Once more")]


def test_a_sub_agents_text_does_not_hide_the_main_agents() -> None:
    found = parsed(
        streamed("text", "sub", parent="t1"), assistant({"type": "text", "text": "main"})
    ).entries
    assert [(e.parent_tool_use_id, getattr(e, "text", "")) for e in found] == [
        ("t1", "sub"),
        (None, "main"),
    ]


@pytest.mark.parametrize(
    ("subtype", "data", "text"),
    [
        ("retry", {"attempt": 1, "maxRetries": 10, "delayMs": 60000}, "Retrying in 60 s"),
        ("retry", {"attempt": "x"}, "Retrying."),
        ("model_fallback", {"fromModel": "a", "toModel": "b"}, "Falling back: a → b."),
        ("task_started", {"description": "look"}, "Task started: look"),
        ("task_notification", {"status": "completed"}, "Task completed."),
    ],
)
def test_what_the_runtime_notes_is_a_note(subtype: str, data: Any, text: str) -> None:
    """T1: retries are `system`, never errors."""
    (entry,) = parsed({"type": "system", "subtype": subtype, "data": data}).entries
    assert isinstance(entry, System)
    assert entry.text.startswith(text)


def test_retries_on_stderr_are_notes_too() -> None:
    found = replay(create_adapter(), b"", b"Retrying in 60s (attempt 1/10): [API Error: 429 x]\n")
    assert [type(entry) for entry in found.entries] == [System]


def test_text_from_the_user_is_shown() -> None:
    found = parsed(
        {"type": "user", "message": {"content": "one"}},
        {"type": "user", "message": {"content": [{"type": "text", "text": "two"}]}},
    ).entries
    assert [entry.text for entry in found if isinstance(entry, User)] == ["one", "two"]


def test_known_events_without_content_are_silent_and_unknown_ones_are_kept() -> None:
    """T4: understood and unknown."""
    seen = parsed(
        {"type": "stream_event", "event": {"type": "goal_state"}},
        {"type": "stream_event", "event": {"type": "message_stop"}},
        {"type": "stream_event", "event": {"type": "news"}},
        {"type": "system", "subtype": "news"},
        {"type": "control_request"},
        {"type": None},
    )
    assert (seen.coverage.understood, seen.coverage.unknown) == (2, 4)
    assert {type(entry) for entry in seen.entries} == {Stdout}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "system", "subtype": "init", "session_id": [], "model": 3},
        {"type": "assistant", "message": {"content": "plain", "usage": []}},
        {"type": "assistant", "message": {"content": [3, {"type": []}, {"type": "text"}]}},
        {"type": "assistant", "message": {"content": {"a": 1}}, "parent_tool_use_id": 7},
        {"type": "user", "message": []},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": {}}]}},
        {"type": "result", "is_error": "yes", "usage": 3, "error": "x", "permission_denials": 1},
        {"type": "result", "usage": {"cache_read_input_tokens": -3, "input_tokens": "many"}},
    ],
)
def test_wrong_types_inside_a_known_event_never_raise(event: dict[str, Any]) -> None:
    """A8: output is untrusted."""
    seen = parsed(event)
    assert (seen.builder.failures, seen.coverage.understood) == ([], 1)
