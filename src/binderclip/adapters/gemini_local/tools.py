"""What Gemini CLI's tools are called, and how a call of one is shown."""

from __future__ import annotations

from binderclip.sdk import ToolKind
from binderclip.sdk.tools import Titles

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
TITLES: Titles = {
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
