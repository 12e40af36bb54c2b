"""`binderclip watch` of a run that has not begun: it waits, says what for, then follows (R2)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_worker import working
from tests.server.conftest import serving

Watch = Callable[..., subprocess.Popen[bytes]]


def made(cli: Cli, name: str, script: str) -> None:
    words = ("--config", "command=sh", "--config", f"args={json.dumps(['-c', script])}")
    cli("agents", "create", name, "--adapter", "process", *words, "-c", f"cwd={cli.cwd}")


def woken(cli: Cli, *words: str) -> str:
    run_id: str = json.loads(cli("agents", "wake", *words, "--json").stdout)["runId"]
    return run_id


@pytest.fixture
def watch(cli: Cli) -> Iterator[Watch]:
    """Begin to watch; whoever still watches at the end of a test is sent home."""
    with ExitStack() as started:

        def start(*words: str) -> subprocess.Popen[bytes]:
            process = started.enter_context(cli.start("watch", *words))
            started.callback(process.kill)
            return process

        yield start


def heard(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    """What was printed up to these words."""
    assert process.stdout is not None
    said = b""
    while words not in said:
        line = process.stdout.readline()
        assert line, f"ended without {words!r}: {said!r}"
        said += line
    return said


def test_a_run_that_no_worker_has_seen_is_waited_for(cli: Cli, watch: Watch) -> None:
    """Design 6: without a worker it says so, and goes on as soon as there is one."""
    made(cli, "Ada", "echo hello")
    run_id = woken(cli, "Ada")
    process = watch(run_id[-8:])
    assert b"Queued: waits for a worker" in heard(process, b"binderclip up")
    with working(cli):
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"hello" in out
    assert b"succeeded" in out


def test_what_a_run_waits_for_is_told_as_it_changes(cli: Cli, watch: Watch, tmp_path: Path) -> None:
    """R2: a task's second agent waits for the first; the watching exit code is the run's."""
    go = tmp_path / "go"
    made(cli, "Ada", f"echo first; while [ ! -e {go} ]; do sleep 0.05; done")
    made(cli, "Bob", "echo second; exit 3")
    cli("tasks", "create", "Do it")
    with serving(cli.home.path):
        first = woken(cli, "Ada", "--task", "T-1")
        heard(watch(first), b"first")
        second = woken(cli, "Bob", "--task", "T-1")
        process = watch(second[-8:], "--json")
        line = json.loads(heard(process, b"another run of its task").splitlines()[-1])
        assert (line["type"], line["status"]) == ("status", "queued")
        assert line["reason"] == "waits for another run of its task"
        go.touch()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["entry"]["text"] for line in lines if line["type"] == "entry"] == ["second"]
    assert lines[-1]["result"]["exitCode"] == 3


def test_a_run_that_is_cancelled_while_it_waits_ends_the_watching(cli: Cli, watch: Watch) -> None:
    made(cli, "Ada", "echo hello")
    cli("agents", "pause", "Ada", "--reason", "holidays")
    with serving(cli.home.path):
        run_id = woken(cli, "Ada")
        process = watch(run_id)
        assert b"which is paused: holidays" in heard(process, b"holidays")
        cli("runs", "cancel", run_id)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"")
    assert b"cancelled" in out


def test_a_queued_run_of_another_machine_says_what_it_waits_for(cli: Cli, watch: Watch) -> None:
    """D9: by its address as by its files."""
    with serving(cli.home.path) as served:
        made(cli, "Ada", "echo hello")
        cli("agents", "pause", "Ada", "--reason", "holidays")
        run_id = woken(cli, "Ada")
        process = watch(run_id[-8:], "--server", served.address)
        said = heard(process, b"Queued: ")
        assert b"None of" not in said
        cli("agents", "resume", "Ada")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"hello" in out


def test_a_run_that_is_nowhere_is_still_not_found(cli: Cli) -> None:
    made(cli, "Ada", "true")
    assert "ffffffff" in cli("watch", "ffffffff", code=2).stderr
    assert "too short" in cli("watch", "ab", code=2).stderr
    assert "There are no runs yet" in cli("watch", code=2).stderr


def test_runs_that_wait_are_listed_and_shown(cli: Cli) -> None:
    """Design 6, R2: what is asked for is seen before it begins, and what it waits for is told."""
    made(cli, "Ada", "echo hello")
    cli("run", "-a", "process", "--", "true")
    run_id = woken(cli, "Ada")
    row, other = cli("runs").stdout.splitlines()[1:]
    assert row.startswith(f"{run_id[-8:]}  queued")
    assert "succeeded" in other
    listed = json.loads(cli("runs", "--status", "queued", "--json").stdout)
    assert [view["id"] for view in listed] == [run_id]
    assert json.loads(cli("runs", "--status", "failed", "--json").stdout) == []
    assert json.loads(cli("runs", "--adapter", "http", "--json").stdout) == []
    assert len(json.loads(cli("runs", "--limit", "1", "--json").stdout)) == 1
    shown = cli("runs", "show", run_id[-8:]).stdout
    assert "queued" in shown
    assert "for a worker; start one by" in shown
    assert json.loads(cli("runs", "show", run_id, "--json").stdout)["history"]


def test_a_run_is_listed_once_when_it_has_begun(cli: Cli) -> None:
    """D2: its files tell it, whatever its row says."""
    made(cli, "Ada", "echo hello")
    run_id = woken(cli, "Ada")
    with working(cli):
        assert cli("watch", run_id).returncode == 0
    assert [view["id"] for view in json.loads(cli("runs", "--json").stdout)] == [run_id]


def test_a_database_that_cannot_be_read_hides_no_other_run(cli: Cli) -> None:
    """D2: the files of a run are enough."""
    cli("run", "-a", "process", "--", "true")
    (cli.home.path / "binderclip.db").write_bytes(b"no database at all" * 100)
    done = cli("runs")
    assert "succeeded" in done.stdout
    assert "Runs that wait to begin cannot be listed" in done.stderr
