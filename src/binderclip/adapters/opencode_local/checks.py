"""What can be known about OpenCode here: version, credentials, permissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from binderclip.adapters.opencode_local import settings
from binderclip.adapters.opencode_local.config import OpenCodeConfig
from binderclip.sdk import Check, CheckCall, as_string, parse_json, parse_object, version_check
from binderclip.sdk.credentials import key_check, keys_in, stored_check

KEYS: dict[str, tuple[str, ...]] = {
    "amazon-bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks-ai": ("FIREWORKS_API_KEY",),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "google-vertex": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshotai": ("MOONSHOT_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "opencode": ("OPENCODE_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "togetherai": ("TOGETHER_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "zhipuai": ("ZHIPU_API_KEY",),
}


def findings(call: CheckCall) -> Iterator[Check]:
    """Everything but the live call."""
    config: OpenCodeConfig = call.config
    if call.depth != "preflight" and call.program is not None:
        yield version_check("OpenCode", call.program, call.env)
    yield from credential(config, call.env)
    yield from _variables(call.env)
    yield _permissions(config)
    yield from _project(call.cwd)


def credential(config: OpenCodeConfig, env: Mapping[str, str]) -> Iterator[Check]:
    """Whose credential the configured provider would use; any provider's if none is configured."""
    model = config.model or as_string(settings.user_settings(env).get("model"))
    provider = model.partition("/")[0]
    logins, keys = _logins(env), keys_in(env, KEYS)
    for name in [provider] if provider else sorted({*logins, *keys}):
        if name in logins:
            yield stored_check(name, logins[name])
        elif name in keys:
            yield key_check(name, keys[name])
    if provider and provider not in logins and provider not in keys:
        yield _missing(provider, env)
    elif not provider and not logins and not keys:
        yield Check(
            code="credential_missing",
            level="warn",
            message="No login and no key was found: OpenCode can use its free models only.",
            hint="Run `opencode auth login` as this user, or set a provider's key.",
        )


def _logins(env: Mapping[str, str]) -> dict[str, str]:
    """Providers with a stored credential, and its kind."""
    text: object = env.get("OPENCODE_AUTH_CONTENT")
    if not text:
        try:
            text = (settings.data_home(env) / "auth.json").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return {}
    stored: dict[str, Any] = parse_json(text) or {}
    return {name: as_string(parse_object(item).get("type")) for name, item in stored.items()}


def _missing(provider: str, env: Mapping[str, str]) -> Check:
    """Never an error: keys can stand in configuration files, and local models need none."""
    own = parse_object(settings.user_settings(env).get("provider"))
    if provider in own or provider == "opencode":
        return Check(
            code="credential_configured",
            level="info",
            message=f"The provider {provider} needs no key of its own or is configured by file.",
        )
    key = KEYS.get(provider, ("its key",))[0]
    return Check(
        code="credential_missing",
        level="warn",
        message=f"No login and no key was found for the provider {provider}.",
        hint=f"Run `opencode auth login` as this user, or set {key}.",
    )


def _variables(env: Mapping[str, str]) -> Iterator[Check]:
    for name in ("OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION"):
        if env.get(name) and parse_json(env[name]) is None:
            yield Check(
                code="variable_unusable",
                level="error",
                message=f"{name} is no JSON object, so a run's settings cannot be added to it.",
                hint=f"Write it as JSON without comments, or unset {name}.",
            )


def _permissions(config: OpenCodeConfig) -> Check:
    if config.permission_mode == "read_only":
        return Check(
            code="permissions", level="info", message="The agent reads: no edits, no commands."
        )
    return Check(
        code="permissions",
        level="info",
        message="Edits and commands inside the directory run without asking, unless "
        "opencode.json says otherwise; what it would ask about is denied.",
    )


def _project(cwd: Path) -> Iterator[Check]:
    names = ("opencode.json", "opencode.jsonc", ".opencode")
    found = [name for name in names if (cwd / name).exists()]
    if found:
        yield Check(
            code="project_settings",
            level="info",
            message=f"{cwd / found[0]} counts too: it can start programs (plugins, MCP servers).",
            hint="Set OPENCODE_DISABLE_PROJECT_CONFIG=1 in env to leave it out.",
        )
