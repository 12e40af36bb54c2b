"""The configuration that a run adds to OpenCode's own, by environment variables.

What the agent's own environment already says there is kept; the run's values win.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from binderclip.adapters.opencode_local.config import OpenCodeConfig
from binderclip.sdk import ConfigError, as_string_array, parse_json, parse_object

# Nothing is uploaded and nothing replaces the program while it runs.
QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_SHARE": "1"}
READ_ONLY = {"edit": "deny", "bash": "deny"}
DEFAULT_AGENT = "build"


def config_home(env: Mapping[str, str]) -> Path:
    """Where OpenCode keeps the user's configuration."""
    home = Path(env.get("HOME") or "/")
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"


def data_home(env: Mapping[str, str]) -> Path:
    """Where OpenCode keeps logins, sessions and logs."""
    home = Path(env.get("HOME") or "/")
    return Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"


def user_settings(env: Mapping[str, str]) -> dict[str, Any]:
    """The user's configuration, as far as it is JSON without comments; later files win."""
    found: dict[str, Any] = {}
    for name in ("config.json", "opencode.json", "opencode.jsonc"):
        try:
            text = (config_home(env) / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found.update(parse_json(text) or {})
    return found


def run_environment(
    config: OpenCodeConfig, env: Mapping[str, str], skills: Path | None
) -> dict[str, str]:
    """The variables that carry a run's settings."""
    wanted = {name: value for name, value in QUIET.items() if name not in config.env}
    content = run_settings(config, env, skills)
    if content:
        given = _object(env, "OPENCODE_CONFIG_CONTENT")
        wanted["OPENCODE_CONFIG_CONTENT"] = json.dumps(merged(given, content))
    if config.permission_mode == "read_only":
        rules = {**_object(env, "OPENCODE_PERMISSION"), **READ_ONLY}
        wanted["OPENCODE_PERMISSION"] = json.dumps(rules)
    return wanted


def run_settings(
    config: OpenCodeConfig, env: Mapping[str, str], skills: Path | None
) -> dict[str, Any]:
    """What the run sets in OpenCode's configuration."""
    content: dict[str, Any] = {}
    if config.continue_after_denial:
        content["experimental"] = {"continue_loop_on_deny": True}
    if config.max_turns:
        content["agent"] = {config.agent or DEFAULT_AGENT: {"steps": config.max_turns}}
    if config.instructions_file_path:
        content["instructions"] = [str(_readable(config.instructions_file_path))]
    if skills is not None:
        # OpenCode takes the last list of paths that it reads and forgets the others.
        own = as_string_array(parse_object(user_settings(env).get("skills")).get("paths"))
        content["skills"] = {"paths": [*own, str(skills)]}
    return content


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both objects in one: objects within are merged, lists joined, other values taken last."""
    result = dict(one)
    for key, value in other.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            result[key] = merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            result[key] = [*before, *value]
        else:
            result[key] = value
    return result


def _object(env: Mapping[str, str], name: str) -> dict[str, Any]:
    text = env.get(name)
    if not text:
        return {}
    found = parse_json(text)
    if found is None:
        raise ConfigError(
            f"{name} is no JSON object, so the run's own settings cannot be added to it.",
            hint=f"Write it as JSON without comments, or unset {name}.",
            fields={f"env.{name}": "no JSON object"},
        )
    return found


def _readable(path: str) -> Path:
    try:
        with Path(path).open("rb"):
            return Path(path).absolute()
    except OSError as problem:
        raise ConfigError(
            f"instructionsFilePath: {path} cannot be read: {problem}",
            hint="Set it to the absolute path of a Markdown file, or remove it.",
            fields={"instructionsFilePath": "cannot be read"},
        ) from problem


def skill_names(folders: Sequence[Path]) -> list[str]:
    """Names of the skills in directories, each once."""
    found = {path.parent.name for folder in folders for path in folder.glob("*/SKILL.md")}
    return sorted(found)
