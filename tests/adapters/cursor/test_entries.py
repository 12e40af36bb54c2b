"""Entries from Cursor's events, beyond what the synthetic recordings hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.cursor import create_adapter
from binderclip.sdk import Assistant, Diff, Stdout, ToolCall, ToolResult
from binderclip.sdk.testing.fixtures import cases_of
from binderclip.sdk.testing.replay import Replay, replay


def parsed(*events: dict[str, Any]) -> Replay:
    return replay(create_adapter(), b"".join(json.dumps(e).encode() + b"\n" for e in events))


def started(key: str, args: object) -> dict[str, Any]:
    call = {key: {"args": args}}
    return {"type": "tool_call", "subtype": "started", "call_id": "c", "tool_call": call}


def completed(key: str, result: object, **more: Any) -> dict[str, Any]:
    call = {key: {"result": result, **more}}
    return {"type": "tool_call", "subtype": "completed", "call_id": "c", "tool_call": call}


def said(text: str, **marks: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}, **marks}


def texts(seen: Replay) -> list[str]:
    return [entry.text for entry in seen.entries if isinstance(entry, Assistant)]


def test_every_recording_says_that_it_is_synthetic() -> None:
    """A recording is exact bytes of a real run, or says that it is none."""
    folders = [case.folder for case in cases_of(create_adapter())]
    told = [json.loads((folder / "cmd.json").read_text()) for folder in folders]
    assert told and all(cmd["synthetic"] is True for cmd in told)


@pytest.mark.parametrize(
    ("key", "args", "name", "kind", "title"),
    [
        ("shellToolCall", {"command": "ls"}, "shell", "shell", "ls"),
        ("readToolCall", {"path": "a"}, "read", "read", "a"),
        ("globToolCall", {"globPattern": "*.py"}, "glob", "search", "*.py"),
        ("webFetchToolCall", {"url": "http://localhost"}, "webFetch", "web", "http://localhost"),
        ("taskToolCall", {"description": "look"}, "task", "agent", "look"),
        ("mcpToolCall", {"toolName": "search"}, "mcp", "mcp", "search"),
        ("newToolCall", {"x": 1}, "new", "other", None),
        ("editToolCall", "not an object", "edit", "edit", None),
    ],
)
def test_a_tool_has_name_kind_and_title(
    key: str, args: object, name: str, kind: str, title: str | None
) -> None:
    """T1b: renderers decide by kind and title, never by names."""
    (entry,) = parsed(started(key, args)).entries
    assert isinstance(entry, ToolCall)
    assert (entry.name, entry.tool_kind, entry.title) == (name, kind, title)


def test_the_tool_is_found_among_other_keys() -> None:
    call = {"toolCallId": "c", "startedAtMs": 5, "shellToolCall": {"args": {"command": "ls"}}}
    event = {"type": "tool_call", "subtype": "started", "call_id": "c", "tool_call": call}
    (entry,) = parsed(event).entries
    assert isinstance(entry, ToolCall)
    assert entry.title == "ls"


def test_todos_become_items() -> None:
    """T1b: input.items of a todo call."""
    todos = [{"content": "test", "status": "TODO_STATUS_PENDING"}, {"content": "x"}, None]
    (entry,) = parsed(started("updateTodosToolCall", {"todos": todos})).entries
    assert isinstance(entry, ToolCall)
    assert entry.input["items"] == [
        {"text": "test", "status": "pending"},
        {"text": "x", "status": ""},
    ]


@pytest.mark.parametrize(
    ("key", "result", "content", "is_error"),
    [
        (
            "shellToolCall",
            {"success": {"stdout": "a", "stderr": "b", "exitCode": 0}},
            "a\nb",
            False,
        ),
        ("shellToolCall", {"success": {"stdout": "", "exitCode": 0}}, "", False),
        ("shellToolCall", {"success": {"stdout": "", "exitCode": 2}}, "", True),
        ("shellToolCall", {"rejected": {"command": "x", "reason": ""}}, "rejected", True),
        ("readToolCall", {"error": {"errorMessage": "no"}}, "no", True),
        ("readToolCall", {"error": "no"}, "no", True),
        ("globToolCall", {"success": {"files": ["a"]}}, '{"files":["a"]}', False),
        ("mcpToolCall", {"success": {"content": [{"text": {"text": "p"}}, 3]}}, "p\n", False),
        ("readToolCall", "nonsense", "", False),
    ],
)
def test_a_tools_outcome_is_read(key: str, result: object, content: str, is_error: bool) -> None:
    """T5: what failed is red, also a command that exits with another code than 0."""
    found = parsed(started(key, {}), completed(key, result)).entries[-1]
    assert isinstance(found, ToolResult)
    assert (found.content, found.is_error) == (content, is_error)


def test_a_call_that_was_never_announced_has_its_card() -> None:
    """T4: a result pairs with a call."""
    seen = parsed(completed("readToolCall", {"success": {"content": "x"}}, args={"path": "a"}))
    assert [type(entry) for entry in seen.entries] == [ToolCall, ToolResult]


@pytest.mark.parametrize(
    ("key", "args", "given", "shown"),
    [
        (
            "editToolCall",
            {"path": "a"},
            {"beforeFullFileContent": "one\n", "afterFullFileContent": "two\n"},
            ["one", "two"],
        ),
        ("writeToolCall", {"path": "a", "fileText": "one\n"}, {}, ["a", "one"]),
        ("editToolCall", {"path": "a"}, {"linesAdded": 1}, []),
    ],
)
def test_an_edit_shows_what_it_changed(
    key: str, args: dict[str, str], given: dict[str, Any], shown: list[str]
) -> None:
    good = parsed(started(key, args), completed(key, {"success": given})).entries
    assert [entry.text for entry in good if isinstance(entry, Diff)][-2:] == shown
    bad = parsed(started(key, args), completed(key, {"error": given})).entries
    assert [entry for entry in bad if isinstance(entry, Diff)] == []


def test_a_flush_repeats_nothing_and_loses_nothing() -> None:
    """T4: what was streamed is not shown again; what a flush adds is."""
    once = parsed(said("Hel", timestamp_ms=1), said("lo", timestamp_ms=2), said("Hello"))
    assert texts(once) == ["Hello"]
    more = parsed(said("Hel", timestamp_ms=1), said("Hello", model_call_id="m", timestamp_ms=2))
    assert texts(more) == ["Hello"]
    tail = parsed(said("One. ", timestamp_ms=1), said("Two.", timestamp_ms=2), said("Two."))
    assert texts(tail) == ["One. Two."]
    other = parsed(said("One", timestamp_ms=1), said("Another"))
    assert texts(other) == ["One", "Another"]
    plain = parsed(said("Same"), said("Same"))
    assert texts(plain) == ["Same", "Same"]


def test_known_events_without_content_are_silent_and_unknown_ones_are_kept() -> None:
    """T4: understood and unknown."""
    seen = parsed(
        {"type": "thinking", "subtype": "completed"},
        said(""),
        {"type": "thinking", "subtype": "news"},
        {"type": "tool_call", "subtype": "news"},
        {"type": "system", "subtype": "news"},
        {"type": "interaction_query"},
        {"type": 3},
    )
    assert (seen.coverage.understood, seen.coverage.unknown) == (2, 5)
    assert {type(entry) for entry in seen.entries} == {Stdout}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "system", "subtype": "init", "session_id": [], "model": 3},
        {"type": "assistant", "message": {"content": "plain"}},
        {"type": "assistant", "message": {"content": [3, {"text": []}]}, "timestamp_ms": "x"},
        {"type": "user", "message": []},
        {"type": "thinking", "subtype": "delta", "text": {}},
        {"type": "tool_call", "subtype": "started", "call_id": {}, "tool_call": []},
        {"type": "tool_call", "subtype": "completed", "tool_call": {"function": {"name": 3}}},
        completed("shellToolCall", {"success": {"exitCode": "x", "stdout": 5}}),
        {"type": "result", "usage": {"inputTokens": -3, "outputTokens": "many"}, "result": []},
        {"type": "result", "is_error": True, "usage": 3},
    ],
)
def test_wrong_types_inside_a_known_event_never_raise(event: dict[str, Any]) -> None:
    """A8: output is untrusted, and every field is optional."""
    seen = parsed(event)
    assert (seen.builder.failures, seen.builder.dropped, seen.coverage.understood) == ([], 0, 1)
