"""How each agent CLI is pointed at the scripted model: settings, variables, config, its counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from binderclip.sdk.testing.scripted_model import Usage

KEY = "sk-scripted-key"
Counts = dict[str, int | None]


def exclusive(usage: Usage) -> Counts:
    """As the vendor counts: every bucket by itself, reasoning not told."""
    return {
        "inputTokens": usage.input,
        "cachedInputTokens": usage.cache_read,
        "cacheWriteTokens": usage.cache_write,
        "outputTokens": usage.output,
        "reasoningTokens": None,
    }


def written_as_fresh(usage: Usage) -> Counts:
    """Where cache writes are not told, they are part of the fresh input."""
    fresh = usage.input + usage.cache_write
    return {**exclusive(usage), "inputTokens": fresh, "cacheWriteTokens": None}


@dataclass(frozen=True, slots=True)
class Runtime:
    """One CLI, its adapter, and what the adapter tells about tokens."""

    name: str
    adapter: str
    env: Callable[[str], dict[str, str]]
    config: dict[str, Any]
    settings: Callable[[str], dict[str, str]] = lambda url: {}
    """Files below HOME by their path."""
    counts: Callable[[Usage], Counts | None] = exclusive
    thinks: bool = True
    """Whether thinking is shown."""
    tool_kinds: tuple[str, ...] = ("shell", "read", "write", "edit")
    """Of the calls that run a command, read, write and edit a file."""

    def prepare(self, home: Path, url: str) -> None:
        for name, content in self.settings(url).items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


def _codex_settings(url: str) -> dict[str, str]:
    lines = [
        'model = "gpt-5.5"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f'base_url = "{url}/v1"',
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 1",
        "stream_max_retries = 1",
        "supports_websockets = false",
    ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _gemini_settings(url: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "maxAttempts": 2},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _opencode_settings(url: str) -> dict[str, str]:
    settings = {"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}}
    return {".config/opencode/opencode.json": json.dumps(settings)}


def _qwen_settings(url: str) -> dict[str, str]:
    return {".qwen/settings.json": json.dumps({"memory": {"enableManagedAutoMemory": False}})}


def _pi_settings(url: str) -> dict[str, str]:
    return {".pi/agent/models.json": json.dumps({"providers": {"anthropic": {"baseUrl": url}}})}


CLAUDE = Runtime(
    name="claude",
    adapter="claude_local",
    env=lambda url: {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "IS_SANDBOX": "1",
    },
    config={"model": "claude-sonnet-4-5", "dangerouslySkipPermissions": True},
    counts=lambda usage: {**exclusive(usage), "reasoningTokens": 0},
)
CODEX = Runtime(
    name="codex",
    adapter="codex_local",
    env=lambda url: {"OPENAI_API_KEY": KEY},
    config={"dangerouslyBypassApprovalsAndSandbox": True},
    settings=_codex_settings,
    tool_kinds=("shell", "shell", "write", "edit"),
    counts=lambda usage: {**exclusive(usage), "reasoningTokens": usage.reasoning},
)
GEMINI = Runtime(
    name="gemini",
    adapter="gemini_local",
    env=lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY},
    config={"model": "gemini-2.5-pro", "dangerouslySkipPermissions": True},
    settings=_gemini_settings,
    counts=lambda usage: {**written_as_fresh(usage), "reasoningTokens": usage.reasoning},
    thinks=False,
)
OPENCODE = Runtime(
    name="opencode",
    adapter="opencode_local",
    env=lambda url: {"ANTHROPIC_API_KEY": KEY, "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    config={"model": "anthropic/claude-sonnet-4-5", "dangerouslySkipPermissions": True},
    settings=_opencode_settings,
    counts=lambda usage: {**exclusive(usage), "reasoningTokens": 0},
)
QWEN = Runtime(
    name="qwen",
    adapter="qwen_local",
    env=lambda url: {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY},
    config={"model": "scripted-1", "dangerouslySkipPermissions": True},
    settings=_qwen_settings,
    counts=written_as_fresh,
)
COPILOT = Runtime(
    name="copilot",
    adapter="copilot_local",
    env=lambda url: {
        "COPILOT_PROVIDER_TYPE": "anthropic",
        "COPILOT_PROVIDER_BASE_URL": url,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_OFFLINE": "true",
    },
    config={"model": "claude-sonnet-4-5", "dangerouslySkipPermissions": True},
)
PI = Runtime(
    name="pi",
    adapter="pi_local",
    env=lambda url: {"ANTHROPIC_API_KEY": KEY, "PI_OFFLINE": "1"},
    config={"provider": "anthropic", "model": "claude-sonnet-4-5"},
    settings=_pi_settings,
)
ALL = (CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, COPILOT, PI)
