"""The environment test of Cursor CLI, its models and skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.cursor import create_adapter
from binderclip.sdk import Check, CheckCall, CheckRequest
from binderclip.sdk.config import read_config

NOW = "2026-01-01T00:00:00.000Z"
LOGGED_IN = '[ "$1" = status ] && echo "✓ Logged in as a@b.c" || echo 2026.09.02'


def command(root: Path, script: str, name: str = "cursor-agent") -> Path:
    program = root / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def checked(
    root: Path,
    env: dict[str, str],
    depth: Any = "quick",
    script: str = LOGGED_IN,
    name: str = "cursor-agent",
    **config: Any,
) -> dict[str, Check]:
    program = command(root, script, name)
    cwd = root / "ws"
    cwd.mkdir(exist_ok=True)
    request = CheckRequest(
        company_id="c", adapter_type="cursor", config={"cwd": str(cwd), **config}, depth=depth
    )
    host = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(root), **env}
    report = create_adapter().test_environment(request, host, NOW)
    return {check.code: check for check in report.checks}


def call(root: Path, script: str) -> CheckCall:
    request = CheckRequest(company_id="c", adapter_type="cursor", config={}, depth="quick")
    env = {"HOME": str(root), "PATH": "/usr/bin:/bin"}
    config = read_config(create_adapter().Config, {})
    return CheckCall(request, config, root, env, command(root, script))


def test_the_version_is_told_and_a_preflight_starts_no_process(tmp_path: Path) -> None:
    """E2, E3."""
    assert checked(tmp_path, {})["version"].message == "Cursor CLI 2026.09.02."
    assert "version_unknown" in checked(tmp_path, {}, script="exit 1")
    found = checked(tmp_path, {}, "preflight", f"touch {tmp_path}/started")
    assert "version" not in found
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("env", "script", "code", "level"),
    [
        ({"CURSOR_API_KEY": "k"}, "exit 1", "credential_api_key", "info"),
        ({}, LOGGED_IN, "credential_login", "info"),
        ({}, "echo Not logged in", "credential_missing", "warn"),
        ({}, "exit 1", "credential_missing", "warn"),
    ],
)
def test_the_credential_is_checked(
    tmp_path: Path, env: dict[str, str], script: str, code: str, level: str
) -> None:
    """E3: which credential is in use; a warning never blocks."""
    assert checked(tmp_path, env, script=script)[code].level == level


def test_the_newer_name_is_enough_and_none_is_an_error(tmp_path: Path) -> None:
    """E1: error means unusable."""
    assert "agent" in checked(tmp_path, {}, name="agent")["command_ok"].message
    (tmp_path / "bin" / "agent").unlink()
    found = checked(tmp_path, {}, name="something")
    assert "cursor-agent" in found["command_missing"].message


def test_trust_and_the_directorys_settings_are_told(tmp_path: Path) -> None:
    assert "workspace_settings" not in checked(tmp_path, {})
    assert checked(tmp_path, {}, trustWorkspace=False)["workspace_trust"].level == "warn"
    (tmp_path / "ws" / ".cursor").mkdir()
    assert checked(tmp_path, {})["workspace_settings"].level == "warn"


def test_an_effort_that_has_no_effect_is_a_warning(tmp_path: Path) -> None:
    assert checked(tmp_path, {}, effort="high")["effort_ignored"].level == "warn"


def test_models_come_from_the_command(tmp_path: Path) -> None:
    """A3: the runtime's own list."""
    adapter = create_adapter()
    listed = "printf 'Available models\\n\\nauto - Auto\\ngpt-5.5-high - GPT-5.5 High\\n'"
    found = adapter.list_models(call(tmp_path, listed))
    assert [(model.id, model.label) for model in found] == [
        ("auto", "Auto"),
        ("gpt-5.5-high", "GPT-5.5 High"),
    ]
    assert adapter.list_models(call(tmp_path, "exit 1")) == adapter.manifest.models


def test_the_users_skills_are_listed(tmp_path: Path) -> None:
    skill = tmp_path / ".cursor" / "skills" / "review" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: review\n---\n")
    assert create_adapter().list_skills(call(tmp_path, "")) == ["review"]


def test_the_live_test_makes_one_call_by_the_same_path(tmp_path: Path) -> None:
    """E2: live is asked for explicitly."""
    folder = create_adapter().folder / "fixtures"
    good = f'[ "$1" = --print ] && cat > {tmp_path}/asked; cat {folder}/plain/stdout.txt'
    found = checked(tmp_path, {"CURSOR_API_KEY": "k"}, "live", good)
    assert found["live_ok"].detail == "The answer is 42."
    assert "connection test" in (tmp_path / "asked").read_text()
    bad = f"cat {folder}/no_auth/stderr.txt >&2; exit 1"
    assert checked(tmp_path, {"CURSOR_API_KEY": "k"}, "live", bad)["live_auth"].level == "error"
