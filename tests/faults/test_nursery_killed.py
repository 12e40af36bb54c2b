"""Runs through a nursery that is killed at each step: nothing is lost and nothing runs twice."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from binderclip.contract.session import ResumeDecision
from binderclip.plugins.registry import load_adapter
from binderclip.runs import lifecycle
from binderclip.runs.driver import Drive
from binderclip.runs.wake import local_order
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome
from binderclip.supervisor.nursery import start_nursery
from tests.faults.conftest import ADAPTER, Account, kill_pid


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[tuple[str, int]]:
    path = str(tmp_path / "nursery.sock")
    pid = start_nursery(path)
    yield path, pid
    if Path(f"/proc/{pid}").exists():
        kill_pid(pid)


def _drive(account: Account, nursery: str, gates: int = 1) -> Drive:
    adapter = load_adapter(ADAPTER)
    order, request = local_order(
        adapter,
        cwd=str(account.place),
        prompt="count",
        config={"place": str(account.place), "lines": 200, "gates": gates},
        session=ResumeDecision(action="fresh", reason="a test"),
        now=time.time(),
    )
    home = Home(account.home).ensure()
    host_env = {"PATH": os.environ["PATH"]}
    return Drive(home, order, adapter, request, host_env=host_env, nursery=nursery)


class _Thread(threading.Thread):
    def __init__(self, drive: Drive) -> None:
        super().__init__()
        self.drive = drive
        self.outcome: RunOutcome | None = None

    def run(self) -> None:
        self.outcome = lifecycle.run(self.drive)


def test_a_run_through_the_nursery_is_whole(account: Account, nursery: tuple[str, int]) -> None:
    account.open_gate()
    outcome = lifecycle.run(_drive(account, nursery[0]))
    assert outcome.state == "succeeded"
    account.assert_whole(400)


def test_killing_the_nursery_during_output_disturbs_nobody(
    account: Account, nursery: tuple[str, int]
) -> None:
    thread = _Thread(_drive(account, nursery[0]))
    thread.start()
    account.at_gate()
    kill_pid(nursery[1])
    account.open_gate()
    thread.join(60)
    assert thread.outcome is not None and thread.outcome.state == "succeeded"
    account.assert_whole(400)


def test_killing_nursery_and_supervisor_is_survived_by_a_cold_adoption(
    account: Account, nursery: tuple[str, int]
) -> None:
    thread = _Thread(_drive(account, nursery[0]))
    thread.start()
    account.at_gate()
    kill_pid(nursery[1])
    kill_pid(account.meta()["supervisor"]["pid"])
    account.open_gate()
    thread.join(60)
    assert thread.outcome is not None and thread.outcome.state == "succeeded"
    account.assert_whole(400)


def test_a_nursery_killed_before_the_spawn_is_replaced_by_a_cold_start(
    account: Account, nursery: tuple[str, int]
) -> None:
    kill_pid(nursery[1])
    account.open_gate()
    outcome = lifecycle.run(_drive(account, nursery[0]))
    assert outcome.state == "succeeded"
    account.assert_whole(400)
