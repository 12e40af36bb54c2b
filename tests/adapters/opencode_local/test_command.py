"""OpenCode's command line, environment and settings of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.opencode_local import create_adapter
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

NESTING = {
    "OPENCODE": "1",
    "OPENCODE_PID": "7",
    "OPENCODE_SERVER_PASSWORD": "p" * 12,
    "NODE_OPTIONS": "--inspect",
    "CLAUDECODE": "1",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "opencode"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def planned(
    program: Path,
    session: dict[str, Any] | None = None,
    skills: tuple[Path, ...] = (),
    env: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
    **config: Any,
) -> Plan:
    root = program.parent.parent
    (root / "ws").mkdir(exist_ok=True)
    (root / "scratch").mkdir(exist_ok=True)
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="opencode_local")
    request = ExecutionRequest(
        run_id="r",
        agent=agent,
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(root / "ws"), "env": own or {}, **config},
        context={"promptText": "say hello"},
    )
    host = {"PATH": str(program.parent), "HOME": str(root), **NESTING, **(env or {})}
    return create_adapter().plan(request, Host(host, root / "scratch", skills=skills))


def content(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan.env["OPENCODE_CONFIG_CONTENT"])
    return found


def a_skill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: Load it.\n---\n")
    return folder


def test_the_prompt_travels_on_stdin(program: Path) -> None:
    """A10: not in argv; the empty title spares OpenCode's request for one."""
    plan = planned(program)
    assert plan.stdin == b"say hello"
    assert plan.argv[1:] == ("run", "--format", "json", "--thinking", "--title", "")


def test_every_choice_becomes_its_flag(program: Path) -> None:
    """A12: dangerous flags only when asked for."""
    plan = planned(
        program,
        session={"sessionId": "ses_e1f608f97ffeTV5L5kCVJeGlT4"},
        model="anthropic/claude-sonnet-4-5",
        effort="high",
        agent="plan",
        dangerouslySkipPermissions=True,
        extraArgs=["--pure"],
    )
    assert " ".join(plan.argv[5:]) == (
        "--model anthropic/claude-sonnet-4-5 --variant high --agent plan --auto"
        " --session ses_e1f608f97ffeTV5L5kCVJeGlT4 --pure"
    )


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "/x", "a b/c"])
def test_a_model_without_its_provider_is_refused_before_the_run(program: Path, model: str) -> None:
    """F1: OpenCode itself would only say that its server failed."""
    with pytest.raises(ConfigError, match="model"):
        planned(program, model=model)


def test_the_environment_is_clean_and_quiet(program: Path) -> None:
    """H5: no nesting variables; keys pass and are masked; no updates, no sharing."""
    plan = planned(program, env={"ANTHROPIC_API_KEY": "k" * 20})
    assert not NESTING.keys() & plan.env.keys()
    assert plan.env["OPENCODE_DISABLE_AUTOUPDATE"] == "1"
    assert plan.env["OPENCODE_DISABLE_SHARE"] == "1"
    assert plan.meta.env["ANTHROPIC_API_KEY"] == "***"
    assert "k" * 20 in plan.secrets


def test_the_agents_own_environment_wins_over_the_quiet_defaults(program: Path) -> None:
    plan = planned(program, own={"OPENCODE_DISABLE_SHARE": "0"})
    assert plan.env["OPENCODE_DISABLE_SHARE"] == "0"


def test_settings_of_the_run_are_added_to_those_of_the_agent(program: Path) -> None:
    own = {"theme": "x", "instructions": ["a.md"], "agent": {"build": {"model": "p/m"}}}
    rules = program.parent.parent / "AGENTS.md"
    rules.write_text("Be brief.\n")
    plan = planned(
        program,
        own={"OPENCODE_CONFIG_CONTENT": json.dumps(own)},
        maxTurns=5,
        instructionsFilePath=str(rules),
    )
    assert content(plan) == {
        "theme": "x",
        "instructions": ["a.md", str(rules)],
        "agent": {"build": {"model": "p/m", "steps": 5}},
        "experimental": {"continue_loop_on_deny": True},
    }


def test_settings_of_the_agent_that_cannot_be_read_are_named(program: Path) -> None:
    with pytest.raises(ConfigError, match="OPENCODE_CONFIG_CONTENT"):
        planned(program, own={"OPENCODE_CONFIG_CONTENT": "{ // comment\n}"})


def test_missing_instructions_are_an_error_that_names_the_field(program: Path) -> None:
    with pytest.raises(ConfigError, match="instructionsFilePath"):
        planned(program, instructionsFilePath="/nowhere/AGENTS.md")


def test_a_denial_ends_the_run_only_where_that_is_wanted(program: Path) -> None:
    plan = planned(program, continueAfterDenial=False)
    assert "OPENCODE_CONFIG_CONTENT" not in plan.env


def test_read_only_denies_edits_and_commands_and_keeps_other_rules(program: Path) -> None:
    given = {"OPENCODE_PERMISSION": json.dumps({"webfetch": "deny", "edit": "allow"})}
    plan = planned(program, env=given, permissionMode="read_only")
    rules = json.loads(plan.env["OPENCODE_PERMISSION"])
    assert rules == {"webfetch": "deny", "edit": "deny", "bash": "deny"}


def test_skills_lie_in_the_runs_own_directory_beside_the_users_paths(
    program: Path, tmp_path: Path
) -> None:
    """K1: a temporary directory and a setting; the cwd and the home stay as they are."""
    home = tmp_path / ".config" / "opencode"
    home.mkdir(parents=True)
    (home / "opencode.json").write_text('{"skills": {"paths": ["/srv/skills"]}}')
    plan = planned(program, skills=(a_skill(tmp_path / "source" / "paperclip"),))
    folder = tmp_path / "scratch" / "skills"
    assert content(plan)["skills"] == {"paths": ["/srv/skills", str(folder)]}
    assert (folder / "paperclip" / "SKILL.md").is_file()
    assert not list((tmp_path / "ws").iterdir())
    assert [path.name for path in home.iterdir()] == ["opencode.json"]
