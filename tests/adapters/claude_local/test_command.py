"""The command line of Claude Code: what is asked for, and nothing that leaks or lingers."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.claude_local import create_adapter
from binderclip.adapters.claude_local.config import ClaudeConfig
from binderclip.adapters.claude_local.execute import network_settings
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession
from binderclip.sdk.config import read_config

SESSION = "7386e528-65b7-4223-bb31-adc579ce263c"
NESTING = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "NODE_OPTIONS")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory with a `claude` on its PATH."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    for name in ("cwd", "scratch"):
        (tmp_path / name).mkdir()
    return tmp_path


def plan(
    machine: Path,
    config: dict[str, Any] | None = None,
    *,
    env: dict[str, str] | None = None,
    session: dict[str, Any] | None = None,
    skills: tuple[Path, ...] = (),
) -> Plan:
    request = ExecutionRequest(
        run_id="run",
        agent=AgentRef(id="a", company_id="c", name="A", adapter_type="claude_local"),
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(machine / "cwd"), **(config or {})},
        context={"promptText": "-p is not a flag here"},
    )
    host = Host(
        env={"PATH": str(machine / "bin"), "HOME": "/home/me", **(env or {})},
        scratch=machine / "scratch",
        skills=skills,
    )
    return create_adapter().plan(request, host)


def test_the_prompt_travels_on_stdin_and_output_is_structured(machine: Path) -> None:
    """A10: never in argv."""
    made = plan(machine)
    assert made.argv[1:] == ("-p", "--output-format", "stream-json", "--verbose")
    assert made.stdin == b"-p is not a flag here"
    assert (made.capture.stdout, made.capture.stderr) == ("file", "pipe")


def test_every_setting_becomes_its_flag(machine: Path) -> None:
    """A3, D7: one name in the config, the CLI's own word on the command line."""
    config = {
        "model": "sonnet",
        "fallbackModel": "opus",
        "effort": "minimal",
        "permissionMode": "acceptEdits",
        "allowedTools": ["Read", "Bash(git log *)"],
        "disallowedTools": ["WebSearch"],
        "maxTurns": 7,
        "maxBudgetUsd": 1.5,
        "partialMessages": True,
        "instructionsFilePath": "/srv/AGENTS.md",
        "extraArgs": ["--debug"],
    }
    assert plan(machine, config).argv[5:] == (
        *("--model", "sonnet", "--fallback-model", "opus", "--effort", "low"),
        *("--permission-mode", "acceptEdits"),
        *("--allowedTools", "Read,Bash(git log *)", "--disallowedTools", "WebSearch"),
        *("--max-turns", "7", "--max-budget-usd", "1.5", "--include-partial-messages"),
        *("--append-system-prompt-file", "/srv/AGENTS.md", "--debug"),
    )


def test_skipping_permissions_is_off_unless_asked_for(machine: Path) -> None:
    """A12: dangerous flags default off."""
    flag = "--dangerously-skip-permissions"
    assert flag not in plan(machine).argv
    assert flag in plan(machine, {"dangerouslySkipPermissions": True}).argv


def test_a_session_is_resumed_by_its_id(machine: Path) -> None:
    """S1."""
    argv = plan(machine, session={"sessionId": SESSION, "cwd": "/x"}).argv
    assert argv[argv.index("--resume") + 1] == SESSION


def test_the_environment_is_quiet_and_free_of_an_outer_session(machine: Path) -> None:
    """H5: a run inside another agent's session does not notice it."""
    outer = dict.fromkeys(NESTING, "outer")
    made = plan(machine, env={**outer, "ANTHROPIC_API_KEY": "sk-0123456789"})
    assert not set(NESTING) & set(made.env)
    assert made.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert made.env["DISABLE_AUTOUPDATER"] == "1"
    assert made.env["ANTHROPIC_API_KEY"] == "sk-0123456789"
    assert "sk-0123456789" in made.secrets
    assert made.meta.env["ANTHROPIC_API_KEY"] == "***"


def test_what_the_config_says_about_telemetry_stays(machine: Path) -> None:
    made = plan(machine, {"env": {"DISABLE_TELEMETRY": "0"}})
    assert made.env["DISABLE_TELEMETRY"] == "0"


def test_mcp_servers_are_given_in_a_private_file(machine: Path) -> None:
    """D8: their settings may hold what others must not read."""
    servers = {"notes": {"command": "notes-mcp", "env": {"TOKEN": "${TOKEN}"}}}
    argv = plan(machine, {"mcpServers": servers}).argv
    written = Path(argv[argv.index("--mcp-config") + 1])
    assert json.loads(written.read_text()) == {"mcpServers": servers}
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("config", "hosts"),
    [
        ({"network": "none", "allowedHosts": ["ignored.example"]}, []),
        ({"network": "allowlist", "allowedHosts": ["a.example"]}, ["a.example"]),
    ],
)
def test_a_limited_network_uses_the_runtimes_sandbox_or_nothing(
    machine: Path, config: dict[str, Any], hosts: list[str]
) -> None:
    """A13: it refuses to start rather than run without the limit."""
    argv = plan(machine, config).argv
    settings = json.loads(Path(argv[argv.index("--settings") + 1]).read_text())
    sandbox = settings["sandbox"]
    assert sandbox["network"] == {"allowedDomains": hosts, "strictAllowlist": True}
    assert (sandbox["enabled"], sandbox["failIfUnavailable"]) == (True, True)
    assert sandbox["allowUnsandboxedCommands"] is False
    assert settings["permissions"]["deny"] == ["WebFetch", "WebSearch"]


def test_the_api_is_always_on_the_allow_list() -> None:
    """A13: an agent that cannot reach it could not report."""
    config = read_config(ClaudeConfig, {"network": "allowlist", "allowedHosts": ["a.example"]})
    found = network_settings(config, "http://127.0.0.1:3210")["sandbox"]["network"]
    assert found["allowedDomains"] == ["a.example", "127.0.0.1"]


def test_an_open_network_needs_no_settings(machine: Path) -> None:
    assert "--settings" not in plan(machine, {"network": "open"}).argv


def test_skills_are_linked_beside_the_run_and_not_into_the_cwd(machine: Path) -> None:
    """K1: a temporary directory plus a flag."""
    skill = machine / "skills" / "paperclip"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperclip\n---\n")
    argv = plan(machine, skills=(skill,)).argv
    given = Path(argv[argv.index("--add-dir") + 1])
    assert (given / ".claude" / "skills" / "paperclip").resolve() == skill
    assert given.is_relative_to(machine / "scratch")
    assert list((machine / "cwd").iterdir()) == []


def test_a_bypass_is_no_permission_mode(machine: Path) -> None:
    """A12: the dangerous choice has one name only."""
    with pytest.raises(ConfigError) as caught:
        plan(machine, {"permissionMode": "bypassPermissions"})
    assert "permissionMode" in caught.value.fields
