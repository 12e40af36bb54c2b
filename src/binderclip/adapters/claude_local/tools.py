"""Claude Code's tools: their kinds and titles, their results, plans and file changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from binderclip.sdk import (
    Attachment,
    Diff,
    Entry,
    ToolCall,
    ToolKind,
    ToolResult,
    as_number,
    as_string,
    as_string_array,
    parse_object,
)
from binderclip.sdk.diff import patch_diff, written_diff

_KINDS: dict[str, ToolKind] = {
    "Bash": "shell",
    "BashOutput": "shell",
    "KillShell": "shell",
    "Monitor": "shell",
    "PowerShell": "shell",
    "Read": "read",
    "NotebookRead": "read",
    "Write": "write",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Glob": "search",
    "Grep": "search",
    "LS": "search",
    "ToolSearch": "search",
    "WebFetch": "web",
    "WebSearch": "web",
    "web_search": "web",
    "web_fetch": "web",
    "TodoWrite": "todo",
    "TaskCreate": "todo",
    "TaskUpdate": "todo",
    "TaskList": "todo",
    "TaskGet": "todo",
    "Agent": "agent",
    "Task": "agent",
    "Workflow": "agent",
    "SendMessage": "agent",
}
_TITLES = (
    *("subject", "description", "command", "file_path", "notebook_path", "path", "pattern"),
    *("query", "url", "skill", "name"),
)
_PLANS = frozenset(("TaskCreate", "TaskUpdate", "TaskList", "TaskGet"))
_LONGEST_TITLE = 120
_EXIT = "Exit code "


class Tools:
    """The calls of one run that wait for a result, and the plan that its task tools keep."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        self._plan: dict[str, dict[str, str]] = {}

    def call(self, block: dict[str, Any], ts: str, parent: str | None) -> ToolCall:
        name, given = as_string(block.get("name")), block.get("input")
        use = as_string(block.get("id")) or None
        if use:
            self._open[use] = name
        kind = _kind(name)
        if kind == "todo" and isinstance(given, dict):
            given = {**given, "items": self._items(name, given, use)}
        return ToolCall(
            ts=ts,
            name=name,
            input=given,
            tool_use_id=use,
            tool_kind=kind,
            title=_title(given),
            parent_tool_use_id=parent,
        )

    def result(
        self, block: dict[str, Any], told: object, ts: str, parent: str | None
    ) -> list[Entry]:
        """The result of a call, and the lines that it changed in a file."""
        use = as_string(block.get("tool_use_id"))
        name = self._open.pop(use, None)
        failed = block.get("is_error") is True
        content, attachments = _content(block.get("content"), use)
        details = parse_object(told)
        if name in _PLANS:
            self._settle(use, details)
        result = ToolResult(
            ts=ts,
            tool_use_id=use,
            tool_name=name,
            content=content,
            is_error=failed,
            exit_code=_exit_code(content, failed, details) if name == "Bash" else None,
            attachments=attachments,
            parent_tool_use_id=parent,
        )
        return [result, *(() if failed else _changes(details, use, ts))]

    def _items(self, name: str, given: dict[str, Any], use: str | None) -> list[dict[str, str]]:
        if name == "TodoWrite":
            return [_item(todo) for todo in _objects(given.get("todos"))]
        if name == "TaskCreate":
            self._plan[f"call {use}"] = _item(given)
        elif name == "TaskUpdate":
            self._update(as_string(given.get("taskId")), given)
        return [dict(item) for item in self._plan.values()]

    def _update(self, task: str, given: dict[str, Any]) -> None:
        item = self._plan.get(task)
        if item is None:
            return
        if given.get("status") == "deleted":
            del self._plan[task]
            return
        item["text"] = as_string(given.get("subject")) or item["text"]
        item["status"] = as_string(given.get("status")) or item["status"]

    def _settle(self, use: str, details: dict[str, Any]) -> None:
        """Learn the plan from what a task tool answered: new ids, or the whole list."""
        made = parse_object(details.get("task"))
        pending = self._plan.pop(f"call {use}", None)
        if pending is not None and as_string(made.get("id")):
            self._plan[as_string(made.get("id"))] = pending
        if isinstance(details.get("tasks"), list):
            listed = _objects(details["tasks"])
            self._plan = {as_string(task.get("id")): _item(task) for task in listed}


def _kind(name: str) -> ToolKind:
    return _KINDS.get(name) or ("mcp" if name.startswith("mcp__") else "other")


def _title(given: object) -> str | None:
    if isinstance(given, dict):
        for name in _TITLES:
            value = given.get(name)
            if isinstance(value, str) and value:
                return value.split("\n", 1)[0][:_LONGEST_TITLE]
    return None


def _item(task: dict[str, Any]) -> dict[str, str]:
    text = as_string(task.get("subject")) or as_string(task.get("content"))
    return {"text": text, "status": as_string(task.get("status")) or "pending"}


def _content(content: object, use: str) -> tuple[str, tuple[Attachment, ...]]:
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    found: list[Attachment] = []
    for at, part in enumerate(_objects(content)):
        if part.get("type") in ("image", "document"):
            media = as_string(parse_object(part.get("source")).get("media_type"), "image")
            found.append(Attachment(media_type=media, ref=f"{use}/{at}"))
            texts.append(f"[{media}]")
        else:
            words = ("text", "tool_name", "title", "url")
            texts.append(next((part[key] for key in words if isinstance(part.get(key), str)), ""))
    return "\n".join(text for text in texts if text), tuple(found)


def _exit_code(content: str, failed: bool, details: dict[str, Any]) -> int | None:
    """Only words tell a failed command's code; what was explained away or left open has none."""
    if failed:
        number = content.removeprefix(_EXIT).split("\n", 1)[0].strip()
        known = content.startswith(_EXIT) and number.isdecimal() and len(number) < 4
        return int(number) if known else None
    unclear = ("returnCodeInterpretation", "backgroundTaskId", "interrupted")
    return 0 if details and not any(details.get(name) for name in unclear) else None


def _changes(details: dict[str, Any], use: str, ts: str) -> Sequence[Diff]:
    path, hunks = as_string(details.get("filePath")), details.get("structuredPatch")
    if not path or not isinstance(hunks, list):
        return ()
    if not hunks and details.get("type") == "create":
        return written_diff(ts, path, as_string(details.get("content")), use)
    lines: list[str] = []
    for hunk in _objects(hunks):
        begin = [_whole(hunk.get(name)) for name in _HUNK]
        lines.append("@@ -{},{} +{},{} @@".format(*begin))
        lines += as_string_array(hunk.get("lines"))
    return patch_diff(ts, path, "\n".join(lines), use) if lines else ()


_HUNK = ("oldStart", "oldLines", "newStart", "newLines")


def _whole(value: object) -> int:
    return int(as_number(value))


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
