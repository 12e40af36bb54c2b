"""H4: one child process, exact bytes, limits, bounded memory, nothing left alive."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.errors import BadWorkingDirectory, CommandNotFound, SpawnError
from binderclip.contract.run import SpawnInfo
from binderclip.sdk import ChildOptions, ChildResult, run_child_process
from binderclip.sdk.testing import hostile

SCRIPT = str(hostile.__file__)


class Kept:
    """The bytes of both streams, as the callbacks got them."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()

    async def on_stdout(self, chunk: bytes) -> None:
        self.stdout += chunk

    async def on_stderr(self, chunk: bytes) -> None:
        self.stderr += chunk


async def hostile_child(*words: str, **options: Any) -> ChildResult:
    opts = ChildOptions(**{"grace_sec": 0.3, **options})
    return await run_child_process("run-1", sys.executable, ["-I", "-S", SCRIPT, *words], opts)


def ran(*words: str, **options: Any) -> tuple[ChildResult, Kept]:
    kept = Kept()
    callbacks = {"on_stdout": kept.on_stdout, "on_stderr": kept.on_stderr}
    result = asyncio.run(hostile_child(*words, **{**callbacks, **options}))
    return result, kept


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")


def pids_in(data: bytes) -> list[int]:
    return [int(line.split()[1]) for line in data.decode().splitlines() if line.count(" ") == 1]


def test_exact_bytes_reach_the_callbacks_of_each_stream() -> None:
    """H4: exact bytes kept, whatever they are."""
    result, kept = ran("nul", "ansi", "invalid-utf8", "crlf", "err=low", "partial=no newline")
    assert kept.stdout.startswith(b"before\x00after\n\x00\n\x1b[31mred")
    assert b"\xff\xfe \xc3( \xed\xa0\x80" in kept.stdout
    assert kept.stdout.endswith(b"one\r\ntwo\rstill two\r\n\r\nno newline")
    assert bytes(kept.stderr) == b"low\n"
    assert (result.exit_code, result.signal, result.reason) == (0, None, "exited")
    assert not result.timed_out


@pytest.mark.parametrize(
    ("word", "exit_code", "signal"),
    [("exit=3", 3, None), ("die=SIGKILL", None, "SIGKILL"), ("die=SIGTERM", None, "SIGTERM")],
)
def test_the_exit_is_a_code_or_a_signal(
    word: str, exit_code: int | None, signal: str | None
) -> None:
    """H4: exit code and signal are told apart."""
    result, kept = ran("result", word)
    assert (result.exit_code, result.signal) == (exit_code, signal)
    assert b'"subtype":"success"' in kept.stdout


def test_stdin_is_delivered_whole_and_then_closed() -> None:
    """H4: stdin, also far beyond what a pipe holds."""
    data = os.urandom(3_000_000)
    _, kept = ran("stdin", stdin=data)
    assert bytes(kept.stdout) == data


def test_a_child_that_never_reads_its_stdin_does_not_hold_the_run() -> None:
    result, _ = ran("close-stdin", "say=bye", "exit=0", stdin=b"x" * 3_000_000)
    assert result.exit_code == 0


def test_no_stdin_is_an_empty_stdin() -> None:
    result, kept = ran("stdin", "say=end")
    assert (result.exit_code, bytes(kept.stdout)) == (0, b"end\n")


def test_the_child_runs_in_a_group_of_its_own_with_the_run_id() -> None:
    """H4, H5: own process group; the given environment and the run id, nothing else."""
    spawned: list[SpawnInfo] = []

    async def on_spawn(info: SpawnInfo) -> None:
        spawned.append(info)
        assert os.getpgid(info.pid) == info.pid != os.getpgrp()

    env = {"ONLY": "this", "PATH": os.environ["PATH"]}
    result, kept = ran("env", env=env, on_spawn=on_spawn)
    told = json.loads(kept.stdout)
    assert {key: told[key] for key in ("ONLY", "PAPERCLIP_RUN_ID")} == {
        "ONLY": "this",
        "PAPERCLIP_RUN_ID": "run-1",
    }
    assert set(told) - {"LC_CTYPE"} == {"ONLY", "PATH", "PAPERCLIP_RUN_ID"}
    assert spawned[0].pid == spawned[0].process_group_id == result.pid
    assert spawned[0].started_at == result.started_at


def test_without_an_environment_only_the_clean_part_is_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H5: a variable outside of the allow-list never reaches a child by itself."""
    monkeypatch.setenv("SERVER_SECRET", "hidden")
    _, kept = ran("env")
    assert "SERVER_SECRET" not in json.loads(kept.stdout)


def test_arguments_are_words_that_no_shell_reads(tmp_path: Path) -> None:
    """H4: no shell."""
    _, kept = ran("say=$(touch pwned) ; `id` *", cwd=tmp_path)
    assert bytes(kept.stdout) == b"$(touch pwned) ; `id` *\n"
    assert list(tmp_path.iterdir()) == []


def test_the_wall_limit_ends_the_whole_group() -> None:
    """A11: SIGTERM to the group at the limit."""
    result, kept = ran("child=600", "chain=2", "hang", timeout_sec=0.5)
    assert (result.reason, result.timed_out, result.signal) == ("timeout", True, "SIGTERM")
    assert [pid for pid in pids_in(kept.stdout) if alive(pid)] == []


def test_what_ignores_sigterm_is_killed_after_the_grace() -> None:
    """A11: SIGKILL after the grace."""
    result, kept = ran("ignore-term", "stubborn-child=600", "hang", timeout_sec=2)
    assert (result.reason, result.signal) == ("timeout", "SIGKILL")
    assert [pid for pid in pids_in(kept.stdout) if alive(pid)] == []


def test_a_stopped_child_still_obeys_the_limit() -> None:
    """A11: a limit is also enforced on a child that stopped itself."""
    result, _ = ran("say=x", "stop", "hang", timeout_sec=1)
    assert result.reason == "timeout"


def test_silence_ends_in_the_idle_limit() -> None:
    """A11: idleTimeoutSec counts from the last output on either stream."""
    result, kept = ran("say=a", "sleep=0.5", "err=b", "partial=c", "hang", idle_timeout_sec=2)
    assert (result.reason, result.timed_out) == ("idle_timeout", True)
    assert bytes(kept.stdout) == b"a\nc"


def test_after_a_normal_end_nothing_of_the_group_stays() -> None:
    """H4: leftovers of the group die with the child, also those that ignore SIGTERM."""
    result, kept = ran("child=600", "stubborn-child=600", "chain=2", "exit=0")
    assert (result.exit_code, result.reason) == (0, "exited")
    assert [pid for pid in pids_in(kept.stdout) if alive(pid)] == []


def test_a_daemon_that_keeps_the_pipe_does_not_hold_the_run() -> None:
    """H4: output is drained and left, although a stranger could still write to it."""
    result, kept = ran("flood=300000", "daemon=30", "say=last", "exit=0")
    daemon = int(kept.stdout.split(b"daemon ")[1].split()[0])
    os.kill(daemon, 9)
    assert result.exit_code == 0
    assert kept.stdout.endswith(b"last\n")
    assert len(kept.stdout) > 300_000


def test_a_stream_that_is_closed_early_changes_nothing() -> None:
    result, kept = ran("say=a", "close-stdout", "err=b", "exit=4")
    assert (result.exit_code, bytes(kept.stdout), bytes(kept.stderr)) == (4, b"a\n", b"b\n")


def test_a_slow_callback_slows_the_child_and_memory_stays_bounded() -> None:
    """H4: back-pressure, and bounded memory whatever the child prints."""
    total = 0

    async def on_stdout(chunk: bytes) -> None:
        nonlocal total
        total += len(chunk)
        await asyncio.sleep(0)

    tracemalloc.start()
    try:
        result = asyncio.run(hostile_child("flood=40000000", on_stdout=on_stdout, tail_bytes=1000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 40_000_000
    assert len(result.stdout_tail) == 1000
    assert peak < 4_000_000


def test_while_a_callback_waits_nothing_more_is_read(tmp_path: Path) -> None:
    """H4: back-pressure reaches the child, which cannot finish its flood."""
    flag = tmp_path / "flooded"

    async def scenario() -> tuple[bool, ChildResult]:
        entered, go_on = asyncio.Event(), asyncio.Event()

        async def on_stdout(chunk: bytes) -> None:
            entered.set()
            await go_on.wait()

        running = asyncio.ensure_future(
            hostile_child("flood=3000000", f"touch={flag}", on_stdout=on_stdout)
        )
        await entered.wait()
        blocked = not flag.exists()
        go_on.set()
        return blocked, await running

    blocked, result = asyncio.run(scenario())
    assert (blocked, flag.exists(), result.exit_code) == (True, True, 0)


def test_the_tails_are_the_last_bytes() -> None:
    """H4: a bounded tail of both streams."""
    result, _ = ran("lines=5000", "err=1234567890", tail_bytes=8)
    assert (result.stdout_tail, result.stderr_tail) == (b"ne 4999\n", b"4567890\n")


def test_a_failing_callback_ends_the_child_and_is_raised() -> None:
    """H4: the caller sees its own exception, and nothing stays alive."""
    seen: list[int] = []

    async def on_stdout(chunk: bytes) -> None:
        seen.extend(pids_in(chunk))
        raise LookupError("no disk")

    with pytest.raises(LookupError, match="no disk"):
        asyncio.run(hostile_child("pid", "child=600", "hang", on_stdout=on_stdout))
    assert [pid for pid in seen if alive(pid)] == []


def test_a_cancelled_run_leaves_nothing_behind() -> None:
    """A11: cancelling the task ends the group, also one that ignores SIGTERM."""
    kept = Kept()

    async def scenario() -> None:
        running = asyncio.ensure_future(
            hostile_child("ignore-term", "pid", "child=600", "hang", on_stdout=kept.on_stdout)
        )
        while kept.stdout.count(b"\n") < 2:
            await asyncio.sleep(0.01)
        running.cancel()
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    pids = pids_in(kept.stdout)
    assert len(pids) == 2
    assert [pid for pid in pids if alive(pid)] == []


def test_a_missing_command_says_where_it_was_looked_for(tmp_path: Path) -> None:
    """H3: the error names what is missing and how to fix it."""
    opts = ChildOptions(cwd=tmp_path, env={"PATH": str(tmp_path)})
    with pytest.raises(CommandNotFound, match="no-such-agent") as caught:
        asyncio.run(run_child_process("r", "no-such-agent", [], opts))
    assert str(tmp_path) in str(caught.value.hint)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """H3: the working directory is checked before the spawn."""
    with pytest.raises(BadWorkingDirectory, match="gone"):
        asyncio.run(run_child_process("r", "true", [], ChildOptions(cwd=tmp_path / "gone")))


def test_a_file_that_is_no_program_is_a_spawn_error(tmp_path: Path) -> None:
    script = tmp_path / "broken"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(SpawnError, match="could not be started"):
        asyncio.run(run_child_process("r", str(script), [], ChildOptions(cwd=tmp_path)))
