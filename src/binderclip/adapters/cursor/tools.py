"""What Cursor's tools are called, and how a call of one is shown."""

from __future__ import annotations

from typing import Any

import msgspec

from binderclip.sdk import Diff, ToolKind, as_string, parse_json, parse_object
from binderclip.sdk.diff import edit_diff, patch_diff, written_diff
from binderclip.sdk.tools import Titles

SUFFIX = "ToolCall"
KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("shell", "await", "backgroundShell"), "shell"),
    **dict.fromkeys(("read", "ls", "list", "readLints"), "read"),
    "write": "write",
    **dict.fromkeys(("edit", "applyPatch", "delete", "editNotebook"), "edit"),
    **dict.fromkeys(("grep", "glob", "semSearch", "codebaseSearch"), "search"),
    **dict.fromkeys(("webFetch", "fetch", "webSearch", "searchWeb"), "web"),
    **dict.fromkeys(("updateTodos", "todo", "todoWrite"), "todo"),
    "task": "agent",
    **dict.fromkeys(("mcp", "getMcpTools", "listMcpResources", "readMcpResource"), "mcp"),
}
TITLES: Titles = {
    "shell": ("command",),
    "read": ("path", "paths"),
    "write": ("path",),
    "edit": ("path",),
    "search": ("pattern", "globPattern", "query"),
    "web": ("url", "searchTerm", "query"),
    "agent": ("description", "prompt"),
    "mcp": ("toolName", "name"),
}
_TEXTS = ("content", "output", "message", "error", "errorMessage", "reason", "text")
_FILE_TEXTS = ("fileText", "contents", "content", "streamContent")
_TODO_PREFIX = "TODO_STATUS_"


def named(call: object) -> tuple[str, dict[str, Any]]:
    """The tool's name and its part of a `tool_call`; ("", {}) if there is none."""
    for key, value in parse_object(call).items():
        if key.endswith(SUFFIX) and isinstance(value, dict):
            return key.removesuffix(SUFFIX), value
        if key == "function" and isinstance(value, dict):
            return as_string(value.get("name")), {**value, "args": _arguments(value)}
    return "", {}


def with_items(args: dict[str, Any]) -> dict[str, Any]:
    """A todo call's input in the form that renderers know."""
    todos = args.get("todos")
    items = [
        {
            "text": as_string(todo.get("content")),
            "status": as_string(todo.get("status")).removeprefix(_TODO_PREFIX).lower(),
        }
        for todo in (todos if isinstance(todos, list) else [])
        if isinstance(todo, dict)
    ]
    return {**args, "items": items}


def outcome_of(tool: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """How a call ended, in one word of Cursor's, and what it gave."""
    for key, value in parse_object(tool.get("result")).items():
        if isinstance(value, dict):
            return key, value
        if isinstance(value, str):
            return key, {"content": value}
    return "", {}


def content_of(kind: ToolKind, given: dict[str, Any]) -> str:
    """What a tool gave, as text."""
    out, err = as_string(given.get("stdout")), as_string(given.get("stderr"))
    if out or err:
        return f"{out}\n{err}" if out and err else out or err
    for key in _TEXTS:
        text = given.get(key)
        if isinstance(text, str) and text:
            return text
    if kind == "shell":
        return ""
    if kind in ("write", "edit"):
        return _changed(given)
    return _blocks(given.get("content")) or (msgspec.json.encode(given).decode() if given else "")


def diff_of(
    kind: ToolKind, args: dict[str, Any], given: dict[str, Any], tool_use_id: str, ts: str
) -> tuple[Diff, ...]:
    """What a successful write or edit changed: Cursor's own patch, else texts."""
    if kind not in ("write", "edit"):
        return ()
    path = as_string(given.get("path")) or as_string(args.get("path"))
    patch = as_string(given.get("diffString"))
    if patch:
        return patch_diff(ts, path, patch, tool_use_id)
    after = given.get("afterFullFileContent")
    if isinstance(after, str):
        before = as_string(given.get("beforeFullFileContent"))
        return edit_diff(ts, path, before, after, tool_use_id)
    texts = (args.get(key) for key in _FILE_TEXTS)
    text = next((text for text in texts if isinstance(text, str)), None)
    return written_diff(ts, path, text, tool_use_id) if kind == "write" and text else ()


def _changed(given: dict[str, Any]) -> str:
    counts = {
        key: given[key]
        for key in ("linesAdded", "linesRemoved", "linesCreated", "fileSize")
        if key in given
    }
    return ", ".join(f"{key}: {value}" for key, value in counts.items())


def _blocks(content: object) -> str:
    """The texts of an MCP tool's content blocks."""
    blocks = [parse_object(block) for block in content] if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks)
    return "\n".join(
        as_string(parse_object(text).get("text")) if isinstance(text, dict) else as_string(text)
        for text in texts
    )


def _arguments(function: dict[str, Any]) -> dict[str, Any]:
    given = function.get("arguments")
    return parse_json(given) or {} if isinstance(given, str) else parse_object(given)
