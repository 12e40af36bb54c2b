"""The environment test of Pi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.pi_local import create_adapter
from binderclip.sdk import Check, CheckCall, CheckRequest
from binderclip.sdk.config import read_config

NOW = "2026-01-01T00:00:00.000Z"
TABLE = "echo 'provider  model  context'; echo 'anthropic  claude-opus-5  1M'"


def stand_in(root: Path, script: str) -> Path:
    program = root / "bin" / "pi"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def checked(
    root: Path,
    env: dict[str, str] | None = None,
    depth: Any = "quick",
    script: str = "echo 0.87.1",
    **config: Any,
) -> dict[str, Check]:
    program = stand_in(root, script)
    cwd = root / "ws"
    cwd.mkdir(exist_ok=True)
    request = CheckRequest(
        company_id="c",
        adapter_type="pi_local",
        config={"cwd": str(cwd), **config},
        depth=depth,
    )
    host = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(root), **(env or {})}
    report = create_adapter().test_environment(request, host, NOW)
    return {check.code: check for check in report.checks}


def a_call(root: Path, script: str) -> CheckCall:
    adapter = create_adapter()
    request = CheckRequest(company_id="c", adapter_type="pi_local", config={})
    env = {"PATH": "/usr/bin:/bin", "HOME": str(root)}
    config = read_config(adapter.Config, {})
    return CheckCall(request, config, root, env, stand_in(root, script))


def write(root: Path, name: str, content: dict[str, Any]) -> None:
    folder = root / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))


def test_the_version_is_told(tmp_path: Path) -> None:
    """E2: the command and its version."""
    assert checked(tmp_path)["version"].message == "Pi 0.87.1."
    assert checked(tmp_path, script="exit 1")["version_unknown"].level == "warn"


def test_a_preflight_starts_no_process(tmp_path: Path) -> None:
    """E3: before a spawn only those checks run that start nothing."""
    found = checked(tmp_path, depth="preflight", script=f"touch {tmp_path}/started")
    assert "version" not in found
    assert not (tmp_path / "started").exists()


def test_a_stored_login_a_stored_key_and_a_variable_are_told_apart(tmp_path: Path) -> None:
    """E2: auth hints."""
    write(tmp_path, "auth.json", {"anthropic": {"type": "oauth"}, "groq": {"type": "api_key"}})
    assert "credential_login" in checked(tmp_path, model="anthropic/claude-sonnet-4-5")
    assert "credential_stored_key" in checked(tmp_path, provider="groq", model="x")
    found = checked(tmp_path, {"OPENAI_API_KEY": "k" * 20}, model="openai/x")
    assert found["credential_api_key"].message == "Uses OPENAI_API_KEY for openai."


def test_a_missing_credential_is_a_warning_that_names_the_variable(tmp_path: Path) -> None:
    """E3: keys can stand in models.json, so nothing is certain enough to block."""
    found = checked(tmp_path, model="anthropic/claude-sonnet-4-5")["credential_missing"]
    assert found.level == "warn"
    assert "ANTHROPIC_API_KEY" in str(found.hint)
    write(tmp_path, "settings.json", {"defaultProvider": "mistral"})
    assert "MISTRAL_API_KEY" in str(checked(tmp_path)["credential_missing"].hint)


def test_a_provider_with_a_key_in_its_file_lacks_nothing(tmp_path: Path) -> None:
    write(tmp_path, "models.json", {"providers": {"local": {"apiKey": "none"}}})
    assert "credential_configured" in checked(tmp_path, provider="local", model="m")


def test_pi_says_that_it_never_asks(tmp_path: Path) -> None:
    """A12: what the agent may do is told, and how to narrow it."""
    assert "never asks" in checked(tmp_path)["permissions"].message
    assert "reads" in checked(tmp_path, permissionMode="read_only")["permissions"].message


def test_a_trusted_directory_with_settings_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "ws" / ".pi").mkdir(parents=True)
    assert "workspace_settings" not in checked(tmp_path)
    assert checked(tmp_path, trustWorkspace=True)["workspace_settings"].level == "warn"


def test_a_live_test_goes_the_way_of_a_run(tmp_path: Path) -> None:
    """E2: live makes a tiny real call."""
    line = '{"type":"agent_settled"}'
    script = f"case $1 in --mode) cat >/dev/null; echo '{line}';; *) echo 0.87.1;; esac"
    assert checked(tmp_path, depth="live", script=script)["live_ok"].level == "info"
    assert checked(tmp_path, depth="live", script="exit 1")["live_process_failed"].level == "error"


@pytest.mark.parametrize(
    ("script", "names"), [(TABLE, ["anthropic/claude-opus-5"]), ("exit 1", [])]
)
def test_models_are_those_that_the_cli_lists(tmp_path: Path, script: str, names: list[str]) -> None:
    models = create_adapter().list_models(a_call(tmp_path, script))
    assert [model.id for model in models] == names


def test_the_model_of_the_users_settings_is_found(tmp_path: Path) -> None:
    assert create_adapter().detect_model(a_call(tmp_path, "")) is None
    write(tmp_path, "settings.json", {"defaultProvider": "openai", "defaultModel": "gpt-5.5"})
    assert create_adapter().detect_model(a_call(tmp_path, "")) == "openai/gpt-5.5"
