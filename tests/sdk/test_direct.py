"""A6, S4: a CLI adapter runs by itself, without binderclip's runs layer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from binderclip.sdk import (
    AgentRef,
    Call,
    CliAdapter,
    Command,
    CommandNotFound,
    Entry,
    ExecutionContext,
    ExecutionRequest,
    ExecutionResult,
    InvocationMeta,
    JsonParser,
    Manifest,
    RuntimeSession,
    SpawnInfo,
    System,
    Usage,
)
from binderclip.sdk.testing import hostile

SESSION = {"sessionId": "old-1", "cwd": "/tmp"}


class Words(JsonParser):
    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        if event.get("type") != "result":
            return None
        self.facts.ended = "failure" if event["is_error"] else "success"
        self.facts.session_id = "new-1"
        self.facts.usage = Usage(input_tokens=3, output_tokens=4)
        return [System(ts=ts, text="end")]

    def parse_stderr(self, line: str, ts: str) -> None:
        self.facts.unknown_session |= line == "unknown session"


class Hostile(CliAdapter):
    """Runs the hostile CLI with the words of the session or of a fresh start."""

    manifest = Manifest(id="hostile", label="Hostile", pass_env=("HOSTILE_KEY",))
    fresh: Sequence[str] = ("result",)
    resumed: Sequence[str] = ("result",)

    def create_parser(self) -> Words:
        return Words()

    def command(self, call: Call) -> Command:
        words = self.resumed if call.session else self.fresh
        argv = [sys.executable, "-I", "-S", str(hostile.__file__), *words]
        return Command(argv, stdin=call.prompt)


class Log:
    """Everything that an execution told its host, in order."""

    def __init__(self) -> None:
        self.bytes = {"stdout": bytearray(), "stderr": bytearray()}
        self.metas: list[InvocationMeta] = []
        self.spawns: list[SpawnInfo] = []

    async def on_log(self, stream: str, chunk: str | bytes) -> None:
        self.bytes[stream] += chunk.encode() if isinstance(chunk, str) else chunk

    async def on_meta(self, meta: InvocationMeta) -> None:
        assert len(self.spawns) == len(self.metas), "the metadata comes before the spawn"
        self.metas.append(meta)

    async def on_spawn(self, info: SpawnInfo) -> None:
        self.spawns.append(info)


def execute(
    cwd: Path,
    fresh: Sequence[str] = ("result",),
    resumed: Sequence[str] = ("result",),
    session: dict[str, Any] | None = None,
    **config: Any,
) -> tuple[ExecutionResult, Log]:
    adapter, log = Hostile(), Log()
    adapter.fresh, adapter.resumed = fresh, resumed
    config = {"cwd": str(cwd), "graceSec": 0.2, **config}
    request = ExecutionRequest(
        run_id="run-1",
        agent=AgentRef(id="a", company_id="c", name="A", adapter_type="hostile"),
        runtime=RuntimeSession(session_params=session),
        config=config,
        context={"promptText": "Say hello."},
    )
    context = ExecutionContext(
        request=request,
        config=config,
        on_log=log.on_log,
        on_meta=log.on_meta,
        on_spawn=log.on_spawn,
        env={"PATH": os.environ["PATH"], "HOSTILE_KEY": "key-value-1", "STRAY": "x"},
    )
    return asyncio.run(adapter.execute(context)), log


def test_a_run_gives_a_fully_populated_result(tmp_path: Path) -> None:
    """A6: duties one to nine, in order."""
    result, log = execute(tmp_path, fresh=["stdin", "say=", "env", "result"])
    assert (result.exit_code, result.error_code) == (0, None)
    assert result.session_params == {"sessionId": "new-1", "cwd": str(tmp_path)}
    assert result.usage == Usage(input_tokens=3, output_tokens=4)
    assert log.bytes["stdout"].startswith(b"Say hello.\n{")
    assert b'"PAPERCLIP_RUN_ID": "run-1"' in log.bytes["stdout"]
    assert b"STRAY" not in log.bytes["stdout"]
    assert log.metas[0].prompt == "Say hello."
    assert log.metas[0].env["HOSTILE_KEY"] == "***"
    assert log.spawns[0].pid > 0


def test_the_parser_also_gets_a_last_line_without_a_newline(tmp_path: Path) -> None:
    """T4: the end of the output ends the line."""
    last = '{"type":"result","is_error":false}'
    result, _ = execute(tmp_path, fresh=[f"partial={last}"])
    assert result.error_code is None


def test_an_unknown_session_is_tried_once_more_and_fresh(tmp_path: Path) -> None:
    """S4: one fresh retry with clearSession; the new session is kept."""
    result, log = execute(tmp_path, resumed=["err=unknown session", "exit=1"], session=SESSION)
    assert (result.error_code, result.clear_session) == (None, True)
    assert result.session_id == "new-1"
    assert len(log.spawns) == 2
    assert b"[binderclip] The runtime does not know this session" in log.bytes["stdout"]


def test_a_second_unknown_session_ends_the_run(tmp_path: Path) -> None:
    """S4: never a loop."""
    unknown = ["err=unknown session", "exit=1"]
    result, log = execute(tmp_path, fresh=unknown, resumed=unknown, session=SESSION)
    assert (result.error_code, result.clear_session) == ("unknown_session", True)
    assert len(log.spawns) == 2


def test_a_fresh_run_is_not_tried_again(tmp_path: Path) -> None:
    """S4: only a run that resumed can lose its session."""
    result, log = execute(tmp_path, fresh=["err=unknown session", "exit=1"])
    assert (result.error_code, len(log.spawns)) == ("unknown_session", 1)


def test_no_retry_after_a_timeout(tmp_path: Path) -> None:
    """S4: not after a timeout."""
    hanging = ["err=unknown session", "hang"]
    result, log = execute(tmp_path, resumed=hanging, session=SESSION, timeoutSec=1)
    assert (result.error_code, result.timed_out, len(log.spawns)) == ("timeout", True, 1)


def test_words_of_the_agent_do_not_start_a_retry(tmp_path: Path) -> None:
    """S4: never from text that the agent wrote."""
    talk = ["say=unknown session", "result"]
    result, log = execute(tmp_path, resumed=talk, session=SESSION)
    assert (result.error_code, result.clear_session, len(log.spawns)) == (None, False, 1)


def test_a_failure_tells_the_last_words_and_both_tails(tmp_path: Path) -> None:
    """A9: errorMessage is set, and the raw tails are in resultJson."""
    result, _ = execute(tmp_path, fresh=["say=half", "err=it broke", "exit=7"])
    assert result.error_code == "process_failed"
    assert result.error_message == "The agent exited with code 7. Last on stderr: it broke"
    assert result.result_json == {"stdoutTail": "half\n", "stderrTail": "it broke\n"}


def test_a_command_that_is_missing_is_raised_before_anything_starts(tmp_path: Path) -> None:
    """H3: the error names the command."""

    class Missing(Hostile):
        def command(self, call: Call) -> Command:
            return Command(["no-such-agent"])

    log = Log()
    request = ExecutionRequest(
        run_id="r",
        agent=AgentRef(id="a", company_id="c", name="A", adapter_type="hostile"),
        runtime=RuntimeSession(),
        config={"cwd": str(tmp_path)},
    )
    context = ExecutionContext(request, {}, log.on_log, log.on_meta, log.on_spawn, {})
    with pytest.raises(CommandNotFound, match="no-such-agent"):
        asyncio.run(Missing().execute(context))
    assert log.spawns == []
