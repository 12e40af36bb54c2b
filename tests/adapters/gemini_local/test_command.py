"""Gemini CLI's command line and environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.gemini_local import create_adapter
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

NESTING = {
    "GEMINI_CLI": "1",
    "NODE_OPTIONS": "--inspect",
    "CLAUDECODE": "1",
    "GEMINI_CLI_IDE_PID": "1",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "gemini"
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
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="gemini_local")
    request = ExecutionRequest(
        run_id="r",
        agent=agent,
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(root), **config},
        context={"promptText": "say hello"},
    )
    env = {"PATH": str(program.parent), "HOME": str(root), "GEMINI_API_KEY": "k" * 20, **NESTING}
    return create_adapter().plan(request, Host(env, root, skills=skills))


def test_the_prompt_travels_on_stdin(program: Path) -> None:
    """A10: not in argv."""
    plan = planned(program)
    assert plan.stdin == b"say hello"
    assert plan.argv[1:] == (
        "--output-format",
        "stream-json",
        "--approval-mode",
        "default",
        "--skip-trust",
    )


def test_every_choice_becomes_its_flag(program: Path) -> None:
    """A12: dangerous flags only when asked for."""
    plan = planned(
        program,
        session={"sessionId": "822636cf-a64b-45b8-aea7-7aecbd7ce4a0"},
        dangerouslySkipPermissions=True,
        trustWorkspace=False,
        model="gemini-2.5-pro",
        includeDirectories=["/data"],
        extraArgs=["--debug"],
    )
    assert " ".join(plan.argv[3:]) == (
        "--approval-mode yolo --model gemini-2.5-pro --include-directories /data"
        " --resume 822636cf-a64b-45b8-aea7-7aecbd7ce4a0 --debug"
    )


def test_the_environment_is_clean_and_quiet(program: Path) -> None:
    """H5: no nesting variables; the runtime's key passes and is masked."""
    plan = planned(program)
    assert not NESTING.keys() & plan.env.keys()
    assert plan.env["GEMINI_TELEMETRY_ENABLED"] == "false"
    assert plan.env["GEMINI_CLI_NO_RELAUNCH"] == "true"
    assert plan.meta.env["GEMINI_API_KEY"] == "***"
    assert "k" * 20 in plan.secrets


def test_the_agents_own_environment_wins_over_the_quiet_defaults(program: Path) -> None:
    plan = planned(program, env={"GEMINI_TELEMETRY_ENABLED": "true"})
    assert plan.env["GEMINI_TELEMETRY_ENABLED"] == "true"


def test_instructions_go_before_the_prompt(program: Path, tmp_path: Path) -> None:
    rules = tmp_path / "AGENTS.md"
    rules.write_text("Be brief.\n")
    assert planned(program, instructionsFilePath=str(rules)).stdin == b"Be brief.\n\nsay hello"


def test_missing_instructions_are_an_error_that_names_the_field(program: Path) -> None:
    with pytest.raises(ConfigError, match="instructionsFilePath"):
        planned(program, instructionsFilePath="/nowhere/AGENTS.md")


def test_skills_are_linked_where_the_cli_finds_them_and_never_into_the_cwd(
    program: Path, tmp_path: Path
) -> None:
    """K1: the global directory, existing entries never overwritten."""
    skill = tmp_path / "source" / "paperclip"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperclip\ndescription: Load it.\n---\n")
    planned(program, skills=(skill,))
    planned(program, skills=(skill,))
    assert (tmp_path / ".gemini" / "skills" / "paperclip" / "SKILL.md").is_file()
