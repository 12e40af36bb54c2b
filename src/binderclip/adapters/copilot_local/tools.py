"""What Copilot's tools are called, and how a call of one is shown."""

from __future__ import annotations

from typing import Any

from binderclip.sdk import Attachment, Diff, ToolKind, as_string, parse_object
from binderclip.sdk.diff import edit_diff, patch_diff, written_diff
from binderclip.sdk.tools import Titles, title_from

KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("bash", "powershell", "local_shell"), "shell"),
    **dict.fromkeys(("read_bash", "write_bash", "stop_bash", "list_bash"), "shell"),
    **dict.fromkeys(("read_powershell", "write_powershell", "stop_powershell"), "shell"),
    **dict.fromkeys(("view", "show_file"), "read"),
    "create": "write",
    **dict.fromkeys(("edit", "str_replace_editor", "apply_patch"), "edit"),
    **dict.fromkeys(("grep", "glob", "rg", "search_code_subagent"), "search"),
    **dict.fromkeys(("web_fetch", "web_search"), "web"),
    "update_todo": "todo",
    **dict.fromkeys(("task", "read_agent", "list_agents", "write_agent"), "agent"),
}
_TITLES: Titles = {
    "shell": ("command", "shellId"),
    "read": ("path",),
    "write": ("path",),
    "edit": ("path",),
    "search": ("pattern", "query"),
    "web": ("url", "query"),
    "agent": ("description", "agent_id"),
    "other": ("skill", "description", "intent"),
}
_BOXES = {"[x]": "completed", "[X]": "completed", "[ ]": "pending", "[-]": "in_progress"}
_FILE_HEAD = "\ndiff --git "


def kind_of(name: str, call: dict[str, Any]) -> ToolKind:
    """The kind of a tool: by its name, unless an MCP server has it."""
    return "mcp" if call.get("mcpServerName") else KINDS.get(name, "other")


def title_of(kind: ToolKind, arguments: dict[str, Any], fallback: str) -> str | None:
    """The one argument that says what the call is about, else Copilot's own words."""
    return title_from(_TITLES, kind, arguments) or fallback or None


def with_items(arguments: dict[str, Any]) -> dict[str, Any]:
    """A todo call's checklist in the form that renderers know."""
    items = []
    for line in as_string(arguments.get("todos")).split("\n"):
        mark, text = line.strip().removeprefix("- ")[:3], line.strip().removeprefix("- ")[3:]
        if mark in _BOXES:
            items.append({"text": text.strip(), "status": _BOXES[mark]})
    return {**arguments, "items": items}


def attachments_of(result: dict[str, Any]) -> tuple[Attachment, ...]:
    """Images and files that a tool handed to the model, by number; the log has their bytes."""
    given = result.get("binaryResultsForLlm")
    files = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    return tuple(
        Attachment(media_type=as_string(item.get("mimeType")), ref=f"file {number}")
        for number, item in enumerate(files, 1)
    )


def diff_of(
    kind: ToolKind, arguments: dict[str, Any], done: dict[str, Any], tool_use_id: str, ts: str
) -> tuple[Diff, ...]:
    """What a successful write or edit changed: Copilot's own patch, else the arguments."""
    if kind not in ("write", "edit"):
        return ()
    patch = as_string(parse_object(done.get("result")).get("detailedContent"))
    parts = f"\n{patch}".split(_FILE_HEAD)[1:]
    if parts:
        paths = _edited_paths(done)
        return tuple(
            entry
            for number, part in enumerate(parts)
            for entry in patch_diff(
                ts, paths[number] if number < len(paths) else _path_in(part), part, tool_use_id
            )
        )
    path = as_string(arguments.get("path"))
    if kind == "write":
        return written_diff(ts, path, as_string(arguments.get("file_text")), tool_use_id)
    old, new = (as_string(arguments.get(key)) for key in ("old_str", "new_str"))
    return edit_diff(ts, path, old, new, tool_use_id)


def _edited_paths(done: dict[str, Any]) -> list[str]:
    edits = done.get("fileEdits")
    found = [parse_object(edit) for edit in edits] if isinstance(edits, list) else []
    return [as_string(edit.get("path")) for edit in found]


def _path_in(part: str) -> str:
    """The path of one file's patch, from its header `a/path b/path`."""
    return part.split("\n", 1)[0].partition(" b/")[2]
