"""What Gemini CLI's tools are called, and how a call of one is shown."""

from __future__ import annotations

from typing import Any

from binderclip.sdk import Diff, ToolKind, as_string
from binderclip.sdk.diff import edit_diff, written_diff

KINDS: dict[str, ToolKind] = {
    "run_shell_command": "shell",
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "read_mcp_resource": "mcp",
    "list_mcp_resources": "mcp",
    "write_file": "write",
    "replace": "edit",
    "glob": "search",
    "grep_search": "search",
    "search_file_content": "search",
    "google_web_search": "web",
    "web_fetch": "web",
    "write_todos": "todo",
    "invoke_agent": "agent",
}
_TITLES: dict[ToolKind, tuple[str, ...]] = {
    "shell": ("command",),
    "read": ("file_path", "absolute_path", "dir_path", "path"),
    "write": ("file_path",),
    "edit": ("file_path",),
    "search": ("pattern", "query"),
    "web": ("query", "url", "prompt"),
    "agent": ("agent_name", "name"),
    "other": ("title", "name"),
}


def kind_of(name: str) -> ToolKind:
    """The kind of a tool by its name; those of MCP servers carry a prefix."""
    found = KINDS.get(name)
    if found is not None:
        return found
    return "mcp" if name.startswith("mcp_") else "other"


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
        {"text": as_string(todo.get("description")), "status": as_string(todo.get("status"))}
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
    if kind == "edit":
        old, new = (as_string(parameters.get(key)) for key in ("old_string", "new_string"))
        return edit_diff(ts, path, old, new, tool_use_id)
    return ()
