"""Wakes: coalescing keeps every reason, prompts and what a person wants now."""

from __future__ import annotations

import pytest

from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.task import Task
from binderclip.runs.waking import Ask
from binderclip.store.wakes import Wakes
from tests.runs.company import Scene


def test_a_wake_queues_a_run_and_says_why(scene: Scene) -> None:
    """R2: a wake says why."""
    receipt = scene.wake(scene.agent(), reason="manual", prompt="go", actor="person")
    view = scene.store.get(receipt.run_id)
    assert (receipt.status, receipt.coalesced) == ("queued", False)
    assert (view.status, view.wake_reasons, view.prompt) == ("queued", ("manual",), "go")
    assert view.scheduled


def test_wakes_that_wait_for_one_agent_and_task_share_a_run(scene: Scene) -> None:
    """R2: waiting wakes of one agent and task coalesce and keep all reasons."""
    agent = scene.agent()
    task = scene.task()
    first = scene.wake(agent, task, reason="assignment", prompt="one")
    second = scene.wake(agent, task, reason="comment", prompt="two", comment_id="c")
    third = scene.wake(agent, task, reason="comment")
    assert {first.run_id, second.run_id, third.run_id} == {first.run_id}
    assert [r.coalesced for r in (first, second, third)] == [False, True, True]
    view = scene.store.get(first.run_id)
    assert (view.wake_reasons, view.prompt) == (("assignment", "comment"), "one\n\ntwo")
    with scene.db.reading() as connection:
        kept = Wakes(connection).of_run(first.run_id)
    assert [(wake.reason, wake.coalesced) for wake in kept] == [
        ("assignment", False),
        ("comment", True),
        ("comment", True),
    ]


def test_other_tasks_and_agents_have_runs_of_their_own(scene: Scene) -> None:
    agent, other = scene.agent(), scene.agent()
    task = scene.task()
    receipts = [scene.wake(agent), scene.wake(agent, task), scene.wake(other, task)]
    assert len({receipt.run_id for receipt in receipts}) == 3


def test_a_wake_while_a_run_works_waits_for_the_next_one(scene: Scene) -> None:
    agent = scene.agent()
    first = scene.wake(agent).run_id
    assert scene.admit() == [first]
    second = scene.wake(agent)
    assert second.run_id != first and not second.coalesced
    assert scene.admit() == []


def test_a_person_who_wakes_by_hand_does_not_wait_for_a_back_off(scene: Scene) -> None:
    agent = scene.agent()
    scene.wake(agent, reason="retry", actor="system", not_before="2999-01-01T00:00:00.000Z")
    assert scene.admit() == []
    scene.wake(agent, reason="comment", actor="agent:x")
    assert scene.admit() == []
    receipt = scene.wake(agent)
    assert scene.admit() == [receipt.run_id]


def test_a_task_of_another_company_does_not_exist_for_an_agent(scene: Scene) -> None:
    from binderclip.store.companies import Companies

    with scene.db.writing() as connection:
        other = Companies(connection).create("Other", scene.desk.now())
    foreign = Task(id="", company_id=other.id, identifier="", title="theirs")
    task = scene.desk.create_task(foreign, "person")
    with pytest.raises(NotFound, match="no task"):
        scene.wake(scene.agent(), task)


def test_an_archived_agent_cannot_be_woken(scene: Scene) -> None:
    agent = scene.agent()
    scene.roster.change_agent(agent.id, "person", status="archived")
    with pytest.raises(Conflict, match="archived"):
        scene.wake(agent)


def test_an_unknown_agent_is_not_found(scene: Scene) -> None:
    with pytest.raises(NotFound, match="no agent"):
        scene.desk.wake(Ask("nobody"))
