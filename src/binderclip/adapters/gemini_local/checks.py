"""The environment test of Gemini CLI: version, credential, what its settings say (E1-E3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from binderclip.adapters.gemini_local.config import GeminiConfig
from binderclip.sdk import Check, CheckCall, as_string, parse_json, parse_object, version_check

SETTINGS_HINT = 'Set "security": {"auth": {"selectedType": "gemini-api-key"}} in {path}.'


def findings(call: CheckCall) -> Iterator[Check]:
    """What is found without a call to the model."""
    config: GeminiConfig = call.config
    if call.depth != "preflight" and call.program is not None:
        yield version_check("Gemini CLI", call.program, call.env, "it needs Node 20 or newer")
    settings = user_settings(call.env)
    yield from credential(call, settings)
    yield from _statistics(settings, call.env)
    yield from _workspace(config, call.cwd)
    if config.effort is not None:
        yield Check(
            code="effort_ignored",
            level="warn",
            message="effort has no effect on Gemini CLI.",
            hint="Set modelConfigs.customOverrides in its settings.json instead.",
        )


def gemini_home(env: Mapping[str, str]) -> Path:
    """Where the CLI keeps settings, logins, sessions and the user's skills."""
    return Path(env.get("GEMINI_CLI_HOME") or env.get("HOME") or "/") / ".gemini"


def user_settings(env: Mapping[str, str]) -> dict[str, Any]:
    """The user's settings; empty where there are none or they hold comments."""
    try:
        text = (gemini_home(env) / "settings.json").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return parse_json(text) or {}


def credential(call: CheckCall, settings: Mapping[str, Any]) -> Iterator[Check]:
    """Which way of signing in the CLI would take, in its own order, and whether it can work."""
    auth = parse_object(parse_object(settings.get("security")).get("auth"))
    chosen = as_string(auth.get("selectedType")) or as_string(settings.get("selectedAuthType"))
    method = chosen or method_by_env(call.env)
    if method == "gemini-api-key":
        yield _api_key(call)
    elif method == "oauth-personal":
        yield _login(call)
    elif method == "vertex-ai":
        yield _vertex(call)
    elif method == "gateway":
        yield Check(
            code="credential_unusable",
            level=_missing_level(call),
            message="GOOGLE_GEMINI_BASE_URL is set but no way of signing in is chosen: "
            "Gemini CLI refuses to start.",
            hint=_select_key_hint(call.env),
        )
    elif method:
        yield Check(code="credential", level="info", message=f"Signs in by {method}.")
    else:
        yield Check(
            code="credential_missing",
            level=_missing_level(call),
            message="Gemini CLI has no credential: no login and no key was found.",
            hint="Run `gemini` once and sign in, or set GEMINI_API_KEY.",
        )


def method_by_env(env: Mapping[str, str]) -> str:
    """What the CLI chooses by the environment when its settings choose nothing."""
    if env.get("GOOGLE_GENAI_USE_GCA") == "true":
        return "oauth-personal"
    if env.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return "vertex-ai"
    if env.get("GOOGLE_GEMINI_BASE_URL"):
        return "gateway"
    return "gemini-api-key" if env.get("GEMINI_API_KEY") else ""


def _api_key(call: CheckCall) -> Check:
    login = gemini_home(call.env) / "oauth_creds.json"
    if not call.env.get("GEMINI_API_KEY"):
        return Check(
            code="credential_missing",
            level="warn",
            message="Signs in by API key, but GEMINI_API_KEY is not set.",
            hint="Set GEMINI_API_KEY, unless the key is in the system's keychain.",
        )
    if login.is_file():
        return Check(
            code="credential_api_key",
            level="warn",
            message="Uses GEMINI_API_KEY, billed by use, although a Google login is there too.",
            hint="Remove the key to use the login.",
        )
    return Check(code="credential_api_key", level="info", message="Uses GEMINI_API_KEY.")


def _login(call: CheckCall) -> Check:
    if (gemini_home(call.env) / "oauth_creds.json").is_file():
        return Check(code="credential_login", level="info", message="Uses the Google login.")
    return Check(
        code="credential_missing",
        level="warn",
        message="Signs in by a Google login, but none is stored as a file.",
        hint="Run `gemini` once as this user and sign in, unless the login is in the keychain.",
    )


def _vertex(call: CheckCall) -> Check:
    place = call.env.get("GOOGLE_CLOUD_PROJECT") and call.env.get("GOOGLE_CLOUD_LOCATION")
    if place or call.env.get("GOOGLE_API_KEY"):
        return Check(code="credential_vertex", level="info", message="Uses Vertex AI.")
    return Check(
        code="credential_missing",
        level=_missing_level(call),
        message="Signs in by Vertex AI, but it is not told where.",
        hint="Set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or GOOGLE_API_KEY.",
    )


def _missing_level(call: CheckCall) -> Any:
    """An error only where it is certain: the CLI also reads .env files."""
    home = gemini_home(call.env)
    folders = (call.cwd, *call.cwd.parents, home.parent)
    files = (folder / name for folder in folders for name in (".env", ".gemini/.env"))
    return "warn" if any(file.is_file() for file in files) else "error"


def _select_key_hint(env: Mapping[str, str]) -> str:
    return SETTINGS_HINT.replace("{path}", str(gemini_home(env) / "settings.json"))


def _statistics(settings: Mapping[str, Any], env: Mapping[str, str]) -> Iterator[Check]:
    if parse_object(settings.get("privacy")).get("usageStatisticsEnabled") is not False:
        yield Check(
            code="usage_statistics_on",
            level="info",
            message="Gemini CLI sends usage statistics; only its own settings can turn them off.",
            hint=f'Set "privacy": {{"usageStatisticsEnabled": false}} in '
            f"{gemini_home(env) / 'settings.json'}.",
        )


def _workspace(config: GeminiConfig, cwd: Path) -> Iterator[Check]:
    if not config.trust_workspace:
        yield Check(
            code="workspace_trust",
            level="info",
            message="Runs only where a person has trusted the directory in Gemini CLI.",
        )
    elif (cwd / ".gemini" / "settings.json").is_file():
        yield Check(
            code="workspace_settings",
            level="warn",
            message=f"{cwd}/.gemini/settings.json is trusted: it can start programs (hooks, MCP).",
            hint="Read it, or set trustWorkspace to false.",
        )
