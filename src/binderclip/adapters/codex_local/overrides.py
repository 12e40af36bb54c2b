"""Settings of Codex as `-c key=value` words: TOML values, and no secret among them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from binderclip.adapters.codex_local.config import CodexConfig
from binderclip.sdk import ConfigError
from binderclip.sdk.env import is_secret_name

EFFORT = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}
QUIET = {"analytics.enabled": False, "check_for_update_on_startup": False}


def overrides(config: CodexConfig) -> list[str]:
    """The words for everything that is no flag of its own; `resume` knows fewer flags."""
    settings: dict[str, Any] = dict(QUIET)
    if config.effort:
        settings["model_reasoning_effort"] = EFFORT[config.effort]
    if not config.dangerously_bypass_approvals_and_sandbox:
        settings.update(_sandbox(config))
    if config.network in ("none", "allowlist"):
        settings["web_search"] = "disabled"
    if config.mcp_servers:
        _refuse_secrets(config.mcp_servers)
        settings["mcp_servers"] = config.mcp_servers
    return [word for key, value in settings.items() for word in ("-c", f"{key}={toml(value)}")]


def toml(value: object) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, Mapping):
        inner = (f"{_quoted(str(key))}={toml(item)}" for key, item in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(toml(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else _quoted(str(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _sandbox(config: CodexConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if config.sandbox:
        settings["sandbox_mode"] = config.sandbox
    if config.writable_roots:
        settings["sandbox_workspace_write.writable_roots"] = config.writable_roots
    if config.network:
        settings["sandbox_workspace_write.network_access"] = config.network == "open"
    return settings


def _refuse_secrets(servers: Mapping[str, Mapping[str, Any]]) -> None:
    """Overrides stand on the command line, where every user of the machine can read them."""
    for server, settings in servers.items():
        for group in ("env", "http_headers"):
            given = settings.get(group)
            for name in given if isinstance(given, Mapping) else ():
                if is_secret_name(str(name)):
                    where = f"mcpServers.{server}.{group}.{name}"
                    raise ConfigError(
                        f"{where}: a secret would stand on the command line.",
                        hint="Put it into env, and name it in env_vars, env_http_headers or "
                        "bearer_token_env_var of the server.",
                        fields={where: "a secret on the command line"},
                    )
