"""What Qwen Code's tools are called, and how a call of one is shown."""

from __future__ import annotations

from typing import Any

from binderclip.sdk import Diff, ToolKind, as_string
from binderclip.sdk.diff import edit_diff, written_diff

KINDS: dict[str, ToolKind] = {
    "run_shell_command": "shell",
    "exec": "shell",
    "monitor": "shell",
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "zoom_image": "read",
    "write_file": "write",
    "edit": "edit",
    "notebook_edit": "edit",
    "grep_search": "search",
    "glob": "search",
    "tool_search": "search",
    "web_fetch": "web",
    "web_search": "web",
    "todo_write": "todo",
    "agent": "agent",
    "task": "agent",
    "read_mcp_resource": "mcp",
}
_TITLES: dict[ToolKind, tuple[str, ...]] = {
    "shell": ("command",),
    "read": ("file_path", "absolute_path", "path"),
    "write": ("file_path",),
    "edit": ("file_path", "notebook_path"),
    "search": ("pattern", "query"),
    "web": ("url", "query"),
    "agent": ("description", "subagent_type"),
    "other": ("skill", "name"),
}
_EXIT_WORDS = "\nExit Code: "


def kind_of(name: str) -> ToolKind:
    """The kind of a tool by its name; those of MCP servers carry a prefix."""
    found = KINDS.get(name)
    if found is not None:
        return found
    return "mcp" if name.startswith("mcp__") else "other"


def title_of(kind: ToolKind, parameters: dict[str, Any]) -> str | None:
    """The one parameter that says what the call is about."""
    for key in _TITLES.get(kind, ()):
        text = parameters.get(key)
        if isinstance(text, str) and text:
            return text
    return None


def with_items(parameters: dict[str, Any]) -> dict[str, Any]:
    """A todo call's input in the form that renderers know."""
    todos = parameters.get("todos")
    items = [
        {"text": as_string(todo.get("content")), "status": as_string(todo.get("status"))}
        for todo in (todos if isinstance(todos, list) else [])
        if isinstance(todo, dict)
    ]
    return {**parameters, "items": items}


def diff_of(
    kind: ToolKind, parameters: dict[str, Any], tool_use_id: str, ts: str
) -> tuple[Diff, ...]:
    """What a successful write or edit changed, by its own parameters."""
    path = as_string(parameters.get("file_path"))
    if kind == "write":
        return written_diff(ts, path, as_string(parameters.get("content")), tool_use_id)
    if kind == "edit" and path:
        old, new = (as_string(parameters.get(key)) for key in ("old_string", "new_string"))
        return edit_diff(ts, path, old, new, tool_use_id)
    return ()


def exit_code_of(content: str) -> int | None:
    """The exit code of a shell command, told only in the long form of its result."""
    at = content.rfind(_EXIT_WORDS)
    if at < 0 or not content.startswith("Command: "):
        return None
    digits = content[at + len(_EXIT_WORDS) :].split("\n", 1)[0]
    return int(digits) if digits.isdecimal() and len(digits) < 6 else None
