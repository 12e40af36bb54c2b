"""What the tool calls of agent CLIs have in common: titles, plans, and what a call changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from binderclip.contract.entry import Diff, ToolKind
from binderclip.sdk.diff import edit_diff, written_diff
from binderclip.sdk.values import as_string

Titles = Mapping[ToolKind, Sequence[str]]


def title_from(titles: Titles, kind: ToolKind, given: Mapping[str, Any]) -> str | None:
    """The one argument that says what a call is about: the first of its kind that is a text."""
    for key in titles.get(kind, ()):
        text = given.get(key)
        if isinstance(text, str) and text:
            return text
    return None


def with_todo_items(given: dict[str, Any], text_key: str = "content") -> dict[str, Any]:
    """The input of a todo call in the form that renderers know."""
    todos = given.get("todos")
    items = [
        {"text": as_string(todo.get(text_key)), "status": as_string(todo.get("status"))}
        for todo in (todos if isinstance(todos, list) else [])
        if isinstance(todo, dict)
    ]
    return {**given, "items": items}


def diff_from(
    kind: ToolKind, given: Mapping[str, Any], tool_use_id: str, ts: str
) -> tuple[Diff, ...]:
    """What a successful write or edit changed, by its own arguments."""
    path = as_string(given.get("file_path"))
    if kind == "write":
        return written_diff(ts, path, as_string(given.get("content")), tool_use_id)
    if kind == "edit" and path:
        old, new = (as_string(given.get(key)) for key in ("old_string", "new_string"))
        return edit_diff(ts, path, old, new, tool_use_id)
    return ()
