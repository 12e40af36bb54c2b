"""A7, H2, H3, H5: the agent's environment, its directory and its command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from binderclip.contract.errors import BadWorkingDirectory, CommandNotFound, ConfigError
from binderclip.contract.run import AgentRef, ExecutionRequest, RuntimeSession
from binderclip.sdk import (
    build_env,
    build_paperclip_env,
    clean_env,
    ensure_absolute_directory,
    ensure_command_resolvable,
    ensure_path_in_env,
    redact_env_for_logs,
)

URL = "http://127.0.0.1:3210"
AGENT = AgentRef(id="agent-1", company_id="company-1", name="Ada", adapter_type="process")


def request(auth_token: str | None = None, **context: object) -> ExecutionRequest:
    return ExecutionRequest(
        run_id="run-1",
        agent=AGENT,
        runtime=RuntimeSession(),
        config={},
        context=context,
        auth_token=auth_token,
    )


def test_only_the_allow_list_is_inherited() -> None:
    """H5: clean by allow-list; the server's own secrets never reach an agent."""
    passed = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LC_ALL",
        "LC_TIME",
        "TZ",
        "TERM",
        "COLORTERM",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
    ]
    kept_out = [
        "BINDERCLIP_HOME",
        "BINDERCLIP_DATABASE_URL",
        "AWS_SECRET_ACCESS_KEY",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "LD_PRELOAD",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CODEX_HOME",
        "GEMINI_CLI",
        "PAPERCLIP_API_KEY",
        "PAPERCLIP_RUN_ID",
        "path",
        "LC",
        "XDG",
    ]
    host = {name: name.lower() for name in passed + kept_out}
    assert set(clean_env(host)) == set(passed)


def test_the_runtimes_own_variables_pass_if_set() -> None:
    """H5: passEnv of the manifest."""
    host = {"ANTHROPIC_API_KEY": "k", "OTHER": "x"}
    assert clean_env(host, ["ANTHROPIC_API_KEY", "NOT_SET"]) == {"ANTHROPIC_API_KEY": "k"}


def test_every_run_knows_itself() -> None:
    """A7: agent, company, run, and the API where there is one."""
    env = build_env(request(), host={"PATH": "/bin"}, api_url=URL)
    assert env == {
        "PATH": "/bin",
        "PAPERCLIP_AGENT_ID": "agent-1",
        "PAPERCLIP_COMPANY_ID": "company-1",
        "PAPERCLIP_API_URL": URL,
        "PAPERCLIP_RUN_ID": "run-1",
    }


def test_the_context_becomes_variables() -> None:
    """A7: where the context has them."""
    env = build_env(
        request(
            taskId="t",
            wakeReason="comment",
            wakeCommentId="c",
            approvalId="a",
            approvalStatus="approved",
            issueIds=["i1", "i2"],
            other="x",
        ),
        host={},
    )
    told = {name: value for name, value in env.items() if name.startswith("PAPERCLIP_")}
    assert told == {
        "PAPERCLIP_AGENT_ID": "agent-1",
        "PAPERCLIP_COMPANY_ID": "company-1",
        "PAPERCLIP_RUN_ID": "run-1",
        "PAPERCLIP_TASK_ID": "t",
        "PAPERCLIP_WAKE_REASON": "comment",
        "PAPERCLIP_WAKE_COMMENT_ID": "c",
        "PAPERCLIP_APPROVAL_ID": "a",
        "PAPERCLIP_APPROVAL_STATUS": "approved",
        "PAPERCLIP_LINKED_ISSUE_IDS": "i1,i2",
    }


def test_older_names_of_the_context_count_too() -> None:
    """A7: taskId or issueId, wakeCommentId or commentId."""
    env = build_env(request(issueId="i", commentId="c", approvalId=5), host={})
    assert (env["PAPERCLIP_TASK_ID"], env["PAPERCLIP_WAKE_COMMENT_ID"]) == ("i", "c")
    assert "PAPERCLIP_APPROVAL_ID" not in env


def test_later_layers_win() -> None:
    """A7: base, run id, context, the config's env, token."""
    env = build_env(
        request("run-token", taskId="t"),
        host={"PATH": "/host", "LANG": "C", "KEY": "host"},
        pass_env=["KEY", "PAPERCLIP_RUN_ID"],
        own={"LANG": "de", "KEY": "config"},
        api_url=URL,
    )
    assert (env["LANG"], env["KEY"], env["PAPERCLIP_API_KEY"]) == ("de", "config", "run-token")


def test_a_host_variable_never_replaces_the_runs_own() -> None:
    """A7: a nested run has its own id, even if a manifest passes the outer one on."""
    env = build_env(request(), host={"PAPERCLIP_RUN_ID": "outer"}, pass_env=["PAPERCLIP_RUN_ID"])
    assert env["PAPERCLIP_RUN_ID"] == "run-1"


def test_the_config_may_bring_its_own_token() -> None:
    """A7: then no token is injected."""
    own = {"PAPERCLIP_API_KEY": "mine"}
    env = build_env(request("run-token"), host={}, own=own, api_url=URL)
    assert env["PAPERCLIP_API_KEY"] == "mine"


@pytest.mark.parametrize("name", ["PAPERCLIP_RUN_ID", "PAPERCLIP_AGENT_ID", "PAPERCLIP_X"])
def test_reserved_names_are_refused(name: str) -> None:
    """A7: no other PAPERCLIP_ name may be set by the config."""
    with pytest.raises(ConfigError, match=name) as caught:
        build_env(request(), host={}, own={name: "x"})
    assert caught.value.fields == {f"env.{name}": "reserved"}


def test_without_a_server_there_is_neither_address_nor_token() -> None:
    """A7: left out without a reachable server."""
    env = build_env(request("run-token"), host={})
    assert not {"PAPERCLIP_API_URL", "PAPERCLIP_API_KEY"} & set(env)
    assert "PAPERCLIP_API_URL" not in build_paperclip_env(AGENT)


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "github_token",
        "MySecret",
        "DB_PASSWORD",
        "PGPASSWD",
        "AUTHORIZATION",
        "SESSION_COOKIE",
        "KEYBOARD",
    ],
)
def test_names_that_sound_secret_are_masked(name: str) -> None:
    """H2: key, token, secret, password, passwd, authorization, cookie, in any case."""
    assert redact_env_for_logs({name: "v", "HOME": "/h"}) == {name: "***", "HOME": "/h"}


def test_a_manifest_can_name_more_to_mask() -> None:
    assert redact_env_for_logs({"LOGIN": "v"}, ["LOGIN"]) == {"LOGIN": "***"}


def test_there_is_always_a_path() -> None:
    """H3: an empty PATH would find nothing."""
    assert ensure_path_in_env({"PATH": "/x"}) == {"PATH": "/x"}
    assert ensure_path_in_env({})["PATH"] == ensure_path_in_env({"PATH": ""})["PATH"]
    assert "/usr/bin" in ensure_path_in_env({})["PATH"]


def test_a_good_directory_passes(tmp_path: Path) -> None:
    assert ensure_absolute_directory(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    ("name", "told"), [("gone", "does not exist"), ("file", "is not a directory")]
)
def test_a_bad_directory_is_named_with_its_fix(tmp_path: Path, name: str, told: str) -> None:
    """H3: clear errors that name what is missing and how to fix it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadWorkingDirectory, match=told) as caught:
        ensure_absolute_directory(str(tmp_path / name))
    assert str(tmp_path / name) in caught.value.message
    assert caught.value.hint


def test_a_relative_directory_is_refused() -> None:
    with pytest.raises(BadWorkingDirectory, match="not absolute"):
        ensure_absolute_directory("relative/dir")


def make_program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_command_is_found_on_the_given_path(tmp_path: Path) -> None:
    """H3: on the agent's PATH, not on that of this process."""
    program = make_program(tmp_path / "bin" / "my-agent")
    found = ensure_command_resolvable("my-agent", tmp_path, {"PATH": str(tmp_path / "bin")})
    assert found == program


@pytest.mark.parametrize("command", ["./bin/my-agent", "bin/my-agent"])
def test_a_relative_command_starts_at_the_cwd(tmp_path: Path, command: str) -> None:
    program = make_program(tmp_path / "bin" / "my-agent")
    assert ensure_command_resolvable(command, tmp_path, {}) == program


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("no-such-agent", "was not found on PATH"),
        ("./gone", "does not exist"),
        ("./plain", "is not executable"),
        ("./", "does not exist"),
    ],
)
def test_a_missing_command_says_what_to_do(tmp_path: Path, command: str, told: str) -> None:
    """H3: the error names the command and the way to fix it."""
    make_program(tmp_path / "plain", 0o644)
    with pytest.raises(CommandNotFound, match=told) as caught:
        ensure_command_resolvable(command, tmp_path, {"PATH": os.defpath})
    assert "full path" in str(caught.value.hint)
