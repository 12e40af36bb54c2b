"""The environment test of Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.gemini_local import create_adapter
from binderclip.sdk import Check, CheckRequest

NOW = "2026-01-01T00:00:00.000Z"


def checked(
    root: Path,
    env: dict[str, str],
    depth: Any = "quick",
    script: str = "echo 0.61.0",
    **config: Any,
) -> dict[str, Check]:
    program = root / "bin" / "gemini"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    cwd = root / "ws"
    cwd.mkdir(exist_ok=True)
    request = CheckRequest(
        company_id="c",
        adapter_type="gemini_local",
        config={"cwd": str(cwd), **config},
        depth=depth,
    )
    host = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(root), **env}
    report = create_adapter().test_environment(request, host, NOW)
    return {check.code: check for check in report.checks}


def settings(root: Path, content: dict[str, Any]) -> None:
    (root / ".gemini").mkdir(exist_ok=True)
    (root / ".gemini" / "settings.json").write_text(json.dumps(content))


def test_the_version_is_told(tmp_path: Path) -> None:
    """E2: the command and its version."""
    assert checked(tmp_path, {})["version"].message == "Gemini CLI 0.61.0."
    assert "version_unknown" in checked(tmp_path, {}, script="exit 1")


def test_a_preflight_starts_no_process(tmp_path: Path) -> None:
    """E3: before a spawn only those checks run that start nothing."""
    found = checked(tmp_path, {}, "preflight", f"touch {tmp_path}/started")
    assert "version" not in found
    assert not (tmp_path / "started").exists()


def test_no_credential_at_all_is_an_error(tmp_path: Path) -> None:
    """E1: error means unusable; a .env file may still hold a key."""
    assert checked(tmp_path, {})["credential_missing"].level == "error"
    (tmp_path / "ws" / ".env").write_text("GEMINI_API_KEY=x")
    assert checked(tmp_path, {})["credential_missing"].level == "warn"


def test_a_key_is_fine_and_worth_a_warning_beside_a_login(tmp_path: Path) -> None:
    """E3: a key instead of the subscription is a warning."""
    env = {"GEMINI_API_KEY": "k"}
    assert checked(tmp_path, env)["credential_api_key"].level == "info"
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "oauth_creds.json").write_text("{}")
    assert checked(tmp_path, env)["credential_api_key"].level == "warn"


@pytest.mark.parametrize(
    ("chosen", "env", "code", "level"),
    [
        ("oauth-personal", {}, "credential_missing", "warn"),
        ("gemini-api-key", {}, "credential_missing", "warn"),
        ("vertex-ai", {}, "credential_missing", "error"),
        ("vertex-ai", {"GOOGLE_API_KEY": "k"}, "credential_vertex", "info"),
        ("compute-default-credentials", {}, "credential", "info"),
    ],
)
def test_the_chosen_way_of_signing_in_is_checked(
    tmp_path: Path, chosen: str, env: dict[str, str], code: str, level: str
) -> None:
    settings(tmp_path, {"security": {"auth": {"selectedType": chosen}}})
    assert checked(tmp_path, env)[code].level == level


def test_a_base_url_without_a_chosen_way_is_refused_with_the_fix(tmp_path: Path) -> None:
    env = {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1", "GEMINI_API_KEY": "k"}
    found = checked(tmp_path, env)["credential_unusable"]
    assert found.level == "error"
    assert found.hint and "selectedType" in found.hint
    settings(tmp_path, {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    assert "credential_unusable" not in checked(tmp_path, env)


def test_settings_that_hold_nonsense_never_raise(tmp_path: Path) -> None:
    """E2: expected findings never raise."""
    settings(tmp_path, {"security": [], "privacy": "no", "selectedAuthType": 3})
    assert "credential_missing" in checked(tmp_path, {})
    (tmp_path / ".gemini" / "settings.json").write_bytes(b"\xff// comment {")
    assert "credential_missing" in checked(tmp_path, {})


def test_what_has_no_effect_or_is_trusted_is_said(tmp_path: Path) -> None:
    (tmp_path / "ws" / ".gemini").mkdir(parents=True)
    (tmp_path / "ws" / ".gemini" / "settings.json").write_text("{}")
    found = checked(tmp_path, {}, effort="high", dangerouslySkipPermissions=True)
    assert found["effort_ignored"].level == "warn"
    assert found["workspace_settings"].level == "warn"
    assert found["dangerous_flag"].level == "warn"
    untrusting = checked(tmp_path, {}, trustWorkspace=False)
    assert "workspace_settings" not in untrusting
    assert untrusting["workspace_trust"].level == "info"


def test_the_live_test_makes_one_call_by_the_same_path(tmp_path: Path) -> None:
    """E2: live is asked for explicitly."""
    folder = create_adapter().folder / "fixtures"
    good = f"cat > {tmp_path}/asked; cat {folder}/plain/stdout.txt"
    found = checked(tmp_path, {"GEMINI_API_KEY": "k"}, "live", good)
    assert found["live_ok"].detail == "The answer is 42."
    assert "connection test" in (tmp_path / "asked").read_text()
    bad = f"cat {folder}/error_401/stdout.txt; exit 145"
    assert checked(tmp_path, {"GEMINI_API_KEY": "k"}, "live", bad)["live_auth"].level == "error"
