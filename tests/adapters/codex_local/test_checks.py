"""What the environment test says about Codex before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.codex_local import create_adapter
from binderclip.adapters.codex_local.config import CodexConfig
from binderclip.sdk import Check, CheckCall, CheckRequest, Model
from binderclip.sdk.config import read_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    answer(tmp_path, "echo codex-cli 0.166.0")
    (tmp_path / ".codex").mkdir()
    return tmp_path


def answer(home: Path, script: str) -> None:
    program = home / "bin" / "codex"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def found(
    home: Path, env: dict[str, str] | None = None, depth: Any = "quick", **config: Any
) -> dict[str, Check]:
    request = CheckRequest(
        company_id="c", adapter_type="codex_local", config={"cwd": str(home), **config}, depth=depth
    )
    machine = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(home), **(env or {})}
    report = create_adapter().test_environment(request, machine, "now")
    return {check.code: check for check in report.checks}


def call(home: Path, env: dict[str, str] | None = None) -> CheckCall:
    request = CheckRequest(company_id="c", adapter_type="codex_local", config={})
    machine = {"HOME": str(home), "PATH": "/usr/bin:/bin", **(env or {})}
    config = read_config(CodexConfig, {})
    return CheckCall(request, config, home, machine, home / "bin" / "codex")


def test_the_version_is_told(home: Path) -> None:
    """E2."""
    assert found(home)["version"].message == "Codex 0.166.0."


def test_a_launcher_that_does_not_start_is_a_warning(home: Path) -> None:
    answer(home, "exit 127")
    assert "node" in str(found(home)["version_unknown"].hint)


def test_no_process_is_started_before_a_run(home: Path) -> None:
    """E3: the checks that block start nothing."""
    answer(home, f"touch {home}/started")
    assert "version" not in found(home, depth="preflight")
    assert not (home / "started").exists()


@pytest.mark.parametrize("name", ["CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"])
def test_a_key_is_a_warning_and_no_error(home: Path, name: str) -> None:
    """E3: API-key auth instead of a subscription."""
    check = found(home, {name: "sk-0123456789"})["auth_api_key"]
    assert check.level == "warn"
    assert name in check.message
    assert "0123456789" not in f"{check.message}{check.hint}"


def test_a_login_is_told_from_a_stored_key(home: Path) -> None:
    login = home / ".codex" / "auth.json"
    login.write_text(json.dumps({"OPENAI_API_KEY": None, "tokens": {"id_token": "x"}}))
    assert found(home, {"OPENAI_API_KEY": "sk-1"})["auth_subscription"].level == "info"
    login.write_text(json.dumps({"OPENAI_API_KEY": "sk-stored"}))
    check = found(home)["auth_api_key"]
    assert (check.level, "sk-stored" in check.message) == ("warn", False)


def test_neither_login_nor_key_is_a_warning(home: Path) -> None:
    assert found(home)["auth_missing"].level == "warn"


def test_the_key_of_ones_own_provider_must_be_in_env(home: Path) -> None:
    """H5: only well-known variables are passed on."""
    text = 'model_provider = "mine"\n[model_providers.mine]\nenv_key = "MY_KEY"\n'
    (home / ".codex" / "config.toml").write_text(text)
    assert "MY_KEY" in found(home, {"MY_KEY": "x"})["auth_missing"].message
    request = CheckRequest(
        company_id="c", adapter_type="codex_local", config={"env": {"MY_KEY": "x"}}
    )
    machine = {"PATH": str(home / "bin"), "HOME": str(home)}
    report = create_adapter().test_environment(request, machine, "now")
    assert "auth_provider" in {check.code for check in report.checks}


def test_a_broken_config_file_is_a_warning(home: Path) -> None:
    (home / ".codex" / "config.toml").write_text("model = \n")
    assert found(home)["codex_config_unreadable"].level == "warn"


def test_the_network_says_whether_it_is_enforced(home: Path) -> None:
    """A13."""
    assert found(home)["network_unset"].level == "info"
    assert found(home, network="open")["network_open"].level == "warn"
    assert found(home, network="none")["network_enforced"].level == "info"
    assert found(home, network="allowlist")["network_narrowed"].level == "warn"
    open_doors = found(home, network="none", dangerouslyBypassApprovalsAndSandbox=True)
    assert open_doors["network_not_enforced"].level == "error"
    assert open_doors["dangerous_flag"].level == "warn"


def test_a_writable_root_must_exist(home: Path) -> None:
    """E1: Codex's sandbox would fail every command."""
    roots = [str(home), str(home / "missing")]
    assert "missing" in found(home, writableRoots=roots)["writable_root_missing"].message
    assert "writable_root_missing" not in found(home, writableRoots=[str(home)])


def test_missing_instructions_are_an_error(home: Path) -> None:
    check = found(home, instructionsFilePath=str(home / "AGENTS.md"))["instructions_missing"]
    assert check.level == "error"


def test_a_live_test_reports_what_the_real_call_said(home: Path) -> None:
    """E2: only when asked for."""
    case = create_adapter().folder / "fixtures" / "error_401" / "stdout.txt"
    answer(home, f'[ "$1" = --version ] && exec echo 0.166\ncat {case}\nexit 1')
    assert not any(code.startswith("live") for code in found(home))
    assert "401" in found(home, depth="live")["live_auth"].message


def test_models_come_from_the_catalogue_of_the_cli(home: Path) -> None:
    listed = [
        {"slug": "gpt-5.5", "display_name": "GPT-5.5", "visibility": "list"},
        {"slug": "secret", "display_name": "Secret", "visibility": "hide"},
        7,
    ]
    (home / "models.json").write_text(json.dumps({"models": listed}))
    answer(home, f"cat {home}/models.json")
    adapter = create_adapter()
    assert adapter.list_models(call(home)) == [Model(id="gpt-5.5", label="GPT-5.5")]
    answer(home, "echo no json; exit 1")
    assert adapter.list_models(call(home)) == []


def test_the_configured_model_is_known(home: Path) -> None:
    assert create_adapter().detect_model(call(home)) is None
    (home / ".codex" / "config.toml").write_text('model = "gpt-5.5"\n')
    assert create_adapter().detect_model(call(home)) == "gpt-5.5"


def test_skills_in_codex_home_are_listed(home: Path) -> None:
    """K1, C1."""
    for name in ("mine", ".system"):
        (home / ".codex" / "skills" / name).mkdir(parents=True)
        (home / ".codex" / "skills" / name / "SKILL.md").write_text("---\n---\n")
    adapter = create_adapter()
    assert list(adapter.list_skills(call(home))) == ["mine"]
    assert adapter.capabilities.supports_skills
