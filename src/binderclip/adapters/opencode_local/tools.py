"""What OpenCode's tools are called, and how a call of one is shown."""

from __future__ import annotations

from typing import Any

from binderclip.sdk import Attachment, Diff, ToolKind, as_string, parse_object
from binderclip.sdk.diff import patch_diff, written_diff

KINDS: dict[str, ToolKind] = {
    "bash": "shell",
    "read": "read",
    "list": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "glob": "search",
    "grep": "search",
    "codesearch": "search",
    "lsp": "search",
    "webfetch": "web",
    "websearch": "web",
    "todowrite": "todo",
    "todoread": "todo",
    "task": "agent",
    "skill": "other",
    "question": "other",
    "invalid": "other",
    "plan_enter": "other",
    "plan_exit": "other",
}


def kind_of(name: str) -> ToolKind:
    """The kind of a tool by its name; those of MCP servers are called server_tool."""
    found = KINDS.get(name)
    if found is not None:
        return found
    return "mcp" if "_" in name else "other"


def title_of(given: dict[str, Any], state: dict[str, Any]) -> str | None:
    """The file as the agent named it, else OpenCode's own title; it shortens paths."""
    return as_string(given.get("filePath")) or as_string(state.get("title")) or None


def diff_of(
    kind: ToolKind, given: dict[str, Any], metadata: dict[str, Any], tool_use_id: str, ts: str
) -> tuple[Diff, ...]:
    """What a successful write or edit changed: OpenCode's own patch, else what was written."""
    path = as_string(given.get("filePath"))
    patch = metadata.get("diff")
    if isinstance(patch, str) and patch:
        changed = as_string(parse_object(metadata.get("filediff")).get("file"))
        return patch_diff(ts, path or changed, patch, tool_use_id)
    if kind == "write":
        return written_diff(ts, path, as_string(given.get("content")), tool_use_id)
    return ()


def attachments_of(state: dict[str, Any]) -> tuple[Attachment, ...]:
    """Files that a tool handed to the model, by name; their bytes stay in the log."""
    found = state.get("attachments")
    parts = [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
    return tuple(
        Attachment(
            media_type=as_string(part.get("mime")),
            ref=as_string(part.get("filename")) or as_string(part.get("id")),
        )
        for part in parts
    )
