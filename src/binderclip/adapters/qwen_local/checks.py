"""The environment test of Qwen Code: version, credential, settings (E1-E3)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from binderclip.adapters.qwen_local import settings
from binderclip.adapters.qwen_local.config import QwenConfig
from binderclip.sdk import Check, CheckCall, parse_object, version_check

KEY_OF = {
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}


def findings(call: CheckCall) -> Iterator[Check]:
    """What is found without a call to the model."""
    config: QwenConfig = call.config
    if call.depth != "preflight" and call.program is not None:
        yield version_check("Qwen Code", call.program, call.env, "it needs Node 22 or newer")
    if call.program is not None:
        yield from _search_program(call.program)
    kind = (
        config.auth_type
        or settings.chosen_auth_type(call.env)
        or settings.auth_type_by_env(call.env)
    )
    yield _credential(call, kind or "")
    yield from _workspace(call.cwd)


def _credential(call: CheckCall, kind: str) -> Check:
    if not kind:
        return Check(
            code="credential_missing",
            level="error",
            message="Qwen Code has no credential: its settings choose none and no key is set.",
            hint="Set OPENAI_API_KEY (and OPENAI_BASE_URL), or run `qwen` once and sign in.",
        )
    if kind == "qwen-oauth":
        return _login(call)
    key = KEY_OF.get(kind)
    if key is None or call.env.get(key):
        how = f"Uses {key}." if key else f"Signs in by {kind}."
        return Check(code="credential_api_key", level="info", message=how)
    if _has_other_key(call):
        return Check(
            code="credential_settings",
            level="info",
            message=f"Calls the {kind} API with a key from Qwen Code's settings or a .env file.",
        )
    return Check(
        code="credential_missing",
        level="warn",
        message=f"Calls the {kind} API, but {key} is not set.",
        hint=f"Set {key}, or security.auth.apiKey in {_settings_path(call.env)}.",
    )


def _login(call: CheckCall) -> Check:
    if (settings.qwen_home(call.env) / "oauth_creds.json").is_file():
        return Check(code="credential_login", level="info", message="Uses the Qwen login.")
    return Check(
        code="credential_missing",
        level="warn",
        message="Signs in by a Qwen login, but none is stored.",
        hint="Run `qwen` once as this user and sign in.",
    )


def _has_other_key(call: CheckCall) -> bool:
    """The CLI also takes keys from its settings, from providers of the user's, from .env files."""
    found = settings.user_settings(call.env)
    auth = parse_object(parse_object(found.get("security")).get("auth"))
    if auth.get("apiKey") or found.get("modelProviders") or found.get("env"):
        return True
    home = settings.qwen_home(call.env)
    folders = (call.cwd, *call.cwd.parents, home.parent)
    files = [folder / name for folder in folders for name in (".env", ".qwen/.env")]
    return any(file.is_file() for file in (*files, home / ".env"))


def _settings_path(env: Mapping[str, str]) -> Path:
    return settings.qwen_home(env) / "settings.json"


def _search_program(program: Path) -> Iterator[Check]:
    """The search program that comes with the CLI is not executable after an install by root."""
    for found in sorted((program.resolve().parent / "vendor" / "ripgrep").glob("*/rg")):
        if not os.access(found, os.X_OK):
            yield Check(
                code="search_slow",
                level="warn",
                message=f"{found} is not executable: Qwen Code searches files the slow way.",
                hint=f"Run chmod +x {found}",
            )


def _workspace(cwd: Path) -> Iterator[Check]:
    if (cwd / ".qwen" / "settings.json").is_file():
        yield Check(
            code="workspace_settings",
            level="warn",
            message=f"{cwd}/.qwen/settings.json counts: it can start programs (hooks, MCP).",
            hint="Read it before you let an agent run there.",
        )
