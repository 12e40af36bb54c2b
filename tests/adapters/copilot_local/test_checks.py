"""The environment test of Copilot CLI, its models and skills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.copilot_local import create_adapter
from binderclip.sdk import Check, CheckCall, CheckRequest
from binderclip.sdk.config import read_config

NOW = "2026-01-01T00:00:00.000Z"
PROVIDER = {"COPILOT_PROVIDER_BASE_URL": "http://localhost:1", "COPILOT_PROVIDER_API_KEY": "k"}
HELP = """Configuration Settings:

  `logLevel`: log level.

  `model`: AI model to use.
    - "claude-sonnet-5.5"
    - "gpt-5.5"

  `other`: something else.
    - "not-a-model"
"""


def checked(
    root: Path,
    env: dict[str, str],
    depth: Any = "quick",
    script: str = "echo 'GitHub Copilot CLI 1.0.102.'",
    **config: Any,
) -> dict[str, Check]:
    program = command(root, script)
    cwd = root / "ws"
    cwd.mkdir(exist_ok=True)
    request = CheckRequest(
        company_id="c",
        adapter_type="copilot_local",
        config={"cwd": str(cwd), **config},
        depth=depth,
    )
    host = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(root), **env}
    report = create_adapter().test_environment(request, host, NOW)
    return {check.code: check for check in report.checks}


def command(root: Path, script: str) -> Path:
    program = root / "bin" / "copilot"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def call(root: Path, script: str, env: dict[str, str] | None = None) -> CheckCall:
    request = CheckRequest(company_id="c", adapter_type="copilot_local", config={}, depth="quick")
    adapter = create_adapter()
    host = {"HOME": str(root), "PATH": "/usr/bin:/bin", **(env or {})}
    config = read_config(adapter.Config, {})
    return CheckCall(request, config, root, host, command(root, script))


def stored(root: Path, name: str, content: object) -> None:
    (root / ".copilot").mkdir(exist_ok=True)
    (root / ".copilot" / name).write_text(json.dumps(content))


def test_the_version_is_told_and_a_preflight_starts_no_process(tmp_path: Path) -> None:
    """E2, E3."""
    assert checked(tmp_path, {})["version"].message == "GitHub Copilot CLI 1.0.102."
    assert "version_unknown" in checked(tmp_path, {}, script="exit 1")
    found = checked(tmp_path, {}, "preflight", f"touch {tmp_path}/started")
    assert "version" not in found
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("env", "config", "code", "level"),
    [
        ({}, {}, "credential_missing", "warn"),
        ({"GH_TOKEN": "t"}, {}, "credential_token", "info"),
        (PROVIDER, {"model": "m"}, "credential_provider", "warn"),
        (PROVIDER, {}, "model_missing", "error"),
    ],
)
def test_the_credential_is_checked(
    tmp_path: Path, env: dict[str, str], config: dict[str, Any], code: str, level: str
) -> None:
    """E1, E3: which credential is in use; error only where no run can work."""
    assert checked(tmp_path, env, **config)[code].level == level


def test_a_provider_with_a_model_blocks_nothing(tmp_path: Path) -> None:
    """E3: warnings never block."""
    found = checked(tmp_path, {**PROVIDER, "COPILOT_MODEL": "m"})
    assert [check.code for check in found.values() if check.level == "error"] == []


def test_a_stored_login_is_found_and_nonsense_never_raises(tmp_path: Path) -> None:
    """E2: expected findings never raise."""
    stored(tmp_path, "config.json", {"loggedInUsers": [{"host": "h", "login": "l"}]})
    assert checked(tmp_path, {})["credential_login"].level == "info"
    (tmp_path / ".copilot" / "config.json").write_bytes(b"// comment\n\xff{")
    assert "credential_missing" in checked(tmp_path, {})


@pytest.mark.parametrize(
    ("config", "code", "level"),
    [
        ({}, "network_by_address", "info"),
        ({"network": "none"}, "network_by_address", "warn"),
        ({"network": "allowlist"}, "network_by_address", "warn"),
        ({"network": "open"}, "network_open", "warn"),
        ({"dangerouslySkipPermissions": True}, "network_open", "warn"),
        (
            {"network": "allowlist", "dangerouslySkipPermissions": True},
            "network_not_enforced",
            "error",
        ),
    ],
)
def test_the_test_says_how_far_the_network_is_limited(
    tmp_path: Path, config: dict[str, Any], code: str, level: str
) -> None:
    """A13: whether it is enforced."""
    assert checked(tmp_path, {}, **config)[code].level == level


def test_trusted_settings_of_the_repository_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "ws" / ".github").mkdir(parents=True)
    assert "workspace_settings" not in checked(tmp_path, {})
    stored(tmp_path, "config.json", {"trustedFolders": ["/elsewhere", str(tmp_path)]})
    assert checked(tmp_path, {})["workspace_settings"].level == "warn"


def test_models_come_from_the_commands_own_help(tmp_path: Path) -> None:
    """A3: the runtime's own list."""
    adapter = create_adapter()
    (tmp_path / "help").write_text(HELP)
    found = adapter.list_models(call(tmp_path, f"cat {tmp_path}/help"))
    assert [model.id for model in found] == ["claude-sonnet-5.5", "gpt-5.5"]
    assert adapter.list_models(call(tmp_path, "exit 1")) == adapter.manifest.models


def test_the_users_model_and_skills_are_known(tmp_path: Path) -> None:
    adapter = create_adapter()
    stored(tmp_path, "settings.json", {"model": "gpt-5.5"})
    skill = tmp_path / ".copilot" / "skills" / "review" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: review\n---\n")
    assert adapter.detect_model(call(tmp_path, "")) == "gpt-5.5"
    assert adapter.detect_model(call(tmp_path, "", {"COPILOT_MODEL": "own"})) == "own"
    assert adapter.list_skills(call(tmp_path, "")) == ["review"]


def test_the_live_test_makes_one_call_by_the_same_path(tmp_path: Path) -> None:
    """E2: live is asked for explicitly."""
    folder = create_adapter().folder / "fixtures"
    good = f"cat > {tmp_path}/asked; cat {folder}/plain/stdout.txt"
    found = checked(tmp_path, {"GH_TOKEN": "t"}, "live", good)
    assert found["live_ok"].detail == "The answer is 42."
    assert "connection test" in (tmp_path / "asked").read_text()
    bad = f"cat {folder}/error_401/stdout.txt; exit 1"
    assert checked(tmp_path, {"GH_TOKEN": "t"}, "live", bad)["live_auth"].level == "error"
