"""Entries of Gemini CLI's events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.gemini_local import create_adapter
from binderclip.sdk import Diff, Stdout, System, ToolCall, ToolResult
from binderclip.sdk.testing.replay import Replay, replay


def parsed(*events: dict[str, Any]) -> Replay:
    return replay(
        create_adapter(), b"".join(json.dumps(event).encode() + b"\n" for event in events)
    )


def call(name: str, parameters: object, id: str = "t1") -> dict[str, Any]:
    return {"type": "tool_use", "tool_name": name, "tool_id": id, "parameters": parameters}


def done(output: object = "", status: str = "success", id: str = "t1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": id, "status": status, "output": output}


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "title"),
    [
        ("run_shell_command", {"command": "ls"}, "shell", "ls"),
        ("list_directory", {"dir_path": "src"}, "read", "src"),
        ("grep_search", {"pattern": "x+"}, "search", "x+"),
        ("web_fetch", {"prompt": "read example.com"}, "web", "read example.com"),
        ("invoke_agent", {"agent_name": "codebase"}, "agent", "codebase"),
        ("mcp_github_search", {"q": "x"}, "mcp", None),
        ("update_topic", {"title": "Tests"}, "other", "Tests"),
        ("run_shell_command", ["not", "an", "object"], "shell", None),
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
    todos = [{"description": "write tests", "status": "in_progress"}, "junk", {"status": 3}]
    (entry,) = parsed(call("write_todos", {"todos": todos})).entries
    assert isinstance(entry, ToolCall)
    assert entry.input["items"] == [
        {"text": "write tests", "status": "in_progress"},
        {"text": "", "status": ""},
    ]


def test_an_edit_shows_its_diff_only_when_it_succeeded() -> None:
    parameters = {"file_path": "/ws/a.txt", "old_string": "one", "new_string": "two"}
    good = parsed(call("replace", parameters), done()).entries
    assert [entry.text for entry in good if isinstance(entry, Diff)] == [
        "/ws/a.txt",
        "@@ -1 +1 @@",
        "one",
        "two",
    ]
    bad = parsed(call("replace", parameters), done("no match", "error")).entries
    assert [entry for entry in bad if isinstance(entry, Diff)] == []


@pytest.mark.parametrize(
    ("output", "code"),
    [("Command exited with code: 3", 3), ("Command exited with code: x", None), ("fine", None)],
)
def test_an_exit_code_in_words_is_read(output: str, code: int | None) -> None:
    found = parsed(call("run_shell_command", {"command": "false"}), done(output)).entries[-1]
    assert isinstance(found, ToolResult)
    assert (found.exit_code, found.is_error, found.content) == (code, False, output)


def test_durations_come_from_the_runtimes_own_clock() -> None:
    began = {**call("glob", {}), "timestamp": "2026-01-01T00:00:00.000Z"}
    ended = {**done(), "timestamp": "2026-01-01T00:00:01.250Z"}
    found = parsed(began, ended).entries[-1]
    assert isinstance(found, ToolResult)
    assert found.duration_ms == 1250


def test_warnings_and_retries_are_notes_not_errors() -> None:
    """T1: retries are `system`."""
    retry = b"Attempt 1 failed with status 429. Retrying with backoff... _ApiError: x\n"
    warning = b'{"type":"error","severity":"warning","message":"careful"}\n'
    found = replay(create_adapter(), warning, retry).entries
    assert [type(entry) for entry in found] == [System, System]


def test_an_unknown_event_is_kept_and_counted() -> None:
    """T4: understood and unknown."""
    seen = parsed({"type": "thought", "text": "hm"}, {"type": ["init"]}, {"no": "type"})
    assert (seen.coverage.lines, seen.coverage.unknown) == (3, 3)
    assert {type(entry) for entry in seen.entries} == {Stdout}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "init", "session_id": 5, "model": None},
        {"type": "message", "role": "assistant", "content": {"a": 1}},
        {"type": "tool_use", "tool_name": 1, "tool_id": [], "parameters": None},
        {"type": "tool_result", "tool_id": {}, "status": 1, "output": 7, "error": "x"},
        {"type": "error", "message": None, "severity": []},
        {"type": "result", "status": "error", "error": [], "stats": {"models": 3}},
        {"type": "result", "status": "success", "stats": {"input_tokens": -1, "models": []}},
    ],
)
def test_wrong_types_inside_a_known_event_never_raise(event: dict[str, Any]) -> None:
    """A8: output is untrusted."""
    seen = parsed(event)
    assert (seen.builder.failures, seen.coverage.understood) == ([], 1)
