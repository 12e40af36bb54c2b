"""The environment test of Copilot CLI: version, credential, network, trust (E1-E3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from binderclip.adapters.copilot_local.config import CopilotConfig
from binderclip.sdk import Check, CheckCall, as_string_array, parse_json, version_check

TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
PROVIDER_KEYS = (
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_API_KEY_COMMAND",
    "COPILOT_PROVIDER_API_KEY",
)


def findings(call: CheckCall) -> Iterator[Check]:
    """Everything but the live call."""
    config: CopilotConfig = call.config
    if call.depth != "preflight" and call.program is not None:
        yield version_check(
            "GitHub Copilot CLI", call.program, call.env, "installed by npm, it needs Node"
        )
    yield from _credential(call, config)
    yield from _network(config)
    yield from _workspace(call)


def copilot_home(env: Mapping[str, str]) -> Path:
    """Where the CLI keeps settings, logins, sessions and the user's skills."""
    named = env.get("COPILOT_HOME")
    return Path(named) if named else Path(env.get("HOME") or "/") / ".copilot"


def user_settings(env: Mapping[str, str], name: str = "settings.json") -> dict[str, Any]:
    """One of the user's files; empty where there is none or it is no plain JSON object."""
    try:
        return parse_json((copilot_home(env) / name).read_bytes()) or {}
    except OSError:
        return {}


def _credential(call: CheckCall, config: CopilotConfig) -> Iterator[Check]:
    env = call.env
    if env.get("COPILOT_PROVIDER_BASE_URL"):
        yield _provider(env)
        if not (config.model or env.get("COPILOT_MODEL") or env.get("COPILOT_PROVIDER_MODEL_ID")):
            yield Check(
                code="model_missing",
                level="error",
                message="A provider of your own needs a model by name, and none is set.",
                hint="Set model, or COPILOT_MODEL in env.",
            )
        return
    token = next((name for name in TOKENS if env.get(name)), None)
    if token:
        yield Check(
            code="credential_token",
            level="info",
            message=f"Uses the GitHub account of {token}, before any stored login.",
        )
    elif _logged_in(env):
        yield Check(code="credential_login", level="info", message="Uses the stored GitHub login.")
    else:
        yield Check(
            code="credential_missing",
            level="warn",
            message="No login and no token was found; a keychain or the gh command may have one.",
            hint="Run `copilot login` as this user, or set COPILOT_GITHUB_TOKEN or a provider.",
        )


def _provider(env: Mapping[str, str]) -> Check:
    key = next((name for name in PROVIDER_KEYS if env.get(name)), None)
    how = f"with {key}" if key else "without a key"
    where = env["COPILOT_PROVIDER_BASE_URL"]
    return Check(
        code="credential_provider",
        level="warn",
        message=f"Calls {where} {how}, not the models of a Copilot subscription.",
        hint="Unset COPILOT_PROVIDER_BASE_URL to use the subscription.",
    )


def _logged_in(env: Mapping[str, str]) -> bool:
    """Whether the CLI remembers an account; its secret may be in the system's keychain."""
    stored = user_settings(env, "config.json") | user_settings(env)
    return any(stored.get(key) for key in ("loggedInUsers", "lastLoggedInUser", "copilotTokens"))


def _network(config: CopilotConfig) -> Iterator[Check]:
    skip = config.dangerously_skip_permissions
    if config.network == "allowlist" and skip:
        yield Check(
            code="network_not_enforced",
            level="error",
            message="Copilot ignores the list of hosts when all permissions are skipped.",
            hint="Grant tools by allowedTools instead, or set network to none or open.",
        )
    elif config.network == "open" or (config.network is None and skip):
        yield Check(
            code="network_open",
            level="warn",
            message="The network is open: what the agent can read, its API token and skills "
            "included, can be sent anywhere.",
            hint="Set network to none, or to allowlist with the hosts that it needs.",
        )
    else:
        yield Check(
            code="network_by_address",
            level="warn" if config.network else "info",
            message="Copilot refuses addresses that it sees in commands and fetches; a program "
            "that hides its own is not stopped.",
            hint="Run it where the machine limits the network, if that matters.",
        )


def _workspace(call: CheckCall) -> Iterator[Check]:
    stored = user_settings(call.env, "config.json") | user_settings(call.env)
    trusted = any(
        call.cwd.resolve().is_relative_to(folder)
        for folder in as_string_array(stored.get("trustedFolders"))
    )
    if trusted and any((call.cwd / name).exists() for name in (".github", ".mcp.json")):
        yield Check(
            code="workspace_settings",
            level="warn",
            message=f"Copilot trusts {call.cwd}: its hooks and MCP servers are code that runs.",
            hint="Read .github and .mcp.json there before you let an agent run.",
        )
