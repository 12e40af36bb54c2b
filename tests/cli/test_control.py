"""`agents`, `tasks` and `up`: with a running server and without one, the same words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.agent import Pause
from binderclip.store.agents import Pauses
from binderclip.store.database import Database
from tests.cli.conftest import Cli
from tests.cli.screen import Person
from tests.server.conftest import Served, serving


@pytest.fixture(params=["served", "alone"])
def program(cli: Cli, request: pytest.FixtureRequest) -> Iterator[Cli]:
    """The command line on a home, with its server up or not."""
    if request.param == "alone":
        yield cli
        return
    with serving(cli.home.path):
        yield cli


def told(cli: Cli, *words: str) -> Any:
    return json.loads(cli(*words, "--json").stdout)


def test_an_agent_is_set_up_without_the_web_app(program: Cli, tmp_path: Path) -> None:
    """W1, C1, D10: where it works, its instructions, limits and budgets; and back again."""
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    program("environments", "create", "box", "--config", "host=example.invalid")
    words = ("--workspace", "cwd", "--environment", "box", "--at-once", "3", "--retries", "1")
    more = (
        "--instructions",
        str(tmp_path / "AGENTS.md"),
        "--budget",
        "usd=5",
        "--budget",
        "runs=9",
    )
    program("agents", "create", "Ada", "--adapter", "process", "-c", "command=true", *words, *more)
    ada = told(program, "agents", "show", "Ada")
    assert (ada["workspace"], ada["maxConcurrentRuns"], ada["retryLimit"]) == ("cwd", 3, 1)
    assert (ada["instructions"], ada["budget"]["usd"], ada["budget"]["runs"]) == (
        "Be brief.\n",
        5,
        9,
    )
    assert ada["environmentId"]
    program("agents", "edit", "Ada", "--environment", "local", "--budget", "usd=")
    program("agents", "edit", "Ada", "--run-budget", "minutes=2.5", "--run-budget", "period=total")
    ada = told(program, "agents", "show", "Ada")
    assert (ada["environmentId"], ada["budget"]["usd"], ada["budget"]["runs"]) == (None, None, 9)
    assert (ada["runBudget"]["minutes"], ada["runBudget"]["period"]) == (2.5, "total")


def test_resuming_closes_the_circuit_breaker(cli: Cli) -> None:
    """Issue 4: a person lets an agent work again on what its failures stopped."""
    make = ("agents", "create", "Ada", "--adapter", "process", "-c", "command=true")
    ada = told(cli, *make)
    run_id = told(cli, "agents", "wake", "Ada")["runId"]
    with Database.open(cli.home) as db, db.writing() as connection:
        pause = Pause(
            id="",
            agent_id=ada["id"],
            task_key="heartbeat",
            reason="3 runs in a row failed alike",
            error_code="process_failed",
            error_message="no",
            run_id=run_id,
            since="2026-01-01T00:00:00.000Z",
        )
        Pauses(connection).add(pause)
    assert len(told(cli, "agents", "show", "Ada")["pauses"]) == 1
    assert "It may work on heartbeat again." in cli("agents", "resume", "Ada").stdout
    assert told(cli, "agents", "show", "Ada")["pauses"] == []


def test_a_bad_setting_says_what_to_write(cli: Cli) -> None:
    make = ("agents", "create", "Ada", "--adapter", "process", "-c", "command=true")
    assert "keys are usd" in cli(*make, "--budget", "euro=5", code=2).stderr
    assert "is no number" in cli(*make, "--budget", "usd=much", code=2).stderr
    assert "No environment is called" in cli(*make, "--environment", "box", code=2).stderr


def test_agents_are_made_changed_and_put_away(program: Cli) -> None:
    config = ("--config", "command=echo", "--config", 'args=["hi"]')
    made = told(program, "agents", "create", "Ada", "--adapter", "process", *config)
    program("agents", "edit", "Ada", "--role", "analyst", "--config", "timeoutSec=5")
    shown = told(program, "agents", "show", made["id"][-8:])
    assert (shown["role"], shown["adapterConfig"]["timeoutSec"]) == ("analyst", 5)
    assert shown["adapterConfig"]["args"] == ["hi"]
    assert "paused" in program("agents", "pause", "Ada").stdout
    assert "archived" in program("agents", "archive", "Ada").stdout
    assert told(program, "agents") == []


def test_tasks_are_made_discussed_and_finished(cli: Cli) -> None:
    with serving(cli.home.path) as served:
        served.agent("Ada", "true")
        task = told(cli, "tasks", "create", "Do it", "--body", "now")
        later = told(cli, "tasks", "create", "Then", "--after", "T-1", "--assign", "Ada")
        assert later["blockedBy"] == [task["id"]]
        cli("tasks", "comment", "T-1", "well", "done")
        cli("tasks", "edit", "T-1", "--status", "done")
        seen = told(cli, "tasks", "show", "T-1")
        assert (seen["status"], seen["comments"][0]["body"]) == ("done", "well done")
        assert told(cli, "tasks", "show", "T-2")["runs"][0]["wakeReasons"] == ["dependency"]
        assert cli("tasks", "list").stdout.count("T-1") == 1


def test_a_wake_without_a_server_waits_for_it(cli: Cli) -> None:
    cli("agents", "create", "Ada", "--adapter", "process", "--config", "command=true")
    woken = cli("agents", "wake", "Ada", "go")
    assert "next `binderclip up`" in woken.stdout
    run_id = told(cli, "agents", "wake", "Ada")["runId"]
    with serving(cli.home.path) as served:
        assert served.ended(run_id)["status"] == "succeeded"


def question(served: Served, kind: str) -> str:
    task: str = served.post("/api/issues", {"title": "t"}, 201)["identifier"]
    served.post(f"/api/issues/{task}/interactions", {"kind": kind, "title": "May I?"}, 201)
    return task


def test_questions_are_decided_from_the_command_line(cli: Cli) -> None:
    with serving(cli.home.path) as served:
        first, second = (question(served, "request_confirmation") for _ in range(2))
        third = question(served, "ask_user_questions")
        assert "May I?" in cli("tasks", "show", first).stdout
        assert told(cli, "tasks", "accept", first, "--note", "yes")["response"] == {"note": "yes"}
        assert told(cli, "tasks", "reject", second)["status"] == "rejected"
        assert told(cli, "tasks", "answer", third, "blue")["response"] == {"answers": ["blue"]}
        assert "No question is open" in cli("tasks", "accept", first, code=2).stderr


def test_a_problem_is_told_in_plain_words(program: Cli) -> None:
    program("agents", "create", "Ada", "--adapter", "process", "--config", "command=true")
    again = program(
        "agents", "create", "Ada", "--adapter", "process", "--config", "command=true", code=1
    )
    assert "There is an agent called 'Ada' already." in again.stderr
    assert "No agent is called" in program("agents", "show", "Bob", code=2).stderr
    assert "T-99" in program("tasks", "show", "T-99", code=2).stderr


def test_a_second_server_on_one_home_is_refused(cli: Cli) -> None:
    """Two servers on one SQLite home: the second refuses clearly."""
    with serving(cli.home.path):
        refused = cli("up", "--port", "0", code=1)
    assert "Another binderclip server works on" in refused.stderr


def test_up_stays_at_its_port(cli: Cli) -> None:
    with serving(cli.home.path) as first:
        address = first.address
    port = address.rpartition(":")[2]
    assert json.loads((cli.home.path / "server.json").read_text())["port"] == int(port)
    process = cli.start("up")
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    process.terminate()
    process.communicate(timeout=30)
    assert f":{port}/" in line


def test_a_port_that_is_taken_is_told(cli: Cli) -> None:
    with serving(cli.home.path) as served:
        port = served.address.rpartition(":")[2]
        other = cli("up", "--port", port, code=1, BINDERCLIP_HOME=str(cli.cwd / "other"))
    assert f"Port {port} of 127.0.0.1 cannot be used" in other.stderr


def test_draining_waits_for_the_agents_and_keeps_the_server_up_meanwhile(cli: Cli) -> None:
    with serving(cli.home.path, "--drain") as served:
        agent = served.agent("lasting", "echo one; sleep 2; echo two")
        run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
        with served.client.stream("GET", f"/api/runs/{run_id}/stream") as stream:
            lines = stream.iter_lines()
            next(line for line in lines if line == "event: entry")
            served.process.terminate()
            assert "event: end" in list(lines)
        assert "Agents work on" not in served.stop()
    assert (cli.home.run_dir(run_id) / "outcome.json").exists()


def test_up_on_an_empty_home_offers_an_agent_for_each_runtime_that_is_installed(cli: Cli) -> None:
    programs = cli.cwd / "bin"
    programs.mkdir()
    claude = programs / "claude"
    claude.write_text("#!/bin/sh\n")
    claude.chmod(0o755)
    env = {**cli.env, "PATH": f"{programs}:/usr/bin:/bin"}
    with Person(cli.argv("up", "--port", "0"), env) as person:
        person.sees("Claude Code is installed")
        person.types("y\n")
        person.sees("agents go on")
        person.press_ctrl_c()
        assert person.leaves() == 0
    (agent,) = told(cli, "agents")
    assert (agent["name"], agent["adapterType"]) == ("Claude Code", "claude_local")


def test_a_task_says_how_its_worktree_is_made(cli: Cli) -> None:
    """W1: by options of `tasks create` and `tasks edit`; an empty word takes one back."""
    cli("tasks", "create", "one", "--branch", "fix/{task}", "--base", "v1", "--dirty")
    made = json.loads(cli("tasks", "show", "T-1", "--json").stdout)
    told = (made["branchTemplate"], made["baseRef"], made["withDirtyFiles"])
    assert told == ("fix/{task}", "v1", True)
    cli("tasks", "edit", "T-1", "--base", "", "--clean")
    changed = json.loads(cli("tasks", "show", "T-1", "--json").stdout)
    told = (changed["branchTemplate"], changed["baseRef"], changed["withDirtyFiles"])
    assert told == ("fix/{task}", None, False)
    refused = cli("tasks", "edit", "T-1", "--branch", "no way", code=None)
    assert "cannot be the name of a branch" in refused.stderr
