"""Qwen Code's settings: what the user's say, and what a run adds in files of its own.

Added defaults yield to the user's settings, added overrides do not; the machine's own files win.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binderclip.adapters.qwen_local.config import QwenConfig
from binderclip.sdk import Effort, as_string, parse_json, parse_object

DEFAULTS_PATH = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
SETTINGS_PATH = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
MACHINE_FOLDERS = (Path("/etc/qwen-code"), Path("/Library/Application Support/QwenCode"))
DEFAULTS: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
    "telemetry": {"enabled": False},
}
EFFORTS: dict[Effort, str] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
}
_KEYS = {
    "OPENAI_API_KEY": "openai",
    "ANTHROPIC_API_KEY": "anthropic",
    "GEMINI_API_KEY": "gemini",
}


def qwen_home(env: Mapping[str, str]) -> Path:
    """Where the CLI keeps settings, logins, sessions and the user's skills."""
    own = env.get("QWEN_HOME")
    return Path(own).expanduser() if own else Path(env.get("HOME") or "/") / ".qwen"


def user_settings(env: Mapping[str, str]) -> dict[str, Any]:
    """The user's settings; empty where there are none or they hold comments."""
    try:
        text = (qwen_home(env) / "settings.json").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return parse_json(text) or {}


def chosen_auth_type(env: Mapping[str, str]) -> str:
    """The kind of API that the user's settings choose, or nothing."""
    auth = parse_object(parse_object(user_settings(env).get("security")).get("auth"))
    return as_string(auth.get("selectedType"))


def auth_type_by_env(env: Mapping[str, str]) -> str | None:
    """The kind of API whose key is set; the CLI itself refuses to choose by that."""
    if chosen_auth_type(env):
        return None
    return next((kind for name, kind in _KEYS.items() if env.get(name)), None)


def written(
    config: QwenConfig, env: Mapping[str, str], scratch: Path
) -> tuple[dict[str, str], list[str]]:
    """Write the run's own settings files: the variables that name them, and what was left out."""
    added: dict[str, str] = {}
    notes: list[str] = []
    if not _taken(DEFAULTS_PATH, "system-defaults.json", env):
        added[DEFAULTS_PATH] = _file(scratch / "qwen-defaults.json", DEFAULTS)
    if config.effort is None:
        return added, notes
    if _taken(SETTINGS_PATH, "settings.json", env):
        notes.append("effort is not passed on: this machine has system settings of its own.")
    else:
        effort = {"model": {"reasoningEffort": EFFORTS[config.effort]}}
        added[SETTINGS_PATH] = _file(scratch / "qwen-settings.json", effort)
    return added, notes


def _taken(variable: str, name: str, env: Mapping[str, str]) -> bool:
    return variable in env or any((folder / name).is_file() for folder in MACHINE_FOLDERS)


def _file(path: Path, content: dict[str, Any]) -> str:
    path.write_text(json.dumps(content), "utf-8")
    return str(path)
