"""A1-A7, C1, D4: what an adapter is, and the plan of one attempt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from binderclip.sdk import (
    Adapter,
    AgentRef,
    Call,
    Capabilities,
    Capture,
    CheckCall,
    CliAdapter,
    CliConfig,
    Command,
    CommandNotFound,
    ConfigError,
    ContractError,
    ExecutionRequest,
    ExecutionResult,
    Host,
    Manifest,
    Outcome,
    Parser,
    ProcessEnd,
    RuntimeSession,
    Secret,
    dangerous,
)
from binderclip.sdk.loading import load_adapter_from

SAMPLE = Path(__file__).parent / "testing" / "sample_agent"
TOKEN = "run-token-0123456789"


class SampleConfig(CliConfig):
    api_secret: Secret | None = None
    wild: bool = dangerous(default=False, description="Act without asking.")


class Sample(CliAdapter):
    """Use when testing. Don't use when not."""

    Config = SampleConfig
    manifest = Manifest(
        id="sample",
        label="Sample",
        command="sample-agent",
        pass_env=("SAMPLE_KEY", "SAMPLE_LOGIN", "SAMPLE_PIN"),
        secret_env=("SAMPLE_LOGIN",),
        capture=Capture(stdout="pipe"),
        capabilities=Capabilities(supports_local_agent_jwt=True),
    )
    calls: list[Call]

    def command(self, call: Call) -> Command:
        self.calls = [call]
        argv = ["sample-agent", *(["-r", call.session["sessionId"]] if call.session else [])]
        return Command(argv, env={"EXTRA": "1"}, stdin=call.prompt, notes=["a note"])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    for name in ("bin", "scratch", "cwd"):
        (tmp_path / name).mkdir()
    program = tmp_path / "bin" / "sample-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = {
        "PATH": str(tmp_path / "bin"),
        "SAMPLE_KEY": "key-0123456789",
        "SAMPLE_LOGIN": "login-0123456789",
        "SAMPLE_PIN": "pin-0123456789",
        "SERVER_SECRET": "server-0123456789",
    }
    return Host(env=env, scratch=tmp_path / "scratch", api_url="http://127.0.0.1:3210")


def request(host: Host, session: Any = None, **config: Any) -> ExecutionRequest:
    return ExecutionRequest(
        run_id="run-1",
        agent=AgentRef(id="a", company_id="c", name="A", adapter_type="sample"),
        runtime=RuntimeSession(session_params=session),
        config={"cwd": str(host.scratch.parent / "cwd"), **config},
        context={"promptText": "Say hello.", "taskId": "t"},
        auth_token=TOKEN,
    )


def test_a_plan_is_all_that_a_supervisor_needs(host: Host) -> None:
    """A6: duties one to five."""
    plan = Sample().plan(request(host, timeoutSec=5), host)
    program = str(host.scratch.parent / "bin" / "sample-agent")
    assert (plan.argv, plan.stdin) == ((program,), b"Say hello.")
    assert plan.cwd == str(host.scratch.parent / "cwd")
    assert plan.capture == Capture(stdout="pipe", stderr="pipe")
    assert plan.limits == {
        "timeoutSec": 5,
        "idleTimeoutSec": 3600,
        "graceSec": 15,
        "maxLogBytes": 4 * 1024**3,
    }
    assert plan.env["PAPERCLIP_TASK_ID"] == "t"
    assert (plan.env["PAPERCLIP_API_KEY"], plan.env["EXTRA"]) == (TOKEN, "1")
    assert "SERVER_SECRET" not in plan.env


def test_a_plan_knows_every_secret_and_shows_none(host: Host) -> None:
    """D8: values to mask; the metadata is redacted."""
    plan = Sample().plan(request(host, apiSecret="config-0123456789"), host)
    assert set(plan.secrets) == {
        "key-0123456789",
        "login-0123456789",
        "config-0123456789",
        TOKEN,
    }
    assert set(plan.secret_env) == {"SAMPLE_KEY", "SAMPLE_LOGIN", "PAPERCLIP_API_KEY"}
    shown = repr(plan.meta)
    assert [value for value in plan.secrets if value in shown] == []
    assert plan.meta.env["SAMPLE_PIN"] == "pin-0123456789"
    assert (plan.meta.prompt, plan.meta.notes) == ("Say hello.", ("a note",))


def test_short_values_are_not_masked(host: Host) -> None:
    """D8: known secret values of 8 bytes or more."""
    env = {**host.env, "SAMPLE_KEY": "short"}
    plan = Sample().plan(request(host), Host(env=env, scratch=host.scratch))
    assert "short" not in plan.secrets


def test_without_the_flag_a_run_gets_no_token(host: Host) -> None:
    """C1: supportsLocalAgentJwt."""
    adapter = Sample()
    adapter.manifest = msgspec.structs.replace(Sample.manifest, capabilities=Capabilities())
    env = adapter.plan(request(host), host).env
    assert not {"PAPERCLIP_API_KEY", "PAPERCLIP_API_URL"} & set(env)


@pytest.mark.parametrize(
    ("session", "words"),
    [({"sessionId": "s-1"}, ["-r", "s-1"]), ({"sessionId": "--evil"}, []), (None, []), (5, [])],
)
def test_a_session_goes_through_the_codec(host: Host, session: Any, words: list[str]) -> None:
    """S2, A8: validated before it is passed on."""
    assert list(Sample().plan(request(host, session), host).argv[1:]) == words


def test_a_bad_config_or_command_is_told_before_the_spawn(host: Host) -> None:
    """H3, F1: clear errors."""
    with pytest.raises(ConfigError, match="timeoutSec"):
        Sample().plan(request(host, timeoutSec="soon"), host)
    with pytest.raises(CommandNotFound, match="sample-agent"):
        Sample().plan(request(host), Host(env={"PATH": "/nowhere"}, scratch=host.scratch))


def test_the_doc_lists_every_field_and_marks_dangers() -> None:
    """A2, A12: from doc.md or the class, and the config class."""
    doc = Sample().agent_configuration_doc()
    assert doc.startswith("Use when testing. Don't use when not.\n\n## Configuration\n")
    assert "- `wild`: Act without asking. Default: `false`. **Dangerous.**" in doc
    assert (
        "- `timeoutSec`: Seconds until the run is stopped; 0 means no limit. Default: `14400`"
        in doc
    )
    assert "One of `minimal`, `low`" in doc
    assert "Use when a test needs" in load_adapter_from(str(SAMPLE)).agent_configuration_doc()


def test_skills_are_supported_where_a_method_is_written() -> None:
    """C1: derived, never declared."""

    class Skilled(Sample):
        def list_skills(self, call: CheckCall) -> Sequence[str]:
            return ["x"]

    assert not Sample().capabilities.supports_skills
    assert Skilled().capabilities.supports_skills
    assert Skilled().capabilities.supports_local_agent_jwt


def test_what_is_not_written_says_so(host: Host) -> None:
    """A3: execute or command."""

    class Empty(CliAdapter):
        manifest = Manifest(id="empty", label="Empty")

    with pytest.raises(ContractError, match="Empty must implement command"):
        Empty().plan(request(host), host)


def outcome(host: Host, attempt_dir: Path | None, **end: Any) -> Outcome:
    return Outcome(
        request=request(host),
        end=ProcessEnd(**end),
        parser=Parser(),
        attempt_dir=attempt_dir,
        limits={"timeoutSec": 5},
    )


class Hosted(Adapter):
    """An adapter with an `execute` of its own."""

    manifest = Manifest(id="hosted", label="Hosted")


def written(folder: Path, **fields: Any) -> ExecutionResult:
    result = ExecutionResult(exit_code=0, signal=None, timed_out=False, **fields)
    (folder / "result.json").write_bytes(msgspec.json.encode(result))
    return result


def test_the_result_of_a_hosted_adapter_is_the_one_it_left(host: Host, tmp_path: Path) -> None:
    """D4: result.json in the attempt's directory."""
    left = written(tmp_path, summary="done", session_params={"sessionId": "s"})
    assert Hosted().conclude(outcome(host, tmp_path)) == left


def test_a_limit_wins_over_the_result_that_was_left(host: Host, tmp_path: Path) -> None:
    """A9: what the host managed to say before it was stopped is kept beside it."""
    written(tmp_path, summary="half", session_params={"sessionId": "s"})
    result = Hosted().conclude(outcome(host, tmp_path, reason="timeout", signal="SIGTERM"))
    assert (result.error_code, result.timed_out, result.summary) == ("timeout", True, "half")


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"exitCode": "x"}'])
def test_a_host_without_a_usable_result_did_not_succeed(
    host: Host, tmp_path: Path, content: bytes | None
) -> None:
    """P4: a crash of a plugin is an error of that run only."""
    if content is not None:
        (tmp_path / "result.json").write_bytes(content)
    result = Hosted().conclude(outcome(host, tmp_path))
    assert result.error_code == "plugin_failed"
    assert "without a usable result" in str(result.error_message)
