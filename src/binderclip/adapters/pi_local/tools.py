"""What Pi's tools are called, and how a call of one is shown."""

from __future__ import annotations

from typing import Any

from binderclip.sdk import Attachment, Diff, ToolKind, as_string, parse_object
from binderclip.sdk.diff import edit_diff, patch_diff, written_diff

KINDS: dict[str, ToolKind] = {
    "bash": "shell",
    "powershell": "shell",
    "read": "read",
    "ls": "read",
    "write": "write",
    "edit": "edit",
    "grep": "search",
    "find": "search",
}
_TITLES: dict[ToolKind, str] = {
    "shell": "command",
    "read": "path",
    "write": "path",
    "edit": "path",
    "search": "pattern",
}
_EXIT_WORDS = "Command exited with code "


def kind_of(name: str) -> ToolKind:
    """The kind of a tool by its name; extensions add others."""
    return KINDS.get(name, "other")


def title_of(kind: ToolKind, given: dict[str, Any]) -> str | None:
    """The one argument that says what the call is about."""
    return as_string(given.get(_TITLES.get(kind, ""))) or None


def exit_code_of(content: str, failed: bool) -> int | None:
    """The code of a shell command: Pi writes it in words, and only if it is not 0."""
    if not failed:
        return 0
    _, found, code = content.rpartition(_EXIT_WORDS)
    return int(code) if found and code.isascii() and code.isdigit() and len(code) < 6 else None


def text_of(content: object) -> str:
    """The text blocks of a message or result; a plain string is its own text."""
    if isinstance(content, str):
        return content
    return "".join(as_string(block.get("text")) for block in blocks_of(content))


def blocks_of(content: object) -> list[dict[str, Any]]:
    """The content blocks of a message, as far as they are objects."""
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict)]


def attachments_of(content: object) -> tuple[Attachment, ...]:
    """Images that a tool handed to the model, by number; their bytes stay in the log."""
    images = [block for block in blocks_of(content) if block.get("type") == "image"]
    return tuple(
        Attachment(media_type=as_string(image.get("mimeType")), ref=f"image {number}")
        for number, image in enumerate(images, 1)
    )


def diff_of(
    kind: ToolKind, given: dict[str, Any], details: dict[str, Any], tool_use_id: str, ts: str
) -> tuple[Diff, ...]:
    """What a successful write or edit changed: Pi's own patch, else the call's arguments."""
    path = as_string(given.get("path"))
    if kind == "write":
        return written_diff(ts, path, as_string(given.get("content")), tool_use_id)
    if kind != "edit":
        return ()
    patch = details.get("patch")
    if isinstance(patch, str) and patch:
        return patch_diff(ts, path, patch, tool_use_id)
    edits = blocks_of(given.get("edits")) or [parse_object(given)]
    pairs = [(as_string(edit.get("oldText")), as_string(edit.get("newText"))) for edit in edits]
    return tuple(
        entry for old, new in pairs for entry in edit_diff(ts, path, old, new, tool_use_id)
    )
