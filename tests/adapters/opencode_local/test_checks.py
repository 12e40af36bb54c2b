"""The environment test of OpenCode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.opencode_local import create_adapter
from binderclip.sdk import Check, CheckCall, CheckRequest
from binderclip.sdk.config import read_config

NOW = "2026-01-01T00:00:00.000Z"


def stand_in(root: Path, script: str) -> Path:
    program = root / "bin" / "opencode"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def checked(
    root: Path,
    env: dict[str, str] | None = None,
    depth: Any = "quick",
    script: str = "echo 1.18.33",
    **config: Any,
) -> dict[str, Check]:
    program = stand_in(root, script)
    cwd = root / "ws"
    cwd.mkdir(exist_ok=True)
    request = CheckRequest(
        company_id="c",
        adapter_type="opencode_local",
        config={"cwd": str(cwd), **config},
        depth=depth,
    )
    host = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(root), **(env or {})}
    report = create_adapter().test_environment(request, host, NOW)
    return {check.code: check for check in report.checks}


def store_login(root: Path, content: dict[str, Any]) -> None:
    folder = root / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "auth.json").write_text(json.dumps(content))


def test_the_version_is_told(tmp_path: Path) -> None:
    """E2: the command and its version."""
    assert checked(tmp_path)["version"].message == "OpenCode 1.18.33."
    assert checked(tmp_path, script="exit 1")["version_unknown"].level == "warn"


def test_a_preflight_starts_no_process(tmp_path: Path) -> None:
    """E3: before a spawn only those checks run that start nothing."""
    found = checked(tmp_path, depth="preflight", script=f"touch {tmp_path}/started")
    assert "version" not in found
    assert not (tmp_path / "started").exists()


def test_a_stored_login_a_stored_key_and_a_variable_are_told_apart(tmp_path: Path) -> None:
    """E2: auth hints."""
    store_login(tmp_path, {"anthropic": {"type": "oauth"}, "groq": {"type": "api"}})
    assert "credential_login" in checked(tmp_path, model="anthropic/claude-sonnet-4-5")
    assert "credential_stored_key" in checked(tmp_path, model="groq/x")
    found = checked(tmp_path, {"OPENAI_API_KEY": "k" * 20}, model="openai/x")
    assert found["credential_api_key"].message == "Uses OPENAI_API_KEY for openai."


def test_a_missing_credential_is_a_warning_that_names_the_variable(tmp_path: Path) -> None:
    """E3: keys can stand in configuration files, so nothing is certain enough to block."""
    found = checked(tmp_path, model="anthropic/claude-sonnet-4-5")["credential_missing"]
    assert found.level == "warn"
    assert "ANTHROPIC_API_KEY" in str(found.hint)
    assert checked(tmp_path)["credential_missing"].level == "warn"


def test_a_provider_of_the_users_own_needs_no_key(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text('{"provider": {"local": {}}, "model": "local/m"}')
    assert "credential_missing" not in checked(tmp_path)


def test_settings_in_the_environment_that_no_run_can_use_are_an_error(tmp_path: Path) -> None:
    """E1: error means unusable."""
    found = checked(tmp_path, {"OPENCODE_PERMISSION": "allow"})["variable_unusable"]
    assert found.level == "error"


def test_skipping_permissions_is_a_warning(tmp_path: Path) -> None:
    """A12: the environment test warns of dangerous flags."""
    found = checked(tmp_path, dangerouslySkipPermissions=True)["dangerous_flag"]
    assert found.level == "warn"


def test_settings_of_the_project_are_told(tmp_path: Path) -> None:
    (tmp_path / "ws" / ".opencode").mkdir(parents=True)
    assert ".opencode" in checked(tmp_path)["project_settings"].message


def test_a_live_test_goes_the_way_of_a_run(tmp_path: Path) -> None:
    """E2: live makes a tiny real call."""
    part = '{"reason":"stop","tokens":{"input":1,"output":1}}'
    line = f'{{"type":"step_finish","sessionID":"ses_1","part":{part}}}'
    script = f"case $1 in run) cat >/dev/null; echo '{line}';; *) echo 1.18.33;; esac"
    assert checked(tmp_path, depth="live", script=script)["live_ok"].level == "info"
    assert checked(tmp_path, depth="live", script="exit 1")["live_process_failed"].level == "error"


@pytest.mark.parametrize(("script", "names"), [("echo a/b; echo c/d/e", 2), ("exit 1", 0)])
def test_models_are_those_that_the_cli_lists(tmp_path: Path, script: str, names: int) -> None:
    adapter = create_adapter()
    request = CheckRequest(company_id="c", adapter_type="opencode_local", config={})
    call = CheckCall(
        request,
        read_config(adapter.Config, {}),
        tmp_path,
        {"PATH": "/usr/bin:/bin"},
        stand_in(tmp_path, script),
    )
    assert len(adapter.list_models(call)) == names
