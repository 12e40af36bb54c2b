"""Qwen Code's command line, environment and the settings files of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.qwen_local import create_adapter, settings
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

NESTING = {"QWEN_CODE": "1", "NODE_OPTIONS": "--inspect", "CLAUDECODE": "1", "QWEN_CLI_ENTRY": "x"}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "MACHINE_FOLDERS", (tmp_path / "etc",))
    path = tmp_path / "bin" / "qwen"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def planned(
    program: Path,
    session: dict[str, Any] | None = None,
    skills: tuple[Path, ...] = (),
    host: dict[str, str] | None = None,
    **config: Any,
) -> Plan:
    root = program.parent.parent
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="qwen_local")
    request = ExecutionRequest(
        run_id="r",
        agent=agent,
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(root), **config},
        context={"promptText": "say hello"},
    )
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    env = {"PATH": str(program.parent), "HOME": str(root), **NESTING, **(host or {})}
    return create_adapter().plan(request, Host(env, scratch, skills=skills))


def test_the_prompt_travels_on_stdin(program: Path) -> None:
    """A10: not in argv."""
    plan = planned(program)
    assert plan.stdin == b"say hello"
    assert plan.argv[1:] == ("--output-format", "stream-json", "--approval-mode", "default")


def test_every_choice_becomes_its_flag(program: Path) -> None:
    """A12: dangerous flags only when asked for."""
    plan = planned(
        program,
        session={"sessionId": "2151a150-35b9-4b9d-bf81-71f960770948", "totals": {}},
        dangerouslySkipPermissions=True,
        partialMessages=True,
        authType="anthropic",
        model="qwen3-coder-plus",
        maxTurns=9,
        maxToolCalls=0,
        includeDirectories=["/data"],
        extraArgs=["--debug"],
    )
    assert " ".join(plan.argv[3:]) == (
        "--approval-mode yolo --include-partial-messages --auth-type anthropic"
        " --model qwen3-coder-plus --max-session-turns 9 --max-tool-calls 0"
        " --include-directories /data --resume 2151a150-35b9-4b9d-bf81-71f960770948 --debug"
    )


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "openai"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ({"GEMINI_API_KEY": "k"}, "gemini"),
    ],
)
def test_the_key_in_the_environment_chooses_the_api(
    program: Path, host: dict[str, str], kind: str
) -> None:
    argv = planned(program, host=host).argv
    assert argv[argv.index("--auth-type") + 1] == kind


def test_the_users_settings_choose_before_the_environment(program: Path, tmp_path: Path) -> None:
    (tmp_path / ".qwen").mkdir()
    chosen = {"security": {"auth": {"selectedType": "qwen-oauth"}}}
    (tmp_path / ".qwen" / "settings.json").write_text(json.dumps(chosen))
    assert "--auth-type" not in planned(program, host={"OPENAI_API_KEY": "k"}).argv


def test_the_environment_is_clean_and_quiet(program: Path) -> None:
    """H5: no nesting variables; the key passes and is masked."""
    plan = planned(program, host={"OPENAI_API_KEY": "k" * 20})
    assert not NESTING.keys() & plan.env.keys()
    assert plan.env["QWEN_CODE_NO_RELAUNCH"] == "true"
    assert plan.meta.env["OPENAI_API_KEY"] == "***"
    defaults = json.loads(Path(plan.env[settings.DEFAULTS_PATH]).read_text())
    assert defaults["privacy"] == {"usageStatisticsEnabled": False}
    assert defaults["general"] == {"enableAutoUpdate": False}


def test_effort_is_passed_in_a_settings_file_of_the_run(program: Path) -> None:
    plan = planned(program, effort="minimal")
    written = json.loads(Path(plan.env[settings.SETTINGS_PATH]).read_text())
    assert written == {"model": {"reasoningEffort": "low"}}
    assert settings.SETTINGS_PATH not in planned(program).env


def test_the_machines_own_settings_stay(program: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for name in ("settings.json", "system-defaults.json"):
        (tmp_path / "etc" / name).write_text("{}")
    plan = planned(program, effort="high")
    assert {settings.SETTINGS_PATH, settings.DEFAULTS_PATH} & plan.env.keys() == set()
    assert "effort is not passed on" in plan.meta.notes[0]


def test_instructions_go_before_the_prompt(program: Path, tmp_path: Path) -> None:
    rules = tmp_path / "AGENTS.md"
    rules.write_text("Be brief.\n")
    assert planned(program, instructionsFilePath=str(rules)).stdin == b"Be brief.\n\nsay hello"


@pytest.mark.parametrize("config", [{"maxTurns": 0}, {"authType": "aws"}, {"maxToolCalls": -1}])
def test_bad_values_name_their_field(program: Path, config: dict[str, Any]) -> None:
    """F1: bad config names the field."""
    with pytest.raises(ConfigError, match=next(iter(config))):
        planned(program, **config)


def test_skills_are_linked_where_the_cli_finds_them(program: Path, tmp_path: Path) -> None:
    """K1: the global directory, never the cwd."""
    skill = tmp_path / "source" / "paperclip"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperclip\ndescription: Load it.\n---\n")
    home = tmp_path / "own"
    planned(program, skills=(skill,), host={"QWEN_HOME": str(home)})
    assert (home / "skills" / "paperclip" / "SKILL.md").is_file()
    assert not (tmp_path / ".qwen").exists()
