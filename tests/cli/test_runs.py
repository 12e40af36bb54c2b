"""`binderclip runs`, `watch` and `sessions`: what is kept of runs and how it is read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.contract.ids import short
from tests.cli.conftest import SPEAKER, Cli

BYTES = b"one\r\n\xff\xfe\x1b[31m\x00two"


@pytest.fixture
def kept(cli: Cli) -> str:
    """A finished run that printed awkward bytes; its short id."""
    file = cli.cwd / "bytes"
    file.write_bytes(BYTES)
    cli("run", "-a", "process", "--", "cat", str(file))
    return short(cli.newest())


def test_there_may_be_no_runs_yet(cli: Cli) -> None:
    assert "No runs yet" in cli("runs").stdout
    assert cli("runs", "--json").stdout == "[]\n"
    assert "There are no runs yet" in cli("watch", code=2).stderr


def test_the_list_tells_the_essentials(cli: Cli) -> None:
    cli("run", "-a", "process", "-c", "command=cat", "fix the bug")
    head, row = cli("runs").stdout.splitlines()
    assert head.split() == ["RUN", "STATE", "ADAPTER", "AGE", "TOOK", "TOKENS", "COST", "ABOUT"]
    assert row.startswith(f"{short(cli.newest())}  succeeded  process")
    assert row.endswith("fix the bug")


def test_the_list_can_be_narrowed(cli: Cli) -> None:
    cli("run", "-a", "process", "--", "true")
    cli("run", "-a", "process", "--", "false", code=1)
    assert [view["status"] for view in json.loads(cli("runs", "--json").stdout)] == [
        "failed",
        "succeeded",
    ]
    failed = json.loads(cli("runs", "list", "--status", "failed", "--json").stdout)
    assert [view["errorCode"] for view in failed] == ["process_failed"]
    assert len(json.loads(cli("runs", "--limit", "1", "--json").stdout)) == 1
    assert cli("runs", "--adapter", "http", "--json").stdout == "[]\n"


def test_a_damaged_run_is_listed_and_hides_no_other(cli: Cli, kept: str) -> None:
    cli("run", "-a", "process", "--", "true")
    (cli.home.run_dir(cli.newest()) / "run.json").write_text("{")
    assert f"{kept}  succeeded" in cli("runs").stdout


@pytest.mark.parametrize("name", ["meta.json", "index", "exit.json"])
def test_a_finished_run_is_shown_whatever_happened_to_its_attempt(
    cli: Cli, kept: str, name: str
) -> None:
    """D2: how it ended stands in its outcome."""
    (cli.home.attempt_dir(cli.newest(), 1) / name).write_bytes(b"")
    assert f"{kept}  succeeded" in cli("runs").stdout
    assert "exit code   0" in cli("runs", "show", kept).stdout
    assert "two" in cli("runs", "transcript", kept).stdout


@pytest.mark.parametrize("lost", ["meta.json", "exit.json"])
def test_a_run_whose_end_is_damaged_is_finished_as_lost(cli: Cli, kept: str, lost: str) -> None:
    """D1: no exit status and nothing alive; the run was, and nobody knows how it ended."""
    directory = cli.home.run_dir(cli.newest())
    (directory / "outcome.json").unlink()
    (directory / "attempt-1" / "exit.json").unlink()
    (directory / "attempt-1" / lost).write_bytes(b"")
    assert f"{kept}  lost" in cli("runs").stdout
    assert "its exit is unknown" in cli("runs", "show", kept).stdout


def test_show_tells_everything_and_the_history(cli: Cli, kept: str) -> None:
    """Design 5: each change of state with time and reason."""
    out = cli("runs", "show", kept).stdout
    for word in (cli.newest(), "process", "exit code", "history", "finalizing", "succeeded"):
        assert word in out
    shown = json.loads(cli("runs", "show", kept, "--json").stdout)
    assert [change["state"] for change in shown["history"]][-1] == "succeeded"


def test_the_log_is_the_exact_bytes(cli: Cli, kept: str) -> None:
    """D2: bytes are the truth."""
    import subprocess

    done = subprocess.run(
        cli.argv("runs", "log", kept), env=cli.env, capture_output=True, check=True
    )
    assert done.stdout == BYTES


def test_either_stream_can_be_read(cli: Cli) -> None:
    cli("run", "-a", "process", "--", "sh", "-c", "echo out; echo err >&2")
    assert cli("runs", "log").stdout == "out\n"
    assert cli("runs", "log", "--stream", "stderr").stdout == "err\n"
    assert "no attempt 2" in cli("runs", "log", "--attempt", "2", code=2).stderr


def test_the_transcript_is_what_run_showed(cli: Cli) -> None:
    """D3: one renderer for live and replayed runs."""
    live = cli("run", "-a", "process", "--", "sh", "-c", "echo a; echo b >&2; exit 3", code=1)
    assert cli("watch", code=1).stdout == live.stdout
    assert cli("runs", "transcript").stdout in live.stdout


def test_a_lost_transcript_is_made_again_from_the_log(cli: Cli, kept: str) -> None:
    """D2: the transcript is a cache; deleting it loses nothing."""
    before = cli("runs", "transcript", kept, "--json").stdout
    transcript = cli.home.attempt_dir(cli.newest(), 1) / "transcript.jsonl"
    transcript.unlink()
    assert cli("runs", "transcript", kept, "--json").stdout == before
    transcript.write_bytes(b"\0\xff no transcript\n")
    assert cli("runs", "transcript", kept, "--json").stdout == before


def test_all_of_a_folded_card_can_be_seen(cli: Cli, said: Callable[..., str]) -> None:
    """T5: collapsed in the list, whole on demand."""
    text = "\n".join(f"line {number}" for number in range(50))
    file = said(
        {"kind": "tool_call", "name": "Bash", "input": {}, "toolUseId": "a"},
        {"kind": "tool_result", "toolUseId": "a", "content": text, "isError": False},
    )
    out = cli("run", "-a", SPEAKER, "-c", f"file={file}", code=None).stdout
    assert f"… 45 more lines (runs transcript {short(cli.newest())} --full)" in out
    assert "line 30" not in out
    assert "line 30" in cli("runs", "transcript", "--full").stdout


def test_cancel_ends_the_agent_and_says_who_did_it(cli: Cli) -> None:
    """A11, and the reason is kept with the run."""
    os.mkfifo(cli.cwd / "gate")
    script = "echo ready; read line < gate"
    run = cli("run", "-a", "process", "--detach", "--", "sh", "-c", script).stdout.strip()
    assert cli("runs", "cancel", run, "--reason", "enough").stdout == f"Cancelling run {run}.\n"
    cli("runs", "log", run, "--follow")
    (view,) = json.loads(cli("runs", "--json").stdout)
    assert view["status"] == "cancelled"
    assert "enough" in view["errorMessage"]
    assert "is over already: cancelled" in cli("runs", "cancel", run).stdout


@pytest.mark.parametrize(
    "words", [["watch", "ffffffff"], ["runs", "show", "ab"], ["runs", "log", "zzzz"]]
)
def test_a_run_that_does_not_exist_is_wrong_usage(cli: Cli, kept: str, words: list[str]) -> None:
    done = cli(*words, code=2)
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 2


def test_the_database_can_be_made_again(cli: Cli, kept: str) -> None:
    """D2: rows come from files."""
    assert cli("runs", "rebuild").stdout == "1 run in the database.\n"
    (cli.home.path / "binderclip.db").unlink()
    for extra in cli.home.path.glob("binderclip.db-*"):
        extra.unlink()
    assert cli("runs", "rebuild").stdout == "1 run in the database.\n"


def test_sessions_are_listed_and_forgotten(cli: Cli, said: Callable[..., str]) -> None:
    """S5: users can see sessions and reset one by hand."""
    assert "No sessions yet" in cli("sessions").stdout
    file = said({"kind": "init", "model": "m", "sessionId": "7f3e1a2b-0000"})
    cli("run", "-a", SPEAKER, "-c", f"file={file}", code=None)
    (session,) = json.loads(cli("sessions", "--json").stdout)
    assert (session["displayId"], session["adapterType"]) == ("7f3e1a2b-0000", "speaker")
    assert "7f3e1a2b  speaker" in cli("sessions").stdout
    assert "No session begins with" in cli("sessions", "reset", "ffff", code=2).stderr
    assert "Forgot session" in cli("sessions", "reset", "7f3e").stdout
    assert "No sessions yet" in cli("sessions").stdout


def test_a_removed_run_directory_is_simply_gone(cli: Cli, kept: str) -> None:
    shutil.rmtree(Path(cli.home.run_dir(cli.newest())))
    assert "No runs yet" in cli("runs").stdout
