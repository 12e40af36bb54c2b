"""The process adapter: any command, its prompt, its exit code, its environment test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.process import create_adapter
from binderclip.sdk import (
    AgentRef,
    CheckRequest,
    CommandNotFound,
    ConfigError,
    ExecutionRequest,
    ExecutionResult,
    Host,
    Plan,
    RuntimeSession,
)
from binderclip.sdk.testing.conformance import Requirement, requirements
from binderclip.sdk.testing.replay import replay

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "OTHER_SECRET": "not for agents"}


def plan(tmp_path: Path, prompt: str = "do it", **config: Any) -> Plan:
    return create_adapter().plan(_request(tmp_path, prompt, config), Host(ENV, tmp_path))


def run(tmp_path: Path, script: str, **config: Any) -> tuple[list[Any], ExecutionResult]:
    """Run a Python script through the adapter and read it as the driver does."""
    made = plan(tmp_path, command=sys.executable, args=["-c", script], **config)
    done = subprocess.run(
        made.argv, env=made.env, cwd=made.cwd, input=made.stdin or b"", capture_output=True
    )
    seen = replay(create_adapter(), done.stdout, exit_code=done.returncode, stderr=done.stderr)
    return [entry for entry in seen.entries if entry.stream == "stdout"], seen.result


def _request(tmp_path: Path, prompt: str, config: dict[str, Any]) -> ExecutionRequest:
    return ExecutionRequest(
        run_id="r1",
        agent=AgentRef(id="a1", company_id="c1", name="Ann", adapter_type="process"),
        runtime=RuntimeSession(),
        config={"cwd": str(tmp_path), **config},
        context={"promptText": prompt} if prompt else {},
    )


@pytest.mark.parametrize("requirement", requirements(create_adapter(), {"command": "cat"}), ids=str)
def test_the_adapter_conforms(requirement: Requirement) -> None:
    requirement()


def test_the_prompt_is_read_from_stdin_by_default(tmp_path: Path) -> None:
    """A10: the prompt travels on stdin, not in argv."""
    made = plan(tmp_path, "ünï code\nline two", command="cat")
    assert made.stdin == "ünï code\nline two".encode()
    assert len(made.argv) == 1


def test_the_prompt_can_be_the_last_argument(tmp_path: Path) -> None:
    made = plan(tmp_path, "a b; $(c)", command="echo", args=["-n"], promptVia="arg")
    assert made.argv[1:] == ("-n", "a b; $(c)")
    assert made.stdin is None


def test_the_prompt_can_be_kept_away(tmp_path: Path) -> None:
    made = plan(tmp_path, command="echo", promptVia="none")
    assert (made.argv[1:], made.stdin) == ((), None)


def test_both_streams_are_captured_through_pipes(tmp_path: Path) -> None:
    """D1: a script that reopens /dev/stderr would truncate a log file behind it."""
    capture = plan(tmp_path, command="cat").capture
    assert (capture.stdout, capture.stderr) == ("pipe", "pipe")


def test_the_environment_is_clean_and_names_the_run(tmp_path: Path) -> None:
    """A7, H5: allow-list, the run's variables, the config's own."""
    made = plan(tmp_path, command="cat", env={"MINE": "1"})
    assert made.env == {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nowhere",
        "PAPERCLIP_AGENT_ID": "a1",
        "PAPERCLIP_COMPANY_ID": "c1",
        "PAPERCLIP_RUN_ID": "r1",
        "MINE": "1",
    }


def test_a_command_is_required(tmp_path: Path) -> None:
    """F1: the field is named."""
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path)
    assert list(caught.value.fields) == ["command"]


def test_a_missing_command_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A9: command not found is its own failure."""
    with pytest.raises(CommandNotFound, match="no_such_program"):
        plan(tmp_path, command="no_such_program")


def test_output_becomes_the_transcript_and_the_summary(tmp_path: Path) -> None:
    """T3: every line is what the agent said; host notices are the system's."""
    entries, result = run(tmp_path, "print('one\\n\\n[binderclip] note\\ntwo')")
    assert [(type(e).__name__, e.text) for e in entries] == [
        ("Assistant", "one"),
        ("System", "[binderclip] note"),
        ("Assistant", "two"),
    ]
    assert (result.error_code, result.summary, result.usage) == (None, "one\ntwo", None)


def test_the_command_reads_what_was_asked(tmp_path: Path) -> None:
    _, result = run(tmp_path, "import sys; print(len(sys.stdin.read()))")
    assert result.summary == "5"


def test_the_exit_code_decides(tmp_path: Path) -> None:
    """A9: a failure has its code, its message and the raw tail."""
    entries, result = run(tmp_path, "import sys; print('fine so far'); sys.exit('went wrong')")
    assert [entry.text for entry in entries] == ["fine so far"]
    assert (result.exit_code, result.error_code) == (1, "process_failed")
    assert "went wrong" in (result.error_message or "")
    assert (result.result_json or {})["stdoutTail"] == "fine so far\n"


def test_json_on_stdout_has_no_special_meaning(tmp_path: Path) -> None:
    """A8: output cannot claim a session, an end or a failure."""
    line = '{"type":"result","is_error":true,"session_id":"x"}'
    entries, result = run(tmp_path, f"print('{line}')")
    assert [entry.text for entry in entries] == [line]
    assert (result.error_code, result.session_params) == (None, None)


@pytest.mark.parametrize(
    ("config", "code", "status"),
    [
        ({"command": "cat"}, "command_ok", "pass"),
        ({"command": "cat -n"}, "command_has_arguments", "fail"),
        ({"command": "no_such_program"}, "command_missing", "fail"),
        ({"command": "cat", "promptVia": "arg"}, "prompt_in_arguments", "warn"),
        ({"command": "cat", "timeoutSec": 0}, "limit_off", "warn"),
        ({}, "config_invalid", "fail"),
    ],
)
def test_the_environment_test_tells_what_is_wrong(
    tmp_path: Path, config: dict[str, Any], code: str, status: str
) -> None:
    """E1, E2: findings are values with stable codes."""
    request = CheckRequest(
        company_id="c1", adapter_type="process", config={"cwd": str(tmp_path), **config}
    )
    report = create_adapter().test_environment(request, ENV, "t")
    assert code in {check.code for check in report.checks}
    assert report.status == status


def test_the_doc_routes_and_names_every_field() -> None:
    """A2: written as routing logic, with every config field."""
    doc = create_adapter().agent_configuration_doc()
    assert "Use when" in doc
    assert "Don't use when" in doc
    fields = create_adapter().config_schema().fields
    assert [f.key for f in fields if f"`{f.key}`:" not in doc] == []
