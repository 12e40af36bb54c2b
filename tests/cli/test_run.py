"""`binderclip run` as a real program: what it prints, how it ends, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binderclip.store.runfile import read_outcome
from tests.cli.conftest import SPEAKER, Cli, ended

GATED = "echo first; read line < gate; echo second"
"""An agent that waits until the test writes to the FIFO `gate` in its directory."""


@pytest.fixture
def gate(cli: Cli) -> Callable[[], None]:
    path = cli.cwd / "gate"
    os.mkfifo(path)
    return lambda: _open_gate(path)


def _open_gate(path: Path) -> None:
    path.write_text("go\n")


def until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """Read the process's output until it holds the text."""
    assert process.stdout is not None
    out = b""
    while text not in out:
        line = process.stdout.readline()
        assert line, out
        out += line
    return out


def test_output_stands_between_a_heading_and_a_closing_block(cli: Cli) -> None:
    out = cli("run", "--adapter", "process", "--", "echo", "hello").stdout
    heading, _, body = out.partition("\n\n")
    said, _, closing = body.partition("\n\n")
    assert heading.startswith("process in ")
    assert said == "hello"
    assert closing.startswith("✓ succeeded in ")
    log = closing.split("log    ")[1].split("\n")[0]
    assert Path(log).read_bytes() == b"hello\n"


def test_there_is_no_escape_sequence_in_a_pipe(cli: Cli) -> None:
    """T6: no TTY means no colour, no spinner, and nothing of the agent's own."""
    done = cli("run", "-a", "process", "--", "printf", "\x1b[31mred\x1b[0m \x1b]0;t\x07\\n")
    assert "\x1b" not in done.stdout
    assert "red " in done.stdout


@pytest.mark.parametrize(
    ("command", "words", "code", "verdict"),
    [
        ("exit 0", [], 0, "✓ succeeded"),
        ("exit 3", [], 1, "✗ failed: process_failed"),
        ("kill -9 $$", [], 1, "✗ failed: killed"),
        ("exec sleep 100", ["--timeout", "0.3", "-c", "graceSec=1"], 124, "✗ timed out"),
    ],
)
def test_the_exit_code_tells_how_the_run_ended(
    cli: Cli, command: str, words: list[str], code: int, verdict: str
) -> None:
    """A9, A11: exit codes 0, 1 and 124."""
    out = cli("run", "-a", "process", *words, "--", "sh", "-c", command, code=code).stdout
    assert verdict in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--adapter", "proces"], "Did you mean process?"),
        (["--adapter", "process", "--cwd", "/does/not/exist"], "is not a directory"),
        (["--adapter", "process", "--config", "nonsense=1"], "no such field"),
        (["--adapter", "process", "--config", "timeoutSec=soon"], "is no number"),
        (["--adapter", "process"], "command: Field required"),
        ([], "Missing option '--adapter'"),
    ],
)
def test_wrong_usage_is_told_in_plain_words(cli: Cli, words: list[str], told: str) -> None:
    done = cli("run", *words, code=2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_command_blocks_the_run_and_says_why(cli: Cli) -> None:
    """E3: a blocked run says why and never had an attempt."""
    out = cli("run", "-a", "process", "--", "no-such-program", code=1).stdout
    assert "\n\n✗ failed: preflight_failed" in out and "\n\n\n" not in out
    assert "'no-such-program' was not found" in out
    assert cli.home.attempts(cli.newest()) == []


def test_the_prompt_reaches_the_agent(cli: Cli) -> None:
    """A10: on standard input."""
    out = cli("run", "-a", "process", "--config", "command=cat", "say", "this").stdout
    assert "\nsay this\n" in out


def test_a_dash_reads_the_prompt_from_standard_input(cli: Cli) -> None:
    out = cli("run", "-a", "process", "-c", "command=cat", "-", given=b"from\na pipe").stdout
    assert "\nfrom\na pipe\n" in out


def test_words_after_two_dashes_are_the_command(cli: Cli) -> None:
    out = cli("run", "-a", "process", "the prompt", "--", "cat", "-").stdout
    assert "\nthe prompt\n" in out


def test_json_is_one_object_a_line_and_ends_with_the_result(cli: Cli) -> None:
    """Design 6: entry, status, result; every field of the result is there."""
    lines = cli.json_lines(
        "run", "-a", "process", "--json", "--", "sh", "-c", "echo a; exit 3", code=1
    )
    assert [line["type"] for line in lines if line["type"] != "status"] == ["entry", "result"]
    states = [line["status"] for line in lines if line["type"] == "status"]
    assert states == ["starting", "running", "finalizing", "failed"]
    last = lines[-1]
    assert last["coverage"] == {"lines": 1, "understood": 1, "unknown": 0}
    assert last["result"]["exitCode"] == 3
    assert last["result"]["errorCode"] == "process_failed"
    assert last["result"]["costUsd"] is None


def test_streamed_text_is_an_entry_and_appends(cli: Cli, said: Callable[..., str]) -> None:
    """D2: entry, append, replace."""
    file = said(
        {"kind": "assistant", "text": "Hel", "delta": True},
        {"kind": "assistant", "text": "lo", "delta": True},
    )
    lines = cli.json_lines("run", "-a", SPEAKER, "-c", f"file={file}", "--json", code=1)
    kinds = [line for line in lines if line["type"] in ("entry", "append")]
    assert kinds[0]["entry"]["text"] == "Hel"
    assert kinds[1] == {"type": "append", "id": kinds[0]["entry"]["id"], "text": "lo"}


def test_usage_cost_and_session_are_in_the_last_line(cli: Cli, said: Callable[..., str]) -> None:
    result: dict[str, Any] = {"text": "done", "subtype": "success", "isError": False, "errors": []}
    tokens = {"inputTokens": 1234, "outputTokens": 567, "cachedTokens": 10000, "costUsd": 0.0123}
    file = said(
        {"kind": "init", "model": "opus", "sessionId": "7f3e1a2b-0000"},
        {"kind": "assistant", "text": "done"},
        {"kind": "result", **result, **tokens},
    )
    out = cli("run", "-a", SPEAKER, "-c", f"file={file}").stdout
    assert "opus · in 1,234 (cached 10,000) out 567 · $0.0123 · session 7f3e1a2b" in out


def test_lines_that_nobody_understood_are_counted_and_shown_in_debug(
    cli: Cli, tmp_path: Path
) -> None:
    """T6: unrecognised lines only in debug."""
    file = tmp_path / "odd"
    file.write_text("what is this\n")
    words = ("run", "-a", SPEAKER, "-c", f"file={file}")
    out = cli(*words, code=None).stdout
    assert "what is this" not in out.split("✗")[0]
    assert "1 line not understood; --debug shows them" in out
    assert "? what is this" in cli(*words, "--debug", code=None).stdout


def test_two_hundred_thousand_lines_arrive_whole(cli: Cli) -> None:
    """D2: every line, in order, through a pipe."""
    out = cli("run", "-a", "process", "--", "seq", "200000").stdout
    body = out.partition("\n\n")[2].partition("\n\n")[0]
    assert body.split("\n") == [str(number) for number in range(1, 200001)]


def test_a_reader_that_goes_away_does_not_end_the_run(cli: Cli, gate: Callable[[], None]) -> None:
    """`| head`: the run is driven to its end in silence."""
    process = cli.start("run", "-a", "process", "--", "sh", "-c", f"{GATED}; seq 100000")
    assert process.stdout is not None
    until(process, b"first\n")
    process.stdout.close()
    gate()
    assert process.stderr is not None
    assert (process.wait(60), process.stderr.read()) == (0, b"")
    process.stderr.close()
    outcome = read_outcome(cli.home, cli.newest())
    assert outcome is not None
    assert outcome.state == "succeeded"


def test_a_killed_run_leaves_the_agent_working(cli: Cli, gate: Callable[[], None]) -> None:
    """D1: the supervisor owns the agent; `watch` shows it on and finishes its record."""
    process = cli.start("run", "-a", "process", "--", "sh", "-c", GATED)
    until(process, b"first\n")
    process.kill()
    process.communicate()
    run_id = cli.newest()
    assert json.loads(cli("runs", "--json").stdout)[0]["status"] == "running"
    watcher = cli.start("watch", run_id[-8:])
    until(watcher, b"first\n")
    gate()
    out, err = watcher.communicate(timeout=60)
    assert (watcher.returncode, err) == (0, b"")
    assert out.startswith(b"second\n")
    outcome = read_outcome(cli.home, run_id)
    assert outcome is not None
    assert outcome.state == "succeeded"


def test_a_run_of_an_adapter_that_is_a_file_is_finished_as_well(cli: Cli) -> None:
    """D1: whoever takes over loads the adapter from where it was."""
    source = cli.cwd / "source"
    os.mkfifo(source)
    run = cli("run", "-a", SPEAKER, "-c", f"file={source}", "--detach").stdout.strip()
    source.write_text("")
    cli("runs", "log", run, "--follow")
    (view,) = json.loads(cli("runs", "--json").stdout)
    assert (view["adapterType"], view["status"]) == ("speaker", "failed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_politely_also_leaves_the_agent_working(
    cli: Cli, gate: Callable[[], None], number: signal.Signals
) -> None:
    """D1: ending the program says how to find the run again."""
    # Whoever started the tests may ignore it (nohup does), and children would inherit that.
    before = signal.signal(number, signal.SIG_DFL)
    process = cli.start("run", "-a", "process", "--", "sh", "-c", GATED)
    signal.signal(number, before)
    until(process, b"first\n")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number
    run_id = cli.newest()
    assert f"binderclip watch {run_id[-8:]}" in err.decode()
    assert not ended(cli, run_id)
    gate()
    assert "second" in cli("watch", run_id[-8:]).stdout


def test_detach_prints_the_id_and_leaves(cli: Cli, gate: Callable[[], None]) -> None:
    done = cli("run", "-a", "process", "--detach", "--", "sh", "-c", GATED)
    run = done.stdout.strip()
    assert cli.newest().endswith(run)
    gate()
    assert cli("watch", run).stdout.count("second") == 1


def test_runs_finishes_the_record_of_a_run_that_ended_alone(
    cli: Cli, gate: Callable[[], None]
) -> None:
    """Design 6: `runs` finishes records of dead runs."""
    run = cli("run", "-a", "process", "--detach", "--", "sh", "-c", GATED).stdout.strip()
    gate()
    cli("runs", "log", run, "--follow")
    (view,) = json.loads(cli("runs", "--json").stdout)
    assert (view["status"], view["summary"]) == ("succeeded", "first\nsecond")


def test_the_session_is_continued_in_the_same_directory(cli: Cli, said: Callable[..., str]) -> None:
    """S1: --continue resumes the last session of that adapter in that cwd."""
    file = said({"kind": "init", "model": "m", "sessionId": "7f3e1a2b-0000"})
    words = ("run", "-a", SPEAKER, "-c", f"file={file}")
    assert "session: no earlier session" in cli(*words, "--continue", code=None).stdout
    cli(*words, "--continue", code=None)
    shown = json.loads(cli("runs", "show", "--json").stdout)
    assert shown["sessionReason"].startswith("continues"), shown["sessionReason"]
