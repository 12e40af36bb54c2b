"""What can be set for an agent on Copilot CLI."""

from __future__ import annotations

from typing import Any, Literal

from binderclip.sdk import CliConfig, Field, Network, dangerous


class CopilotConfig(CliConfig):
    """Copilot's switches under binderclip's names."""

    permission_mode: Literal["default", "acceptEdits"] = Field(
        "default",
        description="What the agent may do unasked: default reads, searches and runs commands "
        "that only read; acceptEdits also changes files in its directories.",
    )
    allowed_tools: list[str] = Field(
        default_factory=list,
        description="More that needs no permission, such as shell(git:*), write or MyMCP(tool).",
    )
    disallowed_tools: list[str] = Field(
        default_factory=list,
        description="What the agent may never do, such as shell(rm); wins over every grant.",
    )
    dangerously_skip_permissions: bool = dangerous(
        default=False,
        description="Every tool, path and address is allowed unasked (--allow-all).",
    )
    network: Network | None = Field(
        None,
        description="Addresses in commands and fetches: none, those of allowedHosts, or all. "
        "Unset: none unless permissions are skipped.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Hosts for network allowlist, such as api.example.com (https) or "
        "http://localhost:8080.",
    )
    include_directories: list[str] = Field(
        default_factory=list,
        description="More directories that the agent may use; their .github/skills and "
        ".github/agents count as trusted.",
    )
    max_ai_credits: int | None = Field(
        None, ge=30, description="AI credits until the session is stopped; a soft limit."
    )
    mcp_servers: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="MCP servers by name, as under mcpServers in Copilot's own mcp-config.json.",
    )
