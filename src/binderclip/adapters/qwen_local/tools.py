"""What Qwen Code's tools are called, and how a call of one is shown."""

from __future__ import annotations

from binderclip.sdk import ToolKind
from binderclip.sdk.tools import Titles

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
TITLES: Titles = {
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


def exit_code_of(content: str) -> int | None:
    """The exit code of a shell command, told only in the long form of its result."""
    at = content.rfind(_EXIT_WORDS)
    if at < 0 or not content.startswith("Command: "):
        return None
    digits = content[at + len(_EXIT_WORDS) :].split("\n", 1)[0]
    return int(digits) if digits.isdecimal() and len(digits) < 6 else None
