"""Cursor's command line and environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.cursor import create_adapter
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

SESSION = "c6b62c6f-7ead-4fd6-9922-e952131177ff"
NESTING = {"CURSOR_AGENT": "1", "CURSOR_TRACE_ID": "x", "NODE_OPTIONS": "--inspect"}


def installed(root: Path, name: str = "cursor-agent") -> Path:
    path = root / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def planned(
    root: Path,
    session: dict[str, Any] | None = None,
    skills: tuple[Path, ...] = (),
    host: dict[str, str] | None = None,
    **config: Any,
) -> Plan:
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="cursor")
    request = ExecutionRequest(
        run_id="r",
        agent=agent,
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(root), **config},
        context={"promptText": "say hello"},
    )
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    env = {"PATH": str(root / "bin"), "HOME": str(root), **NESTING, **(host or {})}
    return create_adapter().plan(request, Host(env, scratch, skills=skills))


def test_the_prompt_travels_on_stdin(tmp_path: Path) -> None:
    """A10: not in argv."""
    program = installed(tmp_path)
    plan = planned(tmp_path)
    assert plan.stdin == b"say hello"
    words = "--print --output-format stream-json --trust"
    assert plan.argv == (str(program), *words.split())


def test_every_choice_becomes_its_flag(tmp_path: Path) -> None:
    """A12: dangerous flags only when asked for."""
    installed(tmp_path)
    plan = planned(
        tmp_path,
        session={"sessionId": SESSION},
        partialMessages=True,
        trustWorkspace=False,
        dangerouslySkipPermissions=True,
        approveMcps=True,
        sandbox="disabled",
        mode="plan",
        model="gpt-5.5-high",
        extraArgs=["--plugin-dir", "/p"],
    )
    assert " ".join(plan.argv[4:]) == (
        "--stream-partial-output --force --approve-mcps --sandbox disabled --mode plan"
        f" --model gpt-5.5-high --resume {SESSION} --plugin-dir /p"
    )


@pytest.mark.parametrize(
    ("names", "used"),
    [
        (["agent"], "agent"),
        (["agent", "cursor-agent"], "cursor-agent"),
        (["cursor-agent"], "cursor-agent"),
    ],
)
def test_the_command_is_found_under_either_name(
    tmp_path: Path, names: list[str], used: str
) -> None:
    """H3: the name that says whose it is goes first."""
    for name in names:
        installed(tmp_path, name)
    assert planned(tmp_path).argv[0] == str(tmp_path / "bin" / used)


def test_an_unsafe_session_id_is_not_passed_on(tmp_path: Path) -> None:
    """A8: validated before it reaches a command line."""
    installed(tmp_path)
    assert "--resume" not in planned(tmp_path, session={"sessionId": "--force"}).argv


def test_the_environment_is_clean(tmp_path: Path) -> None:
    """H5: no nesting variables; the key passes and is masked."""
    installed(tmp_path)
    plan = planned(tmp_path, host={"CURSOR_API_KEY": "k" * 20})
    assert not NESTING.keys() & plan.env.keys()
    assert plan.env["CURSOR_API_KEY"] == "k" * 20
    assert plan.meta.env["CURSOR_API_KEY"] == "***"


def test_instructions_go_before_the_prompt(tmp_path: Path) -> None:
    installed(tmp_path)
    rules = tmp_path / "AGENTS.md"
    rules.write_text("Be brief.\n")
    assert planned(tmp_path, instructionsFilePath=str(rules)).stdin == b"Be brief.\n\nsay hello"


def test_effort_is_noted_as_unused(tmp_path: Path) -> None:
    installed(tmp_path)
    assert "effort is not passed on" in planned(tmp_path, effort="high").meta.notes[0]
    assert planned(tmp_path).meta.notes == ()


@pytest.mark.parametrize("config", [{"mode": "agent"}, {"sandbox": "on"}])
def test_bad_values_name_their_field(tmp_path: Path, config: dict[str, Any]) -> None:
    """F1: bad config names the field."""
    installed(tmp_path)
    with pytest.raises(ConfigError, match=next(iter(config))):
        planned(tmp_path, **config)


def test_skills_are_linked_where_the_cli_finds_them(tmp_path: Path) -> None:
    """K1: the global directory, never the cwd; what is there stays."""
    installed(tmp_path)
    skill = tmp_path / "source" / "paperclip"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperclip\ndescription: Load it.\n---\n")
    home = tmp_path / "home"
    own = home / ".cursor" / "skills" / "mine"
    own.mkdir(parents=True)
    planned(tmp_path, skills=(skill,), host={"HOME": str(home)})
    assert sorted(path.name for path in own.parent.iterdir()) == ["mine", "paperclip"]
    assert not (tmp_path / ".cursor").exists()
