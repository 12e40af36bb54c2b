"""Admission: what may start now, and what everything else waits for (D5, R2, W3)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from binderclip.contract.agent import Budget
from binderclip.store.operations import Operations
from binderclip.store.tables import runs, state_changes
from tests.runs.company import Scene
from tests.store.fabricate import order


def test_a_queued_run_is_admitted_once(scene: Scene) -> None:
    run_id = scene.wake(scene.agent()).run_id
    assert scene.admit() == [run_id]
    assert scene.admit() == []
    assert scene.status(run_id) == "starting"
    assert [change.state for change in scene.store.history(run_id)] == ["queued", "starting"]


def test_an_agent_works_on_as_many_tasks_as_it_may(scene: Scene) -> None:
    """R2: maxConcurrentRuns, 1 by default."""
    one, two = scene.agent(), scene.agent(max_concurrent_runs=2)
    tasks = [scene.task() for _ in range(3)]
    ones = [scene.wake(one, task).run_id for task in tasks[:2]]
    assert scene.admit() == ones[:1]
    scene.end(ones[0])
    assert scene.admit() == ones[1:]
    scene.end(ones[1])
    twos = [scene.wake(two, task).run_id for task in tasks]
    assert scene.admit() == twos[:2]
    assert "2 at once" in (scene.waiting(twos[2]) or "")


def test_two_agents_never_work_on_one_task_at_once(scene: Scene) -> None:
    """R2: two runs never work on the same task at once."""
    task = scene.task()
    first, second = (scene.wake(scene.agent(), task).run_id for _ in range(2))
    assert scene.admit() == [first]
    assert "another run of its task" in (scene.waiting(second) or "")
    scene.end(first)
    assert scene.admit() == [second]
    assert scene.waiting(second) is None


def test_runs_by_hand_do_not_count(scene: Scene) -> None:
    """R2: ad-hoc runs are not counted."""
    agent = scene.agent()
    asked = order(task_key="cwd:/x")
    scene.store.create(asked, "running")
    with scene.db.writing() as connection:
        connection.execute(runs.update().values(agent_id=agent.id))
    assert scene.admit(limit=None) == []
    run_id = scene.wake(agent).run_id
    assert scene.admit() == [run_id]


def test_a_paused_agent_waits_and_says_why(scene: Scene) -> None:
    agent = scene.agent()
    scene.roster.change_agent(agent.id, "person", status="paused", paused_reason="holiday")
    run_id = scene.wake(agent).run_id
    assert scene.admit() == []
    assert scene.waiting(run_id) == "for its agent, which is paused: holiday"
    scene.roster.change_agent(agent.id, "person", status="active")
    assert scene.admit() == [run_id]


def test_a_task_waits_for_blockers_that_are_done_and_finalized(scene: Scene) -> None:
    """W3: blockers done, and their workspaces finalized."""
    agent = scene.agent()
    blocker = scene.task("first")
    task = scene.task("then", blocked_by=(blocker.id,))
    run_id = scene.wake(agent, task).run_id
    assert scene.admit() == []
    assert scene.waiting(run_id) == f"for {blocker.identifier}, which is todo"
    with scene.db.writing() as connection:
        begun = Operations(connection).begin("r", blocker.id, "workspace_finalize", "now")
    scene.desk.change_task(blocker.id, "person", status="done")
    assert scene.admit() == []
    assert "finalizing is pending" in (scene.waiting(run_id) or "")
    scene.desk.end_finalize(begun.id, succeeded=False, error="no space")
    assert scene.admit() == []
    assert "finalizing is failed" in (scene.waiting(run_id) or "")
    scene.desk.waive_finalize(begun.id, "person", "not needed")
    assert scene.admit() == [run_id]


def test_a_run_waits_for_its_time(scene: Scene) -> None:
    agent = scene.agent()
    run_id = scene.wake(agent, reason="retry", not_before="2026-05-28T20:30:00.000Z").run_id
    assert scene.admit() == []
    scene.clock.pass_minutes(10_000)
    assert scene.admit() == [run_id]


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        (Budget(runs=2), "2 of 2 runs"),
        (Budget(usd=0.5), r"$0.60 of $0.5"),
        (Budget(tokens=150), "200 of 150 tokens"),
    ],
)
def test_an_agent_that_spent_its_budget_waits(scene: Scene, budget: Budget, told: str) -> None:
    """D10: the hard line holds between runs for every runtime."""
    from binderclip.contract.run import Usage

    agent = scene.agent(budget=budget)
    for _ in range(2):
        scene.run(agent, usage=Usage(output_tokens=100), cost_usd=0.3)
    run_id = scene.wake(agent).run_id
    assert scene.admit() == []
    assert told in (scene.waiting(run_id) or "")
    scene.clock.pass_minutes(60 * 24 * 40)
    assert scene.admit() == [run_id]


def test_the_worker_takes_no_more_than_it_can(scene: Scene) -> None:
    ids = [scene.wake(scene.agent()).run_id for _ in range(3)]
    assert scene.admit(limit=2) == ids[:2]
    assert scene.waiting(ids[2]) == "for a free worker"


@pytest.mark.parametrize("state", ["queued", "starting"])
def test_the_database_itself_refuses_what_breaks_a_rule(scene: Scene, state: str) -> None:
    """D5: the rules are also partial unique indexes."""
    agent, task = scene.agent(), scene.task()
    run_id = scene.wake(agent, task).run_id
    if state == "starting":
        scene.admit()
    with scene.db.reading() as connection:
        row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().one()
    double = {**row, "id": order().id}
    with scene.db.engine.connect() as connection, pytest.raises(IntegrityError):
        connection.execute(insert(runs).values(**double))


RACER = """
import sys, time
from pathlib import Path
from binderclip.runs.admission import admit
from binderclip.runs.control import Control
from binderclip.runs.waking import Ask
from binderclip.store.database import Database
from binderclip.store.home import Home
from tests.runs.company import Scene

path, url, seed, agents, tasks = sys.argv[1:]
agents, tasks = agents.split(","), tasks.split(",")
with Database.open(Home(Path(path), url)) as database:
    scene = Scene(database)
    scene.clock = time.time
    control = Control(database)
    for n in range(12):
        turn = n + int(seed)
        control.wake(Ask(agents[turn % len(agents)], tasks[turn % len(tasks)]))
        for run_id in admit(database, time.time()):
            scene.end(run_id)
            print(run_id, flush=True)
"""


def test_eight_processes_race_for_admission_and_no_rule_is_broken(scene: Scene) -> None:
    """D5: same on both databases, no rule broken, nobody sees a locked database."""
    agents = [scene.agent() for _ in range(4)]
    tasks = [scene.task() for _ in range(5)]
    home = scene.db.home
    words = [str(home.path), home.database_url]
    named = [",".join(agent.id for agent in agents), ",".join(task.id for task in tasks)]
    root = Path(__file__).resolve().parents[2]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, *words, str(n), *named],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    told = [child.communicate() for child in children]
    assert [error for _, error in told] == [""] * 8
    admitted = [run_id for output, _ in told for run_id in output.split()]
    assert len(admitted) == len(set(admitted))
    with scene.db.reading() as connection:
        rows = connection.execute(select(runs.c.id, runs.c.status)).all()
        changes = connection.execute(
            select(state_changes.c.run_id).where(state_changes.c.state == "starting")
        ).all()
    assert {row.status for row in rows} <= {"succeeded", "queued"}
    assert len(changes) == len({change.run_id for change in changes}) == len(admitted)
