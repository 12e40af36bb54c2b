"""What a person sets for Codex."""

from __future__ import annotations

from typing import Any, Literal

from binderclip.sdk import CliConfig, Field, Network, dangerous

Sandbox = Literal["read-only", "workspace-write"]


class CodexConfig(CliConfig):
    sandbox: Sandbox | None = Field(
        None,
        description="What commands may change: nothing, or files in the working directory; the "
        "user's own configuration decides if unset.",
    )
    writable_roots: list[str] = Field(
        default_factory=list,
        description="More directories that commands may change in sandbox workspace-write.",
    )
    dangerously_bypass_approvals_and_sandbox: bool = dangerous(
        default=False, description="Every command runs unasked and outside of the sandbox."
    )
    network: Network | None = Field(
        None,
        description="What commands may reach: none or everything. Hosts cannot be told apart, so "
        "allowlist is the same as none. Needs the sandbox.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list, description="Hosts for network allowlist; Codex cannot use them."
    )
    mcp_servers: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="MCP servers by name, as in config.toml; secrets by env_vars or "
        "bearer_token_env_var, which name variables of env.",
    )
