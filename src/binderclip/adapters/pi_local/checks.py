"""What can be known about Pi here: version, credentials, trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from binderclip.adapters.pi_local.config import PiConfig
from binderclip.sdk import Check, CheckCall, as_string, parse_json, parse_object, version_check
from binderclip.sdk.credentials import key_check, keys_in, stored_check

KEYS: dict[str, tuple[str, ...]] = {
    "amazon-bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    "anthropic": ("ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"),
    "azure-openai-responses": ("AZURE_OPENAI_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "github-copilot": ("COPILOT_GITHUB_TOKEN",),
    "google": ("GEMINI_API_KEY",),
    "google-vertex": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "groq": ("GROQ_API_KEY",),
    "kimi-coding": ("KIMI_API_KEY",),
    "minimax": ("MINIMAX_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshotai": ("MOONSHOT_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "opencode": ("OPENCODE_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "vercel-ai-gateway": ("AI_GATEWAY_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "zai": ("ZAI_API_KEY",),
}


def findings(call: CheckCall) -> Iterator[Check]:
    """Everything but the live call."""
    config: PiConfig = call.config
    if call.depth != "preflight" and call.program is not None:
        yield version_check("Pi", call.program, call.env, "it needs Node 22.19 or newer")
    yield from credential(config, call.env)
    yield _permissions(config)
    yield from _project(config, call.cwd)


def agent_home(env: Mapping[str, str]) -> Path:
    """Where Pi keeps settings, logins, models and sessions."""
    named = env.get("PI_CODING_AGENT_DIR")
    return Path(named) if named else Path(env.get("HOME") or "/") / ".pi" / "agent"


def user_settings(env: Mapping[str, str], name: str = "settings.json") -> dict[str, Any]:
    """One of the user's files; empty where there is none or it is no JSON object."""
    try:
        text = (agent_home(env) / name).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return parse_json(text) or {}


def credential(config: PiConfig, env: Mapping[str, str]) -> Iterator[Check]:
    """Whose credential the configured provider would use; any provider's if none is configured."""
    provider = _provider(config, env)
    stored, keys = user_settings(env, "auth.json"), keys_in(env, KEYS)
    for name in [provider] if provider else sorted({*stored, *keys}):
        if name in stored:
            yield stored_check(name, as_string(parse_object(stored[name]).get("type")))
        elif name in keys:
            yield key_check(name, keys[name])
    if provider and provider not in stored and provider not in keys:
        yield _missing(provider, env)
    elif not provider and not stored and not keys:
        yield Check(
            code="credential_missing",
            level="warn",
            message="No login and no key was found for any provider.",
            hint="Run `pi` once as this user and use /login, or set a provider's key.",
        )


def _provider(config: PiConfig, env: Mapping[str, str]) -> str:
    """The provider as far as the configuration or the user's settings name it."""
    head, slash, _ = (config.model or "").partition("/")
    known = head if slash and head in KEYS else ""
    if config.provider or known:
        return config.provider or known
    return "" if config.model else as_string(user_settings(env).get("defaultProvider"))


def _missing(provider: str, env: Mapping[str, str]) -> Check:
    """Never an error: models.json can hold a key, and local models need none."""
    own = parse_object(user_settings(env, "models.json").get("providers"))
    if "apiKey" in parse_object(own.get(provider)):
        return Check(
            code="credential_configured",
            level="info",
            message=f"The provider {provider} is configured in models.json.",
        )
    key = KEYS.get(provider, ("its key",))[-1]
    return Check(
        code="credential_missing",
        level="warn",
        message=f"No login and no key was found for the provider {provider}.",
        hint=f"Run `pi` once as this user and use /login, or set {key}.",
    )


def _permissions(config: PiConfig) -> Check:
    if config.permission_mode == "read_only":
        return Check(
            code="permissions", level="info", message="The agent reads: no edits, no commands."
        )
    return Check(
        code="permissions",
        level="info",
        message="Pi never asks: the agent edits files and runs commands as this user.",
        hint="Set permissionMode to read_only where it should only look.",
    )


def _project(config: PiConfig, cwd: Path) -> Iterator[Check]:
    if config.trust_workspace and (cwd / ".pi").is_dir():
        yield Check(
            code="workspace_settings",
            level="warn",
            message=f"{cwd / '.pi'} is trusted: it can hold extensions, which are code.",
            hint="Read it, or set trustWorkspace to false.",
        )
