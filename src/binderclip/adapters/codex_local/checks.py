"""What can be known about Codex before a run: version, login, sandbox, models, skills."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from binderclip.adapters.codex_local.config import CodexConfig
from binderclip.sdk import (
    Check,
    CheckCall,
    CliAdapter,
    Model,
    as_string,
    parse_json,
    parse_object,
    version_check,
)
from binderclip.sdk.live import live_check

LIST_SECONDS = 20


def codex_home(env: Mapping[str, str]) -> Path:
    """Where Codex keeps its login, configuration, sessions and skills."""
    own = env.get("CODEX_HOME")
    return Path(own) if own else Path(env.get("HOME") or "/") / ".codex"


def codex_checks(call: CheckCall, adapter: CliAdapter) -> Iterator[Check]:
    config: CodexConfig = call.config
    yield from _own_config(call)
    yield _credential(call)
    yield from _instructions(config)
    yield from _writable_roots(config)
    yield _network(config)
    if call.program is None or call.depth == "preflight":
        return
    yield version_check("Codex", call.program, call.env, "its launcher needs node on PATH")
    if call.depth == "live":
        yield live_check(adapter, call)


def visible_skills(call: CheckCall) -> list[str]:
    """Skills in Codex's own directory; its built-in ones are kept in a hidden folder."""
    found = (codex_home(call.env) / "skills").glob("*/SKILL.md")
    return sorted(path.parent.name for path in found if not path.parent.name.startswith("."))


def configured_model(call: CheckCall) -> str | None:
    return as_string(_settings(call).get("model")) or None


def codex_models(call: CheckCall) -> list[Model]:
    """The models of Codex's own catalogue; none if it does not answer."""
    if call.program is None:
        return []
    try:
        done = subprocess.run(
            [str(call.program), "debug", "models"],
            env=call.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    listed = parse_object(parse_json(done.stdout)).get("models")
    return [
        Model(id=as_string(model.get("slug")), label=as_string(model.get("display_name")))
        for model in (listed if isinstance(listed, list) else ())
        if isinstance(model, dict) and model.get("slug") and model.get("visibility") == "list"
    ]


def _settings(call: CheckCall) -> dict[str, Any]:
    """The user's config.toml; empty if there is none or it cannot be read."""
    try:
        return tomllib.loads((codex_home(call.env) / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _own_config(call: CheckCall) -> Iterator[Check]:
    path = codex_home(call.env) / "config.toml"
    if path.is_file() and not _settings(call) and path.stat().st_size:
        yield Check(
            code="codex_config_unreadable",
            level="warn",
            message=f"{path} cannot be read as TOML; Codex will refuse to start if it is broken.",
            hint="Repair the file, or set CODEX_HOME in env to another directory.",
        )


def _credential(call: CheckCall) -> Check:
    provider = _provider(call)
    if provider:
        return _by_provider(call, *provider)
    for name in ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN"):
        if call.env.get(name):
            return _by_key(name)
    login = codex_home(call.env) / "auth.json"
    if login.is_file():
        return _by_login(login)
    if call.env.get("OPENAI_API_KEY"):
        return _by_key("OPENAI_API_KEY")
    return Check(
        code="auth_missing",
        level="warn",
        message="No login and no key was found; a run will probably end with an auth error.",
        hint="Run codex login once as this user, or set OPENAI_API_KEY in env.",
    )


def _provider(call: CheckCall) -> tuple[str, str] | None:
    """The name and key variable of a provider of one's own, if config.toml chose one."""
    settings = _settings(call)
    name = as_string(settings.get("model_provider"))
    chosen = parse_object(parse_object(settings.get("model_providers")).get(name))
    return (name, as_string(chosen.get("env_key"))) if chosen else None


def _by_provider(call: CheckCall, name: str, key: str) -> Check:
    if not key or call.env.get(key):
        return Check(
            code="auth_provider", level="info", message=f"Uses the provider {name} of config.toml."
        )
    return Check(
        code="auth_missing",
        level="warn",
        message=f"The provider {name} reads its key from {key}, which the agent will not have.",
        hint=f"Set {key} in env: only well-known variables are passed on by themselves.",
    )


def _by_login(path: Path) -> Check:
    try:
        stored = parse_object(parse_json(path.read_bytes()))
    except OSError:
        stored = {}
    if stored.get("OPENAI_API_KEY") and not stored.get("tokens"):
        return Check(
            code="auth_api_key",
            level="warn",
            message=f"{path} holds an API key: it is used and billed, not a subscription.",
            hint="Run codex login to use a subscription.",
        )
    return Check(code="auth_subscription", level="info", message=f"Uses the login in {path}.")


def _by_key(name: str) -> Check:
    return Check(
        code="auth_api_key",
        level="warn",
        message=f"{name} is set: it is used and billed, not the login of a subscription.",
        hint=f"Unset {name} to use the login of a subscription.",
    )


def _instructions(config: CodexConfig) -> Iterator[Check]:
    path = config.instructions_file_path
    if path and not Path(path).is_file():
        yield Check(
            code="instructions_missing",
            level="error",
            message=f"instructionsFilePath: {path} cannot be read.",
            hint="Set it to the absolute path of a Markdown file, or remove it.",
        )


def _writable_roots(config: CodexConfig) -> Iterator[Check]:
    for path in config.writable_roots:
        if not Path(path).is_dir():
            yield Check(
                code="writable_root_missing",
                level="error",
                message=f"writableRoots: {path} does not exist, so the sandbox cannot start and "
                "every command would fail.",
                hint="Create the directory, or remove it from writableRoots.",
            )


def _network(config: CodexConfig) -> Check:
    limited = config.network in ("none", "allowlist")
    if limited and config.dangerously_bypass_approvals_and_sandbox:
        return Check(
            code="network_not_enforced",
            level="error",
            message=f"network {config.network} cannot be enforced without the sandbox.",
            hint="Turn dangerouslyBypassApprovalsAndSandbox off, or set network to open.",
        )
    if config.network == "allowlist":
        return Check(
            code="network_narrowed",
            level="warn",
            message="Codex cannot limit the network to some hosts: commands reach nothing at all.",
            hint="Set network to none if that is meant, or to open.",
        )
    if config.network == "none":
        return Check(
            code="network_enforced",
            level="info",
            message="Commands reach no network, by Codex's sandbox; web search is off. MCP "
            "servers are not limited.",
        )
    if config.network == "open":
        return Check(
            code="network_open",
            level="warn",
            message="The network is open: what the agent can read, its API token and skills "
            "included, can be sent anywhere.",
            hint="Set network to none, or remove it for Codex's own default.",
        )
    return Check(
        code="network_unset", level="info", message="Codex's own configuration limits the network."
    )
