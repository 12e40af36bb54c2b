"""Copilot's command line, environment and the files of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.copilot_local import create_adapter
from binderclip.sdk import AgentRef, ConfigError, ExecutionRequest, Host, Plan, RuntimeSession

SESSION = "2151a150-35b9-4b9d-bf81-71f960770948"
NESTING = {"COPILOT_CLI": "1", "NODE_OPTIONS": "--inspect", "COPILOT_ALLOW_ALL": "true"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "copilot"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def planned(
    program: Path,
    session: dict[str, Any] | None = None,
    skills: tuple[Path, ...] = (),
    host: dict[str, str] | None = None,
    api_url: str | None = None,
    run_id: str = "r",
    **config: Any,
) -> Plan:
    root = program.parent.parent
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="copilot_local")
    request = ExecutionRequest(
        run_id=run_id,
        agent=agent,
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(root), **config},
        context={"promptText": "say hello"},
    )
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    env = {"PATH": str(program.parent), "HOME": str(root), **NESTING, **(host or {})}
    return create_adapter().plan(request, Host(env, scratch, api_url, skills))


def test_the_prompt_travels_on_stdin_and_nothing_is_granted(program: Path) -> None:
    """A10, A12: not in argv; dangerous flags only when asked for."""
    plan = planned(program)
    assert plan.stdin == b"say hello"
    assert not [word for word in plan.argv if "allow" in word or "hello" in word]
    for word in ("--no-ask-user", "--no-auto-update", "--disable-client-telemetry", "--no-remote"):
        assert word in plan.argv


def test_every_choice_becomes_its_flag(program: Path) -> None:
    plan = planned(
        program,
        session={"sessionId": SESSION, "totals": {}},
        dangerouslySkipPermissions=True,
        model="gpt-5.5",
        effort="minimal",
        maxAiCredits=30,
        disallowedTools=["shell(rm)"],
        includeDirectories=["/data"],
        extraArgs=["--experimental"],
    )
    words = " ".join(plan.argv)
    assert words.endswith(
        f"--resume={SESSION} --model gpt-5.5 --reasoning-effort minimal --max-ai-credits 30"
        " --allow-all --deny-tool=shell(rm) --add-dir /data --experimental"
    )
    assert "--session-id" not in words


def test_a_fresh_session_has_an_id_from_the_start(program: Path) -> None:
    """S1: a run that is killed can be continued; the same run always chooses the same id."""
    words = [[w for w in planned(program, run_id=id).argv if "--session-id" in w] for id in "aab"]
    assert words[0] == words[1] != words[2]


def test_an_unsafe_session_id_is_not_passed_on(program: Path) -> None:
    """A8: validated before it reaches a command line."""
    assert "--resume" not in " ".join(planned(program, session={"sessionId": "--allow-all"}).argv)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"permissionMode": "acceptEdits"}, ["--allow-tool=write", "--allow-url=http://api"]),
        ({"allowedTools": ["shell(curl)"]}, ["--allow-tool=shell(curl)", "--allow-url=http://api"]),
        ({"network": "none"}, ["--deny-tool=url"]),
        ({"network": "open"}, ["--allow-all-urls"]),
        (
            {"network": "allowlist", "allowedHosts": ["example.com"]},
            ["--allow-url=example.com", "--allow-url=http://api"],
        ),
        (
            {"network": "none", "dangerouslySkipPermissions": True},
            ["--allow-all", "--deny-tool=url"],
        ),
    ],
)
def test_permissions_and_network_become_grants(
    program: Path, config: dict[str, Any], words: list[str]
) -> None:
    """A13: the network is mapped to the runtime's flags; the API is on the list."""
    argv = planned(program, api_url="http://api", **config).argv
    assert [word for word in argv if word.startswith(("--allow", "--deny"))] == words


def test_the_environment_is_clean_and_keys_are_hidden_from_commands(program: Path) -> None:
    """H5, D8: no nesting variables; keys pass and are masked."""
    host = {"COPILOT_PROVIDER_API_KEY": "k" * 20, "COPILOT_PROVIDER_HEADERS": "X-Key: " + "h" * 20}
    plan = planned(program, host=host)
    assert not NESTING.keys() & plan.env.keys()
    assert plan.meta.env["COPILOT_PROVIDER_API_KEY"] == "***"
    assert plan.meta.env["COPILOT_PROVIDER_HEADERS"] == "***"
    assert set(host.values()) <= set(plan.secrets)
    (hidden,) = [word for word in plan.argv if word.startswith("--secret-env-vars=")]
    assert host.keys() <= set(hidden.partition("=")[2].split(","))


def test_instructions_are_read_beside_the_users_own(program: Path, tmp_path: Path) -> None:
    """C1: standing instructions of the agent."""
    rules = tmp_path / "AGENTS.md"
    rules.write_text("Be brief.\n")
    host = {"COPILOT_CUSTOM_INSTRUCTIONS_DIRS": "/etc/team"}
    plan = planned(program, host=host, instructionsFilePath=str(rules))
    theirs, ours = plan.env["COPILOT_CUSTOM_INSTRUCTIONS_DIRS"].split(",")
    assert theirs == "/etc/team"
    (file,) = Path(ours).glob(".github/instructions/*.instructions.md")
    assert file.read_text() == '---\napplyTo: "**"\n---\n\nBe brief.\n'


def test_skills_are_given_by_a_directory_of_the_run(program: Path, tmp_path: Path) -> None:
    """K1: a temporary directory and a flag, never the cwd."""
    skill = tmp_path / "source" / "paperclip"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: paperclip\ndescription: Load it.\n---\n")
    argv = planned(program, skills=(skill,)).argv
    folder = Path(argv[argv.index("--add-dir") + 1])
    assert folder.is_relative_to(tmp_path / "scratch")
    assert (folder / ".github" / "skills" / "paperclip" / "SKILL.md").is_file()


def test_mcp_servers_travel_in_a_private_file(program: Path) -> None:
    servers = {"docs": {"type": "local", "command": "docs-server", "args": []}}
    argv = planned(program, mcpServers=servers).argv
    file = Path(argv[argv.index("--additional-mcp-config") + 1].removeprefix("@"))
    assert json.loads(file.read_text()) == {"mcpServers": servers}
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "config",
    [{"maxAiCredits": 5}, {"network": "some"}, {"instructionsFilePath": "/no/such/file"}],
)
def test_bad_values_name_their_field(program: Path, config: dict[str, Any]) -> None:
    """F1: bad config names the field."""
    with pytest.raises(ConfigError, match=next(iter(config))):
        planned(program, **config)
