"""What a person sets for Claude Code."""

from __future__ import annotations

from typing import Any, Literal

from binderclip.sdk import CliConfig, Field, Network, dangerous

PermissionMode = Literal["default", "acceptEdits", "auto", "dontAsk", "plan"]


class ClaudeConfig(CliConfig):
    permission_mode: PermissionMode | None = Field(
        None,
        description="What the agent may do unasked; nobody answers questions in a run, so what "
        "would ask is denied. acceptEdits lets it change files in its directory.",
    )
    allowed_tools: list[str] = Field(
        default_factory=list,
        description="Tools that need no permission, such as Bash(git log *) or WebFetch.",
    )
    disallowed_tools: list[str] = Field(
        default_factory=list, description="Tools that the agent may never use."
    )
    dangerously_skip_permissions: bool = dangerous(
        default=False,
        description="No permission is asked for anything. Refused for root, except with "
        "IS_SANDBOX=1 in env.",
    )
    max_turns: int | None = Field(None, ge=1, description="Model turns until the run is stopped.")
    max_budget_usd: float | None = Field(
        None, gt=0, description="Dollars, by the runtime's own count, until the run is stopped."
    )
    fallback_model: str | None = Field(
        None, description="Model to use while the first one is overloaded."
    )
    partial_messages: bool = Field(
        False, description="Show text as it is written, not when a message is complete."
    )
    network: Network | None = Field(
        None,
        description="What commands may reach: none, the hosts of allowedHosts, or everything. "
        "Needs the runtime's sandbox; web tools are off unless it is open.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Hosts for network allowlist, such as api.example.com or *.example.com.",
    )
    mcp_servers: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="MCP servers by name, as in the runtime's own file; ${NAME} reads env.",
    )
