"""The adapter host as its supervisor sees it: a real process, its streams, its documents (D4)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.run import AgentRef, ExecutionRequest, ExecutionResult, RuntimeSession
from binderclip.plugins.registry import load_adapter
from binderclip.sdk.adapter import ATTEMPT_DIR, Host, Plan
from binderclip.sdk.outcome import EndReason, Outcome, ProcessEnd

HEAD = """
import asyncio, logging, os, subprocess, sys, threading
from binderclip.sdk import *

class Config(AdapterConfig):
    api_key: Secret | None = None
    size: int = 1

class Own(Adapter):
    Config = Config
    manifest = Manifest(id="own_agent", label="Own", structured=False)

    async def execute(self, ctx):
        done = ExecutionResult(exit_code=0, signal=None, timed_out=False, summary="done")
{body}
        return done

def create_adapter():
    return Own()
"""


class Attempt:
    """One hosted run of an adapter that is written for the test."""

    def __init__(self, folder: Path, body: str, **config: Any) -> None:
        self.directory = folder / "attempt-1"
        self.cwd = folder / "cwd"
        for made in (self.directory, self.cwd):
            made.mkdir()
        self.file = folder / "own.py"
        indented = "\n".join(f"        {line}" for line in body.strip().split("\n"))
        self.file.write_text(HEAD.replace("{body}", indented))
        self.adapter = load_adapter(str(self.file))
        self.request = ExecutionRequest(
            run_id="r1",
            agent=AgentRef(id="a1", company_id="c1", name="Ann", adapter_type="own_agent"),
            runtime=RuntimeSession(),
            config={"cwd": str(self.cwd), **config},
            auth_token="token-of-the-run",
        )

    def plan(self) -> Plan:
        host = Host({"PATH": "/usr/bin:/bin"}, self.directory, attempt_dir=self.directory)
        return self.adapter.plan(self.request, host)

    def start(self) -> subprocess.Popen[bytes]:
        plan = self.plan()
        child = subprocess.Popen(
            plan.argv,
            env=plan.env,
            cwd=plan.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdin is not None
        child.stdin.write(plan.stdin or b"")
        child.stdin.close()
        child.stdin = None
        return child

    def run(self) -> tuple[bytes, bytes, int]:
        with self.start() as child:
            stdout, stderr = child.communicate(timeout=60)
        return stdout, stderr, child.returncode

    def document(self, name: str) -> Any:
        return json.loads((self.directory / name).read_bytes())

    def concluded(self, exit_code: int | None = 0, reason: EndReason = "exited") -> ExecutionResult:
        parser = self.adapter.create_parser()
        end = ProcessEnd(exit_code=exit_code, reason=reason)
        outcome = Outcome(request=self.request, end=end, parser=parser, attempt_dir=self.directory)
        return self.adapter.conclude(outcome)


def test_on_log_writes_exact_bytes_and_the_result_is_kept(tmp_path: Path) -> None:
    """A4, D4: stdout holds what on_log was given, nothing more and nothing less."""
    attempt = Attempt(
        tmp_path,
        r"""
await ctx.on_log("stdout", b"\xff\x00half a \xc3")
await ctx.on_log("stdout", "\u00e9\r\n")
await ctx.on_log("stderr", "to the side")
""",
    )
    stdout, stderr, code = attempt.run()
    assert stdout == b"\xff\x00half a \xc3" + "é\r\n".encode()
    assert (stderr, code) == (b"to the side", 0)
    result = attempt.concluded()
    assert (result.summary, result.error_code) == ("done", None)
    assert sorted(path.name for path in attempt.directory.iterdir()) == ["result.json"]


def test_a_large_log_arrives_whole(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, 'await ctx.on_log("stdout", b"0123456789" * 300_000)')
    stdout, _, _ = attempt.run()
    assert stdout == b"0123456789" * 300_000


def test_prints_logging_and_children_stay_out_of_the_transcript(tmp_path: Path) -> None:
    """D4: only on_log reaches stdout."""
    attempt = Attempt(
        tmp_path,
        """
print("printed")
logging.warning("logged")
os.write(1, b"written\\n")
subprocess.run(["echo", "from a child"])
await ctx.on_log("stdout", "meant")
""",
    )
    stdout, stderr, _ = attempt.run()
    assert stdout == b"meant"
    for text in (b"printed", b"logged", b"written", b"from a child"):
        assert text in stderr


def test_a_child_of_the_adapter_finds_stdin_empty(tmp_path: Path) -> None:
    """D8: the request, which holds secrets, is not left for a child to read."""
    attempt = Attempt(
        tmp_path,
        'await ctx.on_log("stdout", subprocess.run(["cat"], capture_output=True).stdout + b".")',
    )
    assert attempt.run()[0] == b"."


def test_the_context_has_config_environment_and_token(tmp_path: Path) -> None:
    """A4, A7: validated config, the run's variables; the host's own variable is gone."""
    attempt = Attempt(
        tmp_path,
        f"""
told = [ctx.config.size, ctx.env["PAPERCLIP_RUN_ID"], os.getcwd(), ctx.request.auth_token,
        "{ATTEMPT_DIR}" in os.environ, "{ATTEMPT_DIR}" in ctx.env]
await ctx.on_log("stdout", repr(told))
""",
        size=7,
    )
    told = repr([7, "r1", str(attempt.cwd), "token-of-the-run", False, False])
    assert attempt.run()[0].decode() == told


def test_meta_and_spawn_are_kept_without_secrets(tmp_path: Path) -> None:
    """A4, D8: secret values are masked in every document, variables redacted by name."""
    attempt = Attempt(
        tmp_path,
        """
await ctx.on_meta(InvocationMeta(
    adapter_type="own_agent", command="curl", command_args=("-H", "key: s3cret-value-1"),
    env={"MY_TOKEN": "x", "PLAIN": "y"}))
await ctx.on_spawn(SpawnInfo(pid=7, process_group_id=7, started_at="t"))
done = ExecutionResult(exit_code=0, signal=None, timed_out=False,
    summary="it was s3cret-value-1 and token-of-the-run", result_json={"a": ["s3cret-value-1"]})
""",
        apiKey="s3cret-value-1",
    )
    attempt.run()
    assert attempt.document("invocation.json") == {
        "adapterType": "own_agent",
        "command": "curl",
        "commandArgs": ["-H", "key: **************"],
        "env": {"MY_TOKEN": "***", "PLAIN": "y"},
    }
    assert attempt.document("spawn.json")["pid"] == 7
    result = attempt.concluded()
    assert result.summary == "it was ************** and ****************"
    assert result.result_json == {"a": ["**************"]}


def test_the_secret_travels_on_stdin_alone(tmp_path: Path) -> None:
    """D8: neither argv nor environment nor meta hold it, and the supervisor masks it."""
    plan = Attempt(tmp_path, "pass", apiKey="s3cret-value-1").plan()
    assert "s3cret-value-1" not in repr((plan.argv, plan.env, plan.meta))
    assert "s3cret-value-1" in plan.secrets
    assert b"s3cret-value-1" in (plan.stdin or b"")


def test_a_signal_cancels_and_cleanup_has_its_time(tmp_path: Path) -> None:
    """A11: SIGTERM is cancellation; a second one does not cut the cleanup short."""
    attempt = Attempt(
        tmp_path,
        """
await ctx.on_log("stdout", "ready\\n")
try:
    await asyncio.Event().wait()
finally:
    await ctx.on_log("stdout", "cleaning\\n")
    await asyncio.to_thread(lambda: open("go").close())
    await ctx.on_log("stdout", "clean\\n")
""",
    )
    os.mkfifo(attempt.cwd / "go")
    with attempt.start() as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == b"cleaning\n"
        child.send_signal(signal.SIGTERM)
        (attempt.cwd / "go").write_text("")
        assert child.stdout.read() == b"clean\n"
    assert child.returncode == 0
    assert attempt.document("result.json")["errorCode"] == "cancelled"
    assert attempt.concluded(reason="cancelled").error_code == "cancelled"


def test_a_limit_is_told_from_a_cancel(tmp_path: Path) -> None:
    """A9: the supervisor's reason wins over what the host believes."""
    attempt = Attempt(
        tmp_path, 'await ctx.on_log("stdout", "ready\\n")\nawait asyncio.Event().wait()'
    )
    with attempt.start() as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
    result = attempt.concluded(reason="timeout")
    assert (result.error_code, result.timed_out) == ("timeout", True)


def test_a_result_that_cleanup_returned_is_kept_as_cancelled(tmp_path: Path) -> None:
    attempt = Attempt(
        tmp_path,
        """
await ctx.on_log("stdout", "ready\\n")
try:
    await asyncio.Event().wait()
except asyncio.CancelledError:
    pass
""",
    )
    with attempt.start() as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
    result = attempt.document("result.json")
    assert (result["errorCode"], result["summary"]) == ("cancelled", "done")


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("raise ValueError('no luck')", "plugin_failed", "ValueError: no luck"),
        ("sys.exit(3)", "plugin_failed", "execute called sys.exit(3)"),
        ("raise asyncio.CancelledError()", "plugin_failed", "CancelledError"),
        ("return {'exitCode': 0}", "plugin_failed", "execute gave dict"),
        ("raise CommandNotFound('nothing there')", "command_not_found", "nothing there"),
        ("raise ConfigError('bad', hint='Fix it.')", "bad_config", "bad Fix it."),
    ],
)
def test_a_failing_execute_is_a_failed_result(
    tmp_path: Path, body: str, code: str, message: str
) -> None:
    """A9, P4: a message always, a traceback on stderr, and no harm to anybody else."""
    attempt = Attempt(tmp_path, body)
    stdout, stderr, exit_code = attempt.run()
    result = attempt.concluded()
    assert (result.error_code, result.exit_code) == (code, 1)
    assert message in (result.error_message or "")
    assert (stdout, exit_code) == (b"", 0)
    assert b"Traceback" in stderr


def test_a_foreign_error_code_is_kept_beside_the_contracts(tmp_path: Path) -> None:
    attempt = Attempt(
        tmp_path,
        'done = ExecutionResult(exit_code=9, signal=None, timed_out=False, error_code="mine")',
    )
    attempt.run()
    result = attempt.concluded()
    assert (result.error_code, result.result_json) == (
        "process_failed",
        {"adapterErrorCode": "mine"},
    )
    assert result.error_message == "The adapter reported mine without a message."


def test_a_result_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    attempt = Attempt(
        tmp_path,
        "done = ExecutionResult(exit_code=0, signal=None, timed_out=False,"
        ' result_json={"odd": object()})',
    )
    attempt.run()
    assert attempt.concluded().error_code == "plugin_failed"


def test_a_host_that_vanishes_leaves_no_success(tmp_path: Path) -> None:
    """P4: without a result nothing succeeded, whatever the exit code says."""
    attempt = Attempt(tmp_path, "os._exit(0)")
    assert attempt.run()[2] == 0
    result = attempt.concluded()
    assert result.error_code == "plugin_failed"
    assert "without a usable result" in (result.error_message or "")
    assert attempt.concluded(exit_code=3).error_code == "process_failed"


def test_a_damaged_result_is_no_success(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, "pass")
    (attempt.directory / "result.json").write_text('{"exitCode": "zero"')
    assert attempt.concluded().error_code == "plugin_failed"


def test_a_thread_left_behind_does_not_keep_the_host(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, "threading.Thread(target=threading.Event().wait).start()")
    assert attempt.run()[2] == 0
    assert attempt.concluded().summary == "done"


def test_modules_in_the_working_directory_shadow_nothing(tmp_path: Path) -> None:
    """A8: a repository that holds a msgspec.py does not get its code run."""
    attempt = Attempt(tmp_path, "pass")
    for name in ("msgspec.py", "asyncio.py", "binderclip.py"):
        (attempt.cwd / name).write_text("raise SystemExit('hijacked')")
    assert attempt.run()[1:] == (b"", 0)
    assert attempt.concluded().error_code is None


def test_bad_configuration_is_told_as_such(tmp_path: Path) -> None:
    """F1: field and problem are named, also when the config changed after the plan."""
    attempt = Attempt(tmp_path, "pass")
    plan = attempt.plan()
    stdin = (plan.stdin or b"").replace(b'"config":{', b'"config":{"size":"many",')
    subprocess.run(plan.argv, env=plan.env, cwd=plan.cwd, input=stdin, capture_output=True)
    result = attempt.concluded()
    assert result.error_code == "bad_config"
    assert "size" in (result.error_message or "")


def test_an_adapter_that_cannot_be_loaded_is_told_as_such(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, "pass")
    plan = attempt.plan()
    attempt.file.write_text("import no_such_module_anywhere")
    subprocess.run(plan.argv, env=plan.env, cwd=plan.cwd, input=plan.stdin, capture_output=True)
    result = attempt.concluded()
    assert result.error_code == "plugin_failed"
    assert "no_such_module_anywhere" in (result.error_message or "")


def test_without_an_attempt_directory_nothing_runs(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, 'await ctx.on_log("stdout", "ran")')
    plan = attempt.plan()
    del plan.env[ATTEMPT_DIR]
    done = subprocess.run(plan.argv, env=plan.env, input=plan.stdin, capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert ATTEMPT_DIR.encode() in done.stderr
