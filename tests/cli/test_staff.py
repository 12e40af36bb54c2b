"""`run --agent` and `--task`: an agent of the control plane in this terminal (design 6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.server.conftest import serving


def made(cli: Cli, name: str, script: str) -> None:
    words = ("--config", "command=sh", "--config", f"args={json.dumps(['-c', script])}")
    cli("agents", "create", name, "--adapter", "process", *words, "-c", f"cwd={cli.cwd}")


def test_an_agent_runs_here_without_a_server(cli: Cli) -> None:
    made(cli, "Ada", "echo hello; pwd")
    lines = cli.json_lines("run", "--agent", "Ada", "--json")
    said = [line["entry"]["text"] for line in lines if line["type"] == "entry"]
    assert said == ["hello", str(cli.cwd)]
    (run,) = json.loads(cli("runs", "--json").stdout)
    assert (run["status"], run["agentName"]) == ("succeeded", "Ada")


def test_a_task_is_run_by_its_assignee(cli: Cli) -> None:
    made(cli, "Ada", "echo for $PAPERCLIP_TASK_ID")
    cli("tasks", "create", "Do it")
    refused = cli("run", "--task", "T-1", code=2).stderr
    assert "T-1 is assigned to no agent" in refused
    assert "--agent" in refused
    cli("tasks", "edit", "T-1", "--assign", "Ada")
    task = json.loads(cli("tasks", "show", "T-1", "--json").stdout)
    assert f"for {task['id']}" in cli("run", "--task", "T-1").stdout
    shown = json.loads(cli("tasks", "show", "T-1", "--json").stdout)
    assert [run["status"] for run in shown["runs"]] == ["succeeded"]


def test_refusals_say_what_to_do(cli: Cli) -> None:
    assert "`binderclip agents` lists them" in cli("run", "--agent", "Bob", code=2).stderr
    assert "`binderclip tasks` lists them" in cli("run", "--task", "T-9", code=2).stderr
    made(cli, "Ada", "true")
    mixed = cli("run", "--agent", "Ada", "--config", "a=b", code=2).stderr
    assert "--config does not go with --agent" in mixed
    cli("agents", "pause", "Ada", "--reason", "holidays")
    paused = cli("run", "--agent", "Ada", code=1).stderr
    assert "paused: holidays" in paused
    assert "binderclip agents resume 'Ada'" in paused


@pytest.fixture
def lasting(tmp_path: Path) -> str:
    """A script that says so when it works, and ends when it may."""
    go = tmp_path / "go"
    return f"echo working; while [ ! -e {go} ]; do sleep 0.05; done; echo done"


def test_a_server_shows_the_run_and_leaves_it_to_its_terminal(
    cli: Cli, tmp_path: Path, lasting: str
) -> None:
    """R2: meanwhile nothing else works on the task; the worker does not take the run away."""
    with serving(cli.home.path) as served:
        made(cli, "Ada", lasting)
        cli("tasks", "create", "Do it")
        process = cli.start("run", "--agent", "Ada", "--task", "T-1", "--json")
        assert process.stdout is not None
        while b"working" not in process.stdout.readline():
            continue
        (run,) = served.get("/api/runs")["items"]
        second = cli("run", "--agent", "Ada", "--task", "T-1", code=1).stderr
        assert "another run of its task" in second
        assert f"binderclip watch {run['id'][-8:]}" in second
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert b'"exitCode":0' in out
        view = served.ended(run["id"])
        assert view["status"] == "succeeded"
        assert "taken over" not in json.dumps(view["history"])


def test_a_detached_run_is_finished_by_the_server(cli: Cli, tmp_path: Path, lasting: str) -> None:
    with serving(cli.home.path) as served:
        made(cli, "Ada", lasting)
        short = cli("run", "--agent", "Ada", "--detach").stdout.strip()
        (tmp_path / "go").touch()
        (run,) = served.get("/api/runs")["items"]
        assert run["id"].endswith(short)
        assert served.ended(run["id"])["status"] == "succeeded"


def test_a_run_whose_terminal_was_killed_is_taken_over_and_not_begun_again(
    cli: Cli, tmp_path: Path, lasting: str
) -> None:
    """D1: an unfinished run whose driver lock is free is what the worker looks for."""
    with serving(cli.home.path) as served:
        made(cli, "Ada", f"echo begun >> {tmp_path}/begun; {lasting}")
        process = cli.start("run", "--agent", "Ada", "--json")
        assert process.stdout is not None
        while b"working" not in process.stdout.readline():
            continue
        process.kill()
        process.communicate()
        (tmp_path / "go").touch()
        (run,) = served.get("/api/runs")["items"]
        assert served.ended(run["id"])["status"] == "succeeded"
        log = served.client.get(f"/api/runs/{run['id']}/log").text
        assert log == "working\ndone\n"
    assert (tmp_path / "begun").read_text() == "begun\n"
