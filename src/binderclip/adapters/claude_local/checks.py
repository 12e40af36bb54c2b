"""What can be known about Claude Code before a run: version, login, root, sandbox, skills."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from binderclip.adapters.claude_local.config import ClaudeConfig
from binderclip.sdk import Check, CheckCall, CliAdapter, parse_json, version_check
from binderclip.sdk.live import live_check

SANDBOX_PROGRAMS = ("bwrap", "socat")


def claude_checks(call: CheckCall, adapter: CliAdapter) -> Iterator[Check]:
    config: ClaudeConfig = call.config
    yield from _credential(call)
    yield from _root(call, config)
    yield from _instructions(config)
    yield from _network(call, config)
    if call.program is None or call.depth == "preflight":
        return
    yield version_check(
        "Claude Code", call.program, call.env, "reinstall Claude Code if it does not start"
    )
    if call.depth == "live":
        yield live_check(adapter, call)


def visible_skills(call: CheckCall) -> list[str]:
    """Skills that the runtime finds by itself: the user's and the working directory's."""
    homes = (_config_home(call), call.cwd / ".claude")
    found = {path.parent.name for home in homes for path in home.glob("skills/*/SKILL.md")}
    return sorted(found)


def _credential(call: CheckCall) -> Iterator[Check]:
    env = call.env
    if env.get("CLAUDE_CODE_USE_BEDROCK") or env.get("CLAUDE_CODE_USE_VERTEX"):
        yield Check(code="auth_cloud", level="info", message="Uses the cloud provider's login.")
    elif env.get("ANTHROPIC_AUTH_TOKEN"):
        yield _by_key("ANTHROPIC_AUTH_TOKEN")
    elif env.get("ANTHROPIC_API_KEY"):
        yield _by_key("ANTHROPIC_API_KEY")
    elif env.get("CLAUDE_CODE_OAUTH_TOKEN"):
        yield Check(
            code="auth_subscription",
            level="info",
            message="Uses the subscription by CLAUDE_CODE_OAUTH_TOKEN.",
        )
    elif _login(call):
        yield Check(code="auth_subscription", level="info", message=f"Uses {_login(call)}.")
    else:
        yield Check(
            code="auth_missing",
            level="warn",
            message="No login and no key was found; a run will probably end with an auth error.",
            hint="Run claude and /login once as this user, or set ANTHROPIC_API_KEY in env.",
        )


def _by_key(name: str) -> Check:
    return Check(
        code="auth_api_key",
        level="warn",
        message=f"{name} is set: the API key is used and billed, not a subscription.",
        hint=f"Unset {name} to use the login of a subscription.",
    )


def _login(call: CheckCall) -> str | None:
    """The file that holds a login; its content is not looked at. macOS keeps it in a keychain."""
    stored = _config_home(call) / ".credentials.json"
    if stored.is_file():
        return f"the login in {stored}"
    home = Path(call.env.get("CLAUDE_CONFIG_DIR") or call.env.get("HOME") or "/")
    settings = home / ".claude.json"
    known = parse_json(settings.read_bytes()) if _readable(settings) else None
    return f"the account in {settings}" if known and known.get("oauthAccount") else None


def _root(call: CheckCall, config: ClaudeConfig) -> Iterator[Check]:
    if not config.dangerously_skip_permissions or os.geteuid() != 0:
        return
    if call.env.get("IS_SANDBOX") == "1":
        return
    yield Check(
        code="bypass_as_root",
        level="error",
        message="Claude Code refuses dangerouslySkipPermissions when it runs as root.",
        hint="Run binderclip as another user, use permissionMode and allowedTools instead, or, "
        "in a container that may be lost, set IS_SANDBOX=1 in env.",
    )


def _instructions(config: ClaudeConfig) -> Iterator[Check]:
    path = config.instructions_file_path
    if path and not _readable(Path(path)):
        yield Check(
            code="instructions_missing",
            level="error",
            message=f"instructionsFilePath: {path} cannot be read.",
            hint="Set it to the absolute path of a Markdown file, or remove it.",
        )


def _network(call: CheckCall, config: ClaudeConfig) -> Iterator[Check]:
    if config.network is None:
        yield Check(code="network_unset", level="info", message="The network is not limited.")
        return
    if config.network == "open":
        yield Check(
            code="network_open",
            level="warn",
            message="The network is open: what the agent can read, its API token and skills "
            "included, can be sent anywhere.",
            hint="Set network to allowlist with the hosts that it needs, or to none.",
        )
        return
    missing = [name for name in SANDBOX_PROGRAMS if not _found(name, call)]
    if sys.platform.startswith("linux") and missing:
        yield Check(
            code="network_not_enforced",
            level="error",
            message=f"network {config.network} needs {' and '.join(missing)}: Claude Code will "
            "not start without its sandbox.",
            hint="Install bubblewrap and socat, or set network to open.",
        )
        return
    yield Check(
        code="network_enforced",
        level="info",
        message=f"network {config.network} is enforced for commands by the runtime's sandbox; "
        "web tools are off. MCP servers and hooks are not limited.",
    )


def _found(name: str, call: CheckCall) -> bool:
    return shutil.which(name, path=call.env.get("PATH")) is not None


def _config_home(call: CheckCall) -> Path:
    own = call.env.get("CLAUDE_CONFIG_DIR")
    return Path(own) if own else Path(call.env.get("HOME") or "/") / ".claude"


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)
