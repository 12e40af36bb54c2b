"""kill -9 of the worker at any moment: no line lost, no run lost or doubled (D1, D5)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from binderclip.contract.agent import Agent
from binderclip.contract.run import TERMINAL_STATES, RunView
from binderclip.runs.control import Control
from binderclip.runs.waking import Ask
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.runs import RunStore
from binderclip.supervisor import locks
from tests.faults.conftest import Account, environment, kill, pids, until

PROGRAM = str(Path(__file__).with_name("worker.py"))
NOW = "2026-03-01T12:00:00.000Z"


class Plant:
    """A home, agents that keep accounts of themselves, and a worker that is killed and replaced."""

    def __init__(self, home: Home, db: Database, places: Path) -> None:
        self.home = home
        self.db = db
        self.places = places
        self.store = RunStore(db)
        self.worker: subprocess.Popen[bytes] | None = None

    def start(self, **env: str) -> None:
        words = [sys.executable, PROGRAM, str(self.home.path), self.home.database_url]
        self.worker = subprocess.Popen(words, env={**os.environ, **env})
        lock = str(self.home.path / "worker.lock")
        until(lambda: self.over() or locks.held(lock), "the worker works")

    def over(self) -> bool:
        return self.worker is None or self.worker.poll() is not None

    def kill(self) -> None:
        assert self.worker is not None
        self.worker.kill()
        self.worker.wait()

    def died(self) -> None:
        """Wait until the worker has killed itself."""
        assert self.worker is not None
        assert self.worker.wait(60) == -signal.SIGKILL

    def agent(self, name: str, lines: int = 300, gates: int = 1) -> Agent:
        place = self.places / name
        place.mkdir()
        config = {"place": str(place), "lines": lines, "gates": gates, "cwd": str(place)}
        agent = Agent(
            id="",
            company_id="local",
            name=name,
            adapter_type="counting",
            adapter_config=config,
        )
        with self.db.writing() as connection:
            return Agents(connection).create(agent, NOW)

    def wake(self, agent: Agent) -> str:
        return Control(self.db).wake(Ask(agent.id)).run_id

    def at_gate(self, name: str, gate: int) -> None:
        until((self.places / name / f"at{gate}").exists, f"{name} is at gate {gate}")

    def open_gate(self, name: str, gate: int) -> None:
        (self.places / name / f"go{gate}").touch()

    def ended(self, run_id: str) -> RunView:
        until(lambda: self.store.get(run_id).status in TERMINAL_STATES, f"{run_id} ends")
        return self.store.get(run_id)

    def assert_whole(self, run_id: str, name: str, lines: int) -> None:
        """Started once, every byte kept, every line in the transcript once."""
        attempt = self.home.attempt_dir(run_id, 1)
        place = self.places / name
        assert len((place / "starts").read_text().splitlines()) == 1
        assert (attempt / "stdout.log").read_bytes() == (place / "witness").read_bytes()
        records = (attempt / "transcript.jsonl").read_text().splitlines()[1:]
        entries = [json.loads(record)["entry"] for record in records]
        told = [entry["text"] for entry in entries if entry["kind"] == "assistant"]
        assert told == [str(n) for n in range(1, lines + 1)]


@pytest.fixture
def plant(any_home: Home, tmp_path: Path) -> Iterator[Plant]:
    places = tmp_path / "places"
    places.mkdir()
    with Database.open(any_home) as database:
        plant = Plant(any_home, database, places)
        yield plant
        if not plant.over():
            plant.kill()
    clear_away(any_home.path)


def clear_away(home: Path) -> None:
    """End what a failed test left: agents by their run's id, the nursery by its socket's home."""
    marks = [f"PAPERCLIP_RUN_ID={path.name}".encode() for path in home.glob("runs/*/*")]
    for pid in pids():
        if any(mark in environment(pid).split(b"\0") for mark in marks):
            os.kill(pid, signal.SIGKILL)
    from binderclip.supervisor.nursery import stop_nursery

    try:
        stop_nursery(str(home / "nursery.sock"))
    except OSError:
        assert not (home / "nursery.sock").is_file()


def test_a_worker_killed_at_random_moments_loses_and_doubles_nothing(plant: Plant) -> None:
    """D1: killed again and again under printing runs, restarted each time."""
    moments = random.Random(7)
    names = [f"agent{n}" for n in range(4)]
    agents = {name: plant.agent(name, lines=2000, gates=2) for name in names}
    runs = {}
    for turn in range(6):
        plant.start()
        if turn < len(names):
            runs[names[turn]] = plant.wake(agents[names[turn]])
        if turn == 3:
            for name in names[:2]:
                plant.open_gate(name, 1)
        # Any moment will do, that is the point.
        time.sleep(moments.uniform(0.0, 0.6))
        plant.kill()
    plant.start()
    for name in names:
        for gate in (1, 2):
            plant.at_gate(name, gate)
            plant.open_gate(name, gate)
    for name, run_id in runs.items():
        view = plant.ended(run_id)
        if view.status == "lost":
            # Its agent was not even started; a run that tries again says so.
            again = [each.id for each in plant.store.list(retry_of=run_id)]
            assert len(again) == 1
            run_id = again[0]
            view = plant.ended(run_id)
        assert (view.status, view.error_message) == ("succeeded", None)
        plant.assert_whole(run_id, name, 6000)
    assert plant.store.unfinished() == []


@pytest.mark.parametrize("point", ["conclude", "settle"])
def test_a_worker_killed_while_it_finalizes_finalizes_once(plant: Plant, point: str) -> None:
    """D5: a crash anywhere repeats finalizing without doubling."""
    agent = plant.agent("one", gates=1)
    if point == "conclude":
        (plant.places / "one" / "die-at").write_text("conclude")
    plant.start(**({"DIE_AT": "settle"} if point == "settle" else {}))
    run_id = plant.wake(agent)
    plant.at_gate("one", 1)
    plant.open_gate("one", 1)
    plant.died()
    assert plant.store.get(run_id).status not in TERMINAL_STATES
    plant.start()
    assert plant.ended(run_id).status == "succeeded"
    plant.assert_whole(run_id, "one", 600)
    assert len(plant.store.list()) == 1


def test_a_worker_killed_before_the_spawn_starts_the_work_once(plant: Plant) -> None:
    """Recovery: what never ran is tried again, and only once."""
    agent = plant.agent("one", gates=0)
    (plant.places / "one" / "die-at").write_text("command")
    plant.start()
    first = plant.wake(agent)
    plant.died()
    plant.start()
    view = plant.ended(first)
    assert (view.status, view.error_code) == ("lost", "lost")
    (again,) = plant.store.list(retry_of=first)
    assert plant.ended(again.id).status == "succeeded"
    plant.assert_whole(again.id, "one", 300)


def test_the_run_of_a_killed_cli_is_taken_over(account: Account) -> None:
    """Recovery: runs of a killed `binderclip run` are taken over and get their rows."""
    run = account.run(gates=1)
    account.at_gate()
    home = Home(account.home)
    with Database.open(home) as database:
        plant = Plant(home, database, account.place)
        plant.start()
        try:
            until(lambda: [v.status for v in plant.store.list()] == ["running"], "it is shown")
            kill(run)
            account.open_gate()
            view = plant.ended(account.run_id)
        finally:
            plant.kill()
    assert (view.status, view.scheduled) == ("succeeded", False)
    account.assert_whole(400)
    clear_away(account.home)
