"""The environment test of Qwen Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.qwen_local import create_adapter
from binderclip.sdk import Check, CheckRequest

NOW = "2026-01-01T00:00:00.000Z"


def checked(
    root: Path,
    env: dict[str, str],
    depth: Any = "quick",
    script: str = "echo 0.24.4",
    **config: Any,
) -> dict[str, Check]:
    program = root / "bin" / "qwen"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    cwd = root / "ws"
    cwd.mkdir(exist_ok=True)
    request = CheckRequest(
        company_id="c", adapter_type="qwen_local", config={"cwd": str(cwd), **config}, depth=depth
    )
    host = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(root), **env}
    report = create_adapter().test_environment(request, host, NOW)
    return {check.code: check for check in report.checks}


def user_settings(root: Path, content: dict[str, Any]) -> None:
    (root / ".qwen").mkdir(exist_ok=True)
    (root / ".qwen" / "settings.json").write_text(json.dumps(content))


def test_the_version_is_told_and_a_preflight_starts_no_process(tmp_path: Path) -> None:
    """E2, E3."""
    assert checked(tmp_path, {})["version"].message == "Qwen Code 0.24.4."
    assert "version_unknown" in checked(tmp_path, {}, script="exit 1")
    found = checked(tmp_path, {}, "preflight", f"touch {tmp_path}/started")
    assert "version" not in found
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("env", "config", "code", "level"),
    [
        ({}, {}, "credential_missing", "error"),
        ({"OPENAI_API_KEY": "k"}, {}, "credential_api_key", "info"),
        ({}, {"authType": "openai"}, "credential_missing", "warn"),
        ({}, {"authType": "qwen-oauth"}, "credential_missing", "warn"),
        ({}, {"authType": "vertex-ai"}, "credential_api_key", "info"),
    ],
)
def test_the_credential_is_checked(
    tmp_path: Path, env: dict[str, str], config: dict[str, Any], code: str, level: str
) -> None:
    """E1: error means unusable."""
    assert checked(tmp_path, env, **config)[code].level == level


def test_keys_and_logins_of_the_user_are_found(tmp_path: Path) -> None:
    user_settings(tmp_path, {"security": {"auth": {"selectedType": "openai", "apiKey": "k"}}})
    assert checked(tmp_path, {})["credential_settings"].level == "info"
    user_settings(tmp_path, {"security": {"auth": {"selectedType": "qwen-oauth"}}})
    (tmp_path / ".qwen" / "oauth_creds.json").write_text("{}")
    assert checked(tmp_path, {})["credential_login"].level == "info"


def test_settings_that_hold_nonsense_never_raise(tmp_path: Path) -> None:
    """E2: expected findings never raise."""
    user_settings(tmp_path, {"security": ["x"]})
    assert "credential_missing" in checked(tmp_path, {})
    (tmp_path / ".qwen" / "settings.json").write_bytes(b"\xff{")
    assert "credential_missing" in checked(tmp_path, {})


def test_a_search_program_that_cannot_run_is_found(tmp_path: Path) -> None:
    rg = tmp_path / "bin" / "vendor" / "ripgrep" / "x64-linux" / "rg"
    rg.parent.mkdir(parents=True)
    rg.write_text("")
    assert checked(tmp_path, {})["search_slow"].hint == f"Run chmod +x {rg}"
    rg.chmod(0o755)
    assert "search_slow" not in checked(tmp_path, {})


def test_settings_of_the_repository_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "ws" / ".qwen").mkdir(parents=True)
    (tmp_path / "ws" / ".qwen" / "settings.json").write_text("{}")
    assert checked(tmp_path, {})["workspace_settings"].level == "warn"


def test_the_live_test_makes_one_call_by_the_same_path(tmp_path: Path) -> None:
    """E2: live is asked for explicitly."""
    folder = create_adapter().folder / "fixtures"
    good = f"cat > {tmp_path}/asked; cat {folder}/plain/stdout.txt"
    found = checked(tmp_path, {"OPENAI_API_KEY": "k"}, "live", good)
    assert found["live_ok"].detail == "The answer is 42."
    assert "connection test" in (tmp_path / "asked").read_text()
    bad = f"cat {folder}/error_401/stdout.txt; exit 1"
    assert checked(tmp_path, {"OPENAI_API_KEY": "k"}, "live", bad)["live_auth"].level == "error"
