"""Pi's command line and environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.pi_local import create_adapter
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

NESTING = {
    "AI_AGENT": "pi",
    "PI_CODING_AGENT": "true",
    "PI_SESSION_ID": "x",
    "PI_SESSION_FILE": "/x",
    "NODE_OPTIONS": "--inspect",
    "CLAUDECODE": "1",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "pi"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def planned(
    program: Path,
    session: dict[str, Any] | None = None,
    skills: tuple[Path, ...] = (),
    **config: Any,
) -> Plan:
    root = program.parent.parent
    (root / "ws").mkdir(exist_ok=True)
    (root / "scratch").mkdir(exist_ok=True)
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="pi_local")
    request = ExecutionRequest(
        run_id="r",
        agent=agent,
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(root / "ws"), **config},
        context={"promptText": "say hello"},
    )
    env = {"PATH": str(program.parent), "HOME": str(root), "OPENAI_API_KEY": "k" * 20, **NESTING}
    return create_adapter().plan(request, Host(env, root / "scratch", skills=skills))


def test_the_prompt_travels_on_stdin(program: Path) -> None:
    """A10: not in argv."""
    plan = planned(program)
    assert plan.stdin == b"say hello"
    assert plan.argv[1:] == ("--mode", "json", "--print")


def test_every_choice_becomes_its_flag(program: Path, tmp_path: Path) -> None:
    rules = tmp_path / "AGENTS.md"
    rules.write_text("Be brief.\n")
    plan = planned(
        program,
        session={"sessionId": "01a1e099-785f-72cd-984f-86c8f0de4934"},
        provider="anthropic",
        model="claude-sonnet-4-5",
        effort="xhigh",
        permissionMode="read_only",
        trustWorkspace=True,
        instructionsFilePath=str(rules),
        extraArgs=["--no-extensions"],
    )
    assert " ".join(plan.argv[4:]) == (
        "--provider anthropic --model claude-sonnet-4-5 --thinking xhigh --tools read,grep,find,ls"
        f" --approve --append-system-prompt {rules}"
        " --session 01a1e099-785f-72cd-984f-86c8f0de4934 --no-extensions"
    )


def test_the_environment_is_clean_and_quiet(program: Path) -> None:
    """H5: no nesting variables; keys pass and are masked; no telemetry, no version check."""
    plan = planned(program)
    assert not NESTING.keys() & plan.env.keys()
    assert plan.env["PI_TELEMETRY"] == "0"
    assert plan.env["PI_SKIP_VERSION_CHECK"] == "1"
    assert plan.meta.env["OPENAI_API_KEY"] == "***"
    assert "k" * 20 in plan.secrets


def test_the_agents_own_environment_wins_over_the_quiet_defaults(program: Path) -> None:
    assert planned(program, env={"PI_TELEMETRY": "1"}).env["PI_TELEMETRY"] == "1"


def test_instructions_that_are_no_file_never_become_the_instructions(program: Path) -> None:
    """Pi would take the path itself for the text."""
    with pytest.raises(ConfigError, match="instructionsFilePath"):
        planned(program, instructionsFilePath="/nowhere/AGENTS.md")


@pytest.mark.parametrize("field", ["model", "provider"])
def test_a_value_that_looks_like_a_flag_is_refused(program: Path, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        planned(program, None, (), **{field: "--api-key"})


def test_skills_lie_in_the_runs_own_directory(program: Path, tmp_path: Path) -> None:
    """K1: a temporary directory and a flag; cwd and home stay as they are."""
    skill = tmp_path / "source" / "paperclip"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperclip\ndescription: Load it.\n---\n")
    plan = planned(program, skills=(skill,))
    folder = tmp_path / "scratch" / "skills"
    assert plan.argv[-2:] == ("--skill", str(folder))
    assert (folder / "paperclip" / "SKILL.md").is_file()
    assert not list((tmp_path / "ws").iterdir())
    assert not (tmp_path / ".pi").exists()
