"""The worker with real processes: from wake to row, budgets, sessions, secrets, stop, resume."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.agent import Agent, Budget
from binderclip.contract.errors import Conflict
from binderclip.contract.run import TERMINAL_STATES, ExecutionResult, RunView, StateChange
from binderclip.contract.session import SessionManagement
from binderclip.contract.task import Comment
from binderclip.plugins.registry import load_adapter
from binderclip.runs.orders import order_of_row
from binderclip.runs.roster import Roster
from binderclip.runs.worker import Lent, Worker
from binderclip.runs.workerlock import WorkerLock
from binderclip.sdk.adapter import Adapter
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.rebuild import catch_up
from binderclip.store.runfile import (
    RunOutcome,
    read_order,
    read_outcome,
    write_order,
    write_outcome,
)
from binderclip.store.runs import find
from binderclip.store.secrets import Secrets
from tests.postgres import Server
from tests.runs.company import Scene
from tests.runs.speaker_adapter import Speaker

PATIENCE = 60
ENV = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SERVER_SECRET": "do-not-tell-anybody"}


def load(name: str) -> Adapter:
    return Speaker() if name == "speaker" else load_adapter(name)


def until(true: Callable[[], Any], what: str) -> None:
    """Wait for a fact; the limit is only there so that a broken test ends."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.005)


class Shop(Scene):
    """A control plane with workers that really work."""

    def __init__(self, db: Database, place: Path) -> None:
        super().__init__(db)
        self.clock.time = time.time()
        self.desk.clock = self.clock
        self.place = place
        self.roster = Roster(db, load, clock=self.clock)
        self.workers: list[Worker] = []

    def open(self, **lent: Any) -> Worker:
        worker = Worker(self.db, load, lent=Lent(env=ENV, **lent))
        worker.start()
        self.workers.append(worker)
        self.desk.nudge = self.roster.nudge = worker.nudge
        return worker

    def close(self, **options: Any) -> list[str]:
        return self.workers.pop().stop(**options)

    def speaker(self, config: dict[str, Any] | None = None, **fields: Any) -> Agent:
        asked = {"place": str(self.place), "cwd": str(self.place), **(config or {})}
        return self.agent(adapter_type="speaker", adapter_config=asked, **fields)

    def ended(self, run_id: str) -> RunView:
        until(lambda: self.status(run_id) in TERMINAL_STATES, f"{run_id} ends")
        return self.store.get(run_id)

    def do(self, agent: Agent, **wake: Any) -> RunView:
        self.clock.time = time.time()
        return self.ended(self.wake(agent, **wake).run_id)

    def given(self, number: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.place / f"given-{number}.json").read_text())
        return told


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    place = tmp_path / "place"
    place.mkdir()
    with Database.open(Home(tmp_path / "home")) as database:
        shop = Shop(database, place)
        yield shop
        (place / "go").touch()
        while shop.workers:
            shop.close(drain=True)


def test_a_woken_agent_runs_and_its_rows_tell_how(any_home: Home, tmp_path: Path) -> None:
    """D5: every state is a row as it happens, on both databases."""
    with Database.open(any_home) as database:
        shop = Shop(database, tmp_path)
        worker = shop.open()
        echo = {"command": "/bin/echo", "args": ["hello"], "cwd": str(tmp_path)}
        view = shop.do(shop.agent(adapter_config=echo))
        states = [change.state for change in shop.store.history(view.id)]
        shop.close()
    assert (view.status, view.attempts, view.summary) == ("succeeded", 1, "hello")
    assert states == ["queued", "starting", "running", "finalizing", "succeeded"]
    assert view.started_at and view.ended_at and view.cost_usd is None
    assert (any_home.attempt_dir(view.id, 1) / "stdout.log").read_bytes() == b"hello\n"
    outcome = read_outcome(any_home, view.id)
    assert outcome is not None
    assert [change.state for change in outcome.history] == states
    assert read_order(any_home, view.id).scheduled
    assert worker.working() == set()


def test_a_second_worker_of_a_home_is_refused(shop: Shop) -> None:
    """Two servers on one home: the second refuses clearly."""
    shop.open()
    with pytest.raises(Conflict, match=f"process {os.getpid()}") as caught:
        shop.open()
    assert caught.value.code == "home_busy"
    shop.close()
    shop.open()


def test_a_database_has_one_worker_whatever_the_home(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    with (
        Database.open(Home(tmp_path / "one", url)) as one,
        Database.open(Home(tmp_path / "two", url)) as two,
    ):
        first = WorkerLock(one)
        with pytest.raises(Conflict, match="another home"):
            WorkerLock(two)
        first.release()
        WorkerLock(two).release()


def test_whoever_lists_runs_leaves_their_consequences_to_the_worker(shop: Shop) -> None:
    """D5: what follows from a run's end happens once, with its rows."""
    agent = shop.speaker()
    run_id = shop.wake(agent).run_id
    shop.admit()
    asked = order_of_row(row_of(shop, run_id))
    ended = StateChange(state="failed", at=shop.desk.now(), reason="busy", actor="driver")
    result = ExecutionResult(
        exit_code=1,
        signal=None,
        timed_out=False,
        error_code="upstream",
        error_family="transient_upstream",
        error_message="overloaded",
    )
    outcome = RunOutcome(state="failed", ended_at=ended.at, result=result, history=(ended,))
    write_order(shop.db.home, asked)
    write_outcome(shop.db.home, run_id, outcome)
    assert catch_up(shop.db.home, shop.store) == 1
    assert shop.status(run_id) == "starting"
    shop.open()
    assert shop.ended(run_id).status == "failed"
    assert [shop.store.get(again).retry_of for again in shop.queued(agent)] == [run_id]


def row_of(shop: Shop, run_id: str) -> Any:
    with shop.db.reading() as connection:
        return find(connection, run_id)


def test_what_waits_is_started_one_after_the_other(shop: Shop) -> None:
    agent = shop.agent(adapter_config={"command": "/bin/true"})
    tasks = [shop.task(assignee_agent_id=agent.id) for _ in range(4)]
    waiting = shop.queued(agent)
    assert len(waiting) == len(tasks)
    shop.open()
    views = [shop.ended(run_id) for run_id in waiting]
    assert {view.status for view in views} == {"succeeded"}
    times = sorted((view.started_at or "", view.ended_at or "") for view in views)
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(times))


def test_a_run_that_cannot_be_prepared_fails_with_its_reason(shop: Shop) -> None:
    agent = shop.speaker()
    shop.open()
    with shop.db.writing() as connection:
        from binderclip.store.agents import Agents

        Agents(connection).change(agent.id, shop.desk.now(), adapter_type="gone_local")
    view = shop.do(agent)
    assert (view.status, view.error_code) == ("failed", "unknown_adapter")
    assert "gone_local" in (view.error_message or "")
    assert read_outcome(shop.db.home, view.id) is not None


def test_a_budget_stops_a_run_in_flight_and_keeps_its_session(shop: Shop) -> None:
    """D10: where usage is told step by step, the hard line stops the run in flight."""
    (shop.place / "wait").touch()
    agent = shop.speaker({"steps": 9}, run_budget=Budget(usd=0.05))
    shop.open()
    view = shop.do(agent)
    assert (view.status, view.error_code) == ("cancelled", "budget")
    assert re.search(r"the run's budget: \$0\.0[5-9] of \$0\.05", view.error_message or "")
    assert view.budget_note == "The budget stops this run in flight."
    assert view.session_id == "s-1"
    assert shop.store.session(agent.id, "speaker", "heartbeat") is not None


def test_an_agents_budget_counts_what_it_spent_before(shop: Shop) -> None:
    agent = shop.speaker({"steps": 3}, budget=Budget(tokens=500))
    shop.open()
    assert shop.do(agent).status == "succeeded"
    (shop.place / "wait").touch()
    view = shop.do(agent)
    assert (view.status, view.error_code) == ("cancelled", "budget")
    assert re.search("the agent's budget: [56]00 of 500 tokens", view.error_message or "")


def test_a_runtime_that_tells_no_usage_says_how_its_budget_holds(shop: Shop) -> None:
    """D10: the others say so."""
    agent = shop.agent(run_budget=Budget(usd=1))
    shop.open()
    view = shop.do(agent)
    assert view.status == "succeeded"
    assert "checked between runs only" in (view.budget_note or "")


def test_minutes_stop_any_runtime(shop: Shop) -> None:
    config = {"command": "/bin/sleep", "args": ["60"], "graceSec": 1}
    agent = shop.agent(adapter_config=config, run_budget=Budget(minutes=0.001))
    shop.open()
    view = shop.do(agent)
    assert (view.status, view.error_code) == ("cancelled", "budget")


def test_sessions_are_resumed_and_say_so(shop: Shop) -> None:
    """S1, S5: resumed at every wake, with the reason."""
    agent = shop.speaker()
    shop.open()
    first, second = shop.do(agent), shop.do(agent)
    assert first.session_reason == "no earlier session"
    assert second.session_reason == f"continues the session of run {first.id[-8:]}"
    assert (shop.given(1)["session"], shop.given(2)["session"]) == ("", "s-1")


def test_each_task_has_a_session_of_its_own(shop: Shop) -> None:
    agent = shop.speaker()
    shop.open()
    shop.do(agent)
    shop.do(agent, task=shop.task())
    assert shop.given(2)["session"] == ""


def test_a_session_that_was_reset_by_hand_is_not_resumed(shop: Shop) -> None:
    """S5: reset by hand, and the next run says so."""
    agent = shop.speaker()
    shop.open()
    shop.do(agent)
    assert shop.desk.reset_session(agent.id, "speaker", "heartbeat", "person") is True
    assert shop.desk.reset_session(agent.id, "speaker", "heartbeat", "person") is False
    view = shop.do(agent)
    assert "was reset by person" in (view.session_reason or "")
    assert shop.given(2)["session"] == ""
    assert "continues" in (shop.do(agent).session_reason or "")


def test_a_worn_out_session_hands_over_to_the_next(shop: Shop) -> None:
    """S5: rotation, with a handoff note in the next run's context and prompt."""
    limits = SessionManagement(max_runs=1)
    agent = shop.speaker(session_limits=limits)
    task = shop.task("Paint it")
    shop.open()
    first = shop.do(agent, task=task)
    shop.desk.comment(Comment(id="", task_id=task.id, author="person", body="blue, please"))
    second = shop.do(agent, task=task, prompt="go on")
    assert "served 1 runs, the limit is 1" in (second.session_reason or "")
    assert shop.given(2)["session"] == ""
    order = read_order(shop.db.home, second.id)
    note = order.context["paperclipSessionHandoffMarkdown"]
    for told in (first.id[-8:], "done 1", "Paint it", "blue, please"):
        assert told in note
    assert shop.given(2)["prompt"] == f"{note}\n\ngo on"
    third = shop.do(agent, task=task)
    assert "paperclipSessionHandoffMarkdown" in read_order(shop.db.home, third.id).context


def test_the_context_says_why_and_what_about(shop: Shop) -> None:
    """A4, A7: task, reason and comment reach the agent."""
    agent = shop.speaker()
    task = shop.task("Paint it", status="in_review", assignee_agent_id=agent.id)
    shop.open()
    said = shop.desk.comment(Comment(id="", task_id=task.id, author="person", body="now"))
    shop.ended(shop.store.list(limit=1)[0].id)
    env = shop.given(1)["env"]
    assert env["PAPERCLIP_TASK_ID"] == task.id
    assert env["PAPERCLIP_WAKE_REASON"] == "comment"
    assert env["PAPERCLIP_WAKE_COMMENT_ID"] == said.id


def test_the_agent_gets_a_token_and_nothing_else_of_the_server(shop: Shop) -> None:
    """D8, H5, R3: clean environment, the run's own token, the API's address."""
    shop.open(api_url=lambda: "http://127.0.0.1:3210", token=lambda order: f"token-of-{order.id}")
    view = shop.do(shop.speaker())
    env = shop.given(1)["env"]
    assert env["PAPERCLIP_API_KEY"] == f"token-of-{view.id}"
    assert env["PAPERCLIP_API_URL"] == "http://127.0.0.1:3210"
    assert env["PAPERCLIP_RUN_ID"] == view.id
    assert "SERVER_SECRET" not in env
    assert holding(shop.db.home, f"token-of-{view.id}") == []


def test_an_agents_instructions_reach_it_by_a_file(shop: Shop) -> None:
    """C1: managed AGENTS.md for adapters that take one."""
    agent = shop.speaker(instructions="Be brief.")
    shop.open()
    order = read_order(shop.db.home, shop.do(agent).id)
    assert Path(order.config["instructionsFilePath"]).read_text() == "Be brief."


def test_a_secret_is_found_in_no_file(shop: Shop) -> None:
    """D8: secrets never in argv, prompt, shown config or logs."""
    value = "correct-horse-battery-staple"
    with shop.db.writing() as connection:
        Secrets(connection, shop.db.home).set("local", "words", value, shop.desk.now())
    env = {"WORDS": {"secret": "words"}}
    agent = shop.speaker({"env": env, "promptTemplate": "say {{agent.name}}"})
    shop.open()
    view = shop.do(agent)
    assert view.status == "succeeded"
    assert shop.given(1)["env"]["WORDS"] == value
    assert holding(shop.db.home, value) == []
    log = (shop.db.home.attempt_dir(view.id, 1) / "stdout.log").read_text()
    assert f'"text": "{"*" * len(value)}"' in log


def holding(home: Home, value: str) -> list[str]:
    """The files of a home that hold a value."""
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if value.encode() in path.read_bytes()]


def test_a_working_run_is_cancelled(shop: Shop) -> None:
    (shop.place / "wait").touch()
    shop.open()
    run_id = shop.wake(shop.speaker({"graceSec": 1})).run_id
    until((shop.place / "spoken").exists, "the agent speaks")
    assert shop.desk.cancel(run_id, "person", "enough") == "running"
    view = shop.ended(run_id)
    assert (view.status, view.error_code) == ("cancelled", "cancelled")
    assert "enough" in (view.error_message or "")


def test_a_cancel_that_comes_before_the_process_reaches_it(shop: Shop) -> None:
    (shop.place / "wait").touch()
    run_id = shop.wake(shop.speaker({"graceSec": 1})).run_id
    shop.admit()
    assert shop.desk.cancel(run_id, "person", "enough") == "starting"
    shop.open()
    assert shop.ended(run_id).status == "cancelled"


def test_stopping_leaves_agents_working_and_says_which(shop: Shop) -> None:
    """Graceful stop leaves agents working; the next worker re-attaches."""
    (shop.place / "wait").touch()
    shop.open()
    run_id = shop.wake(shop.speaker({"steps": 5})).run_id
    until((shop.place / "spoken").exists, "the agent speaks")
    assert shop.close() == [run_id]
    assert shop.status(run_id) == "running"
    shop.open()
    until(lambda: shop.workers[0].working() == {run_id}, "the run is taken over")
    (shop.place / "go").touch()
    view = shop.ended(run_id)
    assert (view.status, view.attempts, view.cost_usd) == ("succeeded", 1, 0.05)
    states = [change.state for change in shop.store.history(run_id)]
    assert states == [
        *("queued", "starting", "running", "running", "finalizing", "succeeded"),
    ]


def test_draining_waits_for_what_works_and_starts_nothing_more(shop: Shop) -> None:
    agent = shop.agent(adapter_config={"command": sys.executable, "args": ["-c", "input()"]})
    quick = shop.speaker({"steps": 2})
    worker = shop.open()
    run_id = shop.wake(quick).run_id
    until((shop.place / "spoken").exists, "the agent speaks")
    worker._draining.set()
    later = shop.wake(agent).run_id
    assert shop.close(drain=True) == []
    assert shop.status(run_id) == "succeeded"
    assert shop.status(later) == "queued"


def test_a_run_that_ended_while_nobody_watched_is_settled(shop: Shop) -> None:
    """Recovery: finished ones are finalized from their log."""
    (shop.place / "wait").touch()
    shop.open()
    run_id = shop.wake(shop.speaker()).run_id
    until((shop.place / "spoken").exists, "the agent speaks")
    shop.close()
    (shop.place / "go").touch()
    until((shop.db.home.attempt_dir(run_id, 1) / "exit.json").exists, "the agent ends")
    shop.open()
    assert shop.ended(run_id).summary == "done 1"


def test_a_run_that_was_let_in_but_never_began_is_started(shop: Shop) -> None:
    """Recovery: a crash between admission and spawn loses no run."""
    run_id = shop.wake(shop.speaker()).run_id
    assert shop.admit() == [run_id]
    shop.open()
    assert shop.ended(run_id).status == "succeeded"
    assert len(list(shop.place.glob("given-*.json"))) == 1
