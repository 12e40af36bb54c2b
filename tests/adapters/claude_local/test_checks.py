"""What the environment test says about Claude Code before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.claude_local import checks, create_adapter
from binderclip.adapters.claude_local.config import ClaudeConfig
from binderclip.sdk import Check, CheckCall, CheckRequest
from binderclip.sdk.config import read_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    program.chmod(0o755)
    return tmp_path


def found(
    home: Path, env: dict[str, str] | None = None, depth: Any = "quick", **config: Any
) -> dict[str, Check]:
    request = CheckRequest(
        company_id="c",
        adapter_type="claude_local",
        config={"cwd": str(home), **config},
        depth=depth,
    )
    machine = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(home), **(env or {})}
    report = create_adapter().test_environment(request, machine, "now")
    return {check.code: check for check in report.checks}


def test_the_version_is_told(home: Path) -> None:
    """E2."""
    assert found(home)["version"].message == "Claude Code 2.1.325."


def test_a_command_that_does_not_start_is_a_warning(home: Path) -> None:
    (home / "bin" / "claude").write_text("#!/bin/sh\nexit 1\n")
    assert found(home)["version_unknown"].level == "warn"


def test_no_process_is_started_before_a_run(home: Path) -> None:
    """E3: the checks that block start nothing."""
    (home / "bin" / "claude").write_text(f"#!/bin/sh\ntouch {home}/started\n")
    assert "version" not in found(home, depth="preflight")
    assert not (home / "started").exists()


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_a_key_is_a_warning_and_no_error(home: Path, name: str) -> None:
    """E3: API-key auth instead of a subscription."""
    (home / ".claude").mkdir()
    (home / ".claude" / ".credentials.json").write_text("{}")
    check = found(home, {name: "sk-ant-0123456789"})["auth_api_key"]
    assert check.level == "warn"
    assert name in check.message
    assert "0123456789" not in f"{check.message}{check.hint}"


def test_a_login_is_found_where_the_config_home_is(home: Path) -> None:
    own = home / "elsewhere"
    own.mkdir()
    (own / ".credentials.json").write_text("{}")
    assert "auth_missing" in found(home)
    assert "auth_subscription" in found(home, {"CLAUDE_CONFIG_DIR": str(own)})


def test_an_account_without_a_credentials_file_counts(home: Path) -> None:
    (home / ".claude.json").write_text(json.dumps({"oauthAccount": {"emailAddress": "a@b"}}))
    assert found(home)["auth_subscription"].level == "info"


def test_a_damaged_settings_file_is_no_login(home: Path) -> None:
    (home / ".claude.json").write_text("{oauthAccount")
    assert found(home)["auth_missing"].level == "warn"


def test_a_token_and_a_cloud_login_are_named(home: Path) -> None:
    assert "auth_subscription" in found(home, {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat-1"})
    assert "auth_cloud" in found(home, {"CLAUDE_CODE_USE_BEDROCK": "1"})


def test_bypass_as_root_is_an_error_with_a_way_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A12, E3: the CLI would refuse, so the run does not start."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    check = found(home, dangerouslySkipPermissions=True)["bypass_as_root"]
    assert check.level == "error"
    assert "IS_SANDBOX=1" in str(check.hint)
    sandboxed = found(home, dangerouslySkipPermissions=True, env={"IS_SANDBOX": "1"})
    assert "bypass_as_root" not in sandboxed
    assert sandboxed["dangerous_flag"].level == "warn"


def test_bypass_as_another_user_is_only_a_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "bypass_as_root" not in found(home, dangerouslySkipPermissions=True)


def test_a_limited_network_says_whether_it_is_enforced(home: Path) -> None:
    """A13."""
    assert found(home)["network_unset"].level == "info"
    assert found(home, network="open")["network_open"].level == "warn"
    alone = {"PATH": str(home / "bin")}
    assert found(home, alone, network="none")["network_not_enforced"].level == "error"
    for name in checks.SANDBOX_PROGRAMS:
        (home / "bin" / name).symlink_to("/bin/true")
    assert found(home, alone, network="none")["network_enforced"].level == "info"


def test_missing_instructions_are_an_error(home: Path) -> None:
    check = found(home, instructionsFilePath=str(home / "AGENTS.md"))["instructions_missing"]
    assert check.level == "error"
    (home / "AGENTS.md").write_text("Be brief.")
    assert "instructions_missing" not in found(home, instructionsFilePath=str(home / "AGENTS.md"))


def test_a_live_test_reports_what_the_real_call_said(home: Path) -> None:
    """E2: only when asked for."""
    case = create_adapter().folder / "fixtures" / "error_401" / "stdout.txt"
    script = f'#!/bin/sh\n[ "$1" = --version ] && exec echo 2.1\ncat {case}\nexit 1\n'
    (home / "bin" / "claude").write_text(script)
    assert not any(code.startswith("live") for code in found(home))
    assert "Invalid API key" in found(home, depth="live")["live_auth"].message


def test_skills_of_user_and_directory_are_listed(home: Path) -> None:
    """K1, C1."""
    for place in (".claude/skills/mine", "work/.claude/skills/ours"):
        (home / place).mkdir(parents=True)
        (home / place / "SKILL.md").write_text("---\n---\n")
    request = CheckRequest(company_id="c", adapter_type="claude_local", config={})
    call = CheckCall(
        request, read_config(ClaudeConfig, {}), home / "work", {"HOME": str(home)}, None
    )
    adapter = create_adapter()
    assert list(adapter.list_skills(call)) == ["mine", "ours"]
    assert adapter.capabilities.supports_skills
