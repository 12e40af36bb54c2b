"""From the configuration to `claude -p`; the prompt travels on stdin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from binderclip.adapters.claude_local.checks import claude_checks, visible_skills
from binderclip.adapters.claude_local.config import ClaudeConfig
from binderclip.adapters.claude_local.parser import ClaudeParser
from binderclip.sdk import (
    Call,
    Check,
    CheckCall,
    CliAdapter,
    Command,
    SessionManagement,
)
from binderclip.sdk.skills import link_skills

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
EFFORT = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}
WEB_TOOLS = ("WebFetch", "WebSearch")


class ClaudeAdapter(CliAdapter):
    """Anthropic's Claude Code."""

    Config = ClaudeConfig
    session_management = SessionManagement(compacts_itself=True)

    def create_parser(self) -> ClaudeParser:
        return ClaudeParser()

    def command(self, call: Call) -> Command:
        config: ClaudeConfig = call.config
        argv = [config.command or self.manifest.command, "-p"]
        argv += ["--output-format", "stream-json", "--verbose"]
        if call.session:
            argv += ["--resume", call.session["sessionId"]]
        argv += _model(config) + _permissions(config) + _limits(config)
        if config.instructions_file_path:
            argv += ["--append-system-prompt-file", config.instructions_file_path]
        argv += self._files(call, config)
        quiet = {name: value for name, value in QUIET.items() if name not in call.env}
        return Command([*argv, *config.extra_args], env=quiet, stdin=call.prompt)

    def sync_skills(self, call: Call) -> None:
        link_skills(call.skills, call.scratch / "claude" / ".claude" / "skills")

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        return visible_skills(call)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        return claude_checks(call, self)

    def _files(self, call: Call, config: ClaudeConfig) -> list[str]:
        """Arguments that name files of this run: skills, MCP servers, network settings."""
        argv: list[str] = []
        if call.skills:
            self.sync_skills(call)
            argv += ["--add-dir", str(call.scratch / "claude")]
        if config.mcp_servers:
            servers = {"mcpServers": config.mcp_servers}
            argv += ["--mcp-config", _written(call.scratch / "mcp.json", servers)]
        if config.network in ("none", "allowlist"):
            settings = network_settings(config, call.env.get("PAPERCLIP_API_URL"))
            argv += ["--settings", _written(call.scratch / "settings.json", settings)]
        return argv


def network_settings(config: ClaudeConfig, api_url: str | None = None) -> dict[str, Any]:
    """The runtime's sandbox with these hosts only; without a sandbox it refuses to start.

    The API is among them, else the agent could not report; the model is not in the sandbox.
    """
    api = urlsplit(api_url or "").hostname
    hosts = [*config.allowed_hosts, *([api] if api else [])]
    hosts = list(dict.fromkeys(hosts)) if config.network == "allowlist" else []
    return {
        "sandbox": {
            "enabled": True,
            "failIfUnavailable": True,
            "allowUnsandboxedCommands": False,
            "network": {"allowedDomains": hosts, "strictAllowlist": True},
        },
        "permissions": {"deny": list(WEB_TOOLS)},
    }


def _model(config: ClaudeConfig) -> list[str]:
    argv = ["--model", config.model] if config.model else []
    if config.fallback_model:
        argv += ["--fallback-model", config.fallback_model]
    return argv + (["--effort", EFFORT[config.effort]] if config.effort else [])


def _permissions(config: ClaudeConfig) -> list[str]:
    argv: list[str] = []
    if config.dangerously_skip_permissions:
        argv.append("--dangerously-skip-permissions")
    elif config.permission_mode not in (None, "default"):
        argv += ["--permission-mode", str(config.permission_mode)]
    if config.allowed_tools:
        argv += ["--allowedTools", ",".join(config.allowed_tools)]
    if config.disallowed_tools:
        argv += ["--disallowedTools", ",".join(config.disallowed_tools)]
    return argv


def _limits(config: ClaudeConfig) -> list[str]:
    argv: list[str] = []
    if config.max_turns:
        argv += ["--max-turns", str(config.max_turns)]
    if config.max_budget_usd:
        argv += ["--max-budget-usd", str(config.max_budget_usd)]
    return argv + (["--include-partial-messages"] if config.partial_messages else [])


def _written(path: Path, content: Mapping[str, Any]) -> str:
    path.touch(0o600)
    path.write_bytes(msgspec.json.encode(content))
    return str(path)
