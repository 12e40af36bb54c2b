"""The command line of Codex: settings as overrides, prompt on stdin, no secret in argv."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.codex_local import create_adapter
from binderclip.adapters.codex_local.overrides import toml
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

THREAD = "01a1e090-aa0d-74b0-99cf-5f96b4da1703"
NESTING = (
    *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID"),
    *("CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_MANAGED_BY_NPM", "NODE_OPTIONS"),
)
QUIET = ["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory with a `codex` on its PATH and an empty home."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    for name in ("cwd", "scratch", "home"):
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
        agent=AgentRef(id="a", company_id="c", name="A", adapter_type="codex_local"),
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(machine / "cwd"), **(config or {})},
        context={"promptText": "--json is not a flag here"},
    )
    host = Host(
        env={"PATH": str(machine / "bin"), "HOME": str(machine / "home"), **(env or {})},
        scratch=machine / "scratch",
        skills=skills,
    )
    return create_adapter().plan(request, host)


def settings(made: Plan) -> dict[str, Any]:
    """What Codex makes of the `-c` words."""
    words = [made.argv[at + 1] for at, word in enumerate(made.argv) if word == "-c"]
    return tomllib.loads("\n".join(words))


def test_the_prompt_travels_on_stdin(machine: Path) -> None:
    """A10: never in argv."""
    made = plan(machine)
    assert list(made.argv[1:]) == ["exec", "--json", "--skip-git-repo-check", *QUIET, "-"]
    assert made.stdin == b"--json is not a flag here"
    assert (made.capture.stdout, made.capture.stderr) == ("file", "pipe")


def test_a_thread_is_resumed_by_its_id(machine: Path) -> None:
    """S1: `resume` is a command of its own, its id and `-` come last."""
    made = plan(machine, {"sandbox": "workspace-write"}, session={"sessionId": THREAD})
    assert made.argv[1:4] == ("exec", "resume", "--json")
    assert made.argv[-2:] == (THREAD, "-")
    assert settings(made)["sandbox_mode"] == "workspace-write"


@pytest.mark.parametrize("name", ["my-thread", "latest", "--last", THREAD[:-1], THREAD + "0"])
def test_a_word_that_is_no_thread_id_is_not_resumed(machine: Path, name: str) -> None:
    """S4: an unknown name would silently start another thread."""
    assert "resume" not in plan(machine, session={"sessionId": name}).argv


def test_every_setting_reaches_codex(machine: Path) -> None:
    """D7: one name in the config, the CLI's own word on the command line."""
    made = plan(
        machine,
        {
            "model": "gpt-5.5",
            "effort": "minimal",
            "sandbox": "workspace-write",
            "writableRoots": ["/srv/a b", '/srv/"q"'],
            "network": "open",
            "extraArgs": ["--ephemeral"],
        },
    )
    assert made.argv[4:6] == ("--model", "gpt-5.5")
    assert made.argv[-2:] == ("--ephemeral", "-")
    found = settings(made)
    assert found["model_reasoning_effort"] == "low"
    assert found["sandbox_mode"] == "workspace-write"
    assert found["sandbox_workspace_write"] == {
        "writable_roots": ["/srv/a b", '/srv/"q"'],
        "network_access": True,
    }


@pytest.mark.parametrize("network", ["none", "allowlist"])
def test_a_limited_network_closes_commands_and_search(machine: Path, network: str) -> None:
    """A13: what cannot be told apart is narrowed, never widened."""
    found = settings(plan(machine, {"network": network, "allowedHosts": ["a.example"]}))
    assert found["sandbox_workspace_write"]["network_access"] is False
    assert found["web_search"] == "disabled"


def test_the_bypass_is_off_unless_asked_for(machine: Path) -> None:
    """A12: dangerous flags default off."""
    flag = "--dangerously-bypass-approvals-and-sandbox"
    assert flag not in plan(machine).argv
    made = plan(
        machine, {"dangerouslyBypassApprovalsAndSandbox": True, "sandbox": "workspace-write"}
    )
    assert flag in made.argv
    assert "sandbox_mode" not in settings(made)


def test_full_access_is_no_sandbox_mode(machine: Path) -> None:
    """A12: the dangerous choice has one name only."""
    with pytest.raises(ConfigError) as caught:
        plan(machine, {"sandbox": "danger-full-access"})
    assert "sandbox" in caught.value.fields


def test_an_outer_session_is_not_noticed(machine: Path) -> None:
    """H5."""
    made = plan(machine, env=dict.fromkeys(NESTING, "outer"))
    assert not set(NESTING) & set(made.env)


def test_a_key_is_handed_over_by_the_name_that_codex_reads(machine: Path) -> None:
    made = plan(machine, env={"OPENAI_API_KEY": "sk-0123456789"})
    assert made.env["CODEX_API_KEY"] == "sk-0123456789"
    assert "sk-0123456789" in made.secrets
    assert made.meta.env["CODEX_API_KEY"] == "***"


def test_a_login_or_a_key_of_its_own_wins(machine: Path) -> None:
    both = {"OPENAI_API_KEY": "sk-0123456789", "CODEX_API_KEY": "sk-9876543210"}
    assert plan(machine, env=both).env["CODEX_API_KEY"] == "sk-9876543210"
    (machine / "home" / ".codex").mkdir()
    (machine / "home" / ".codex" / "auth.json").write_text("{}")
    assert "CODEX_API_KEY" not in plan(machine, env={"OPENAI_API_KEY": "sk-0123456789"}).env


def test_mcp_servers_are_overrides(machine: Path) -> None:
    servers = {
        "my notes": {"command": "notes", "args": ["-x", 'a "b"'], "env": {"MODE": "fast"}},
        "web": {"url": "http://127.0.0.1:9/mcp", "bearer_token_env_var": "WEB_TOKEN", "n": 1.5},
    }
    assert settings(plan(machine, {"mcpServers": servers}))["mcp_servers"] == servers


def test_a_secret_of_an_mcp_server_is_refused_on_the_command_line(machine: Path) -> None:
    """D8: secrets never in argv."""
    servers = {"notes": {"command": "notes", "env": {"NOTES_TOKEN": "t"}}}
    with pytest.raises(ConfigError) as caught:
        plan(machine, {"mcpServers": servers})
    assert "mcpServers.notes.env.NOTES_TOKEN" in caught.value.fields
    assert "env_vars" in str(caught.value.hint)


def test_standing_instructions_go_before_the_prompt(machine: Path) -> None:
    path = machine / "AGENTS.md"
    path.write_text("Be brief.\n")
    made = plan(machine, {"instructionsFilePath": str(path)})
    assert made.stdin == b"Be brief.\n\n--json is not a flag here"
    assert made.meta.prompt == "--json is not a flag here"


def test_skills_are_linked_into_codex_home_and_never_over_others(machine: Path) -> None:
    """K1: the runtime's own global directory, existing entries stay."""
    skills = []
    for name in ("paperclip", "taken"):
        skill = machine / "skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\n---\n")
        skills.append(skill)
    home = machine / "elsewhere"
    (home / "skills" / "taken").mkdir(parents=True)
    plan(machine, env={"CODEX_HOME": str(home)}, skills=tuple(skills))
    assert (home / "skills" / "paperclip").resolve() == skills[0]
    assert not (home / "skills" / "taken").is_symlink()
    assert list((machine / "cwd").iterdir()) == []


@pytest.mark.parametrize(
    "value",
    [True, 7, 1.5, "", 'q"\\\n\t\x7f\x01\u2028é', [], ["a", [1]], {}, {"a b": {"c.d": [True]}}],
)
def test_values_survive_toml(value: object) -> None:
    assert tomllib.loads(f"x={toml(value)}")["x"] == value
