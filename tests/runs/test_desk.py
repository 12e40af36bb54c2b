"""Tasks with their consequences: who wakes, when, and why; and what must wait (R2, W3, W4)."""

from __future__ import annotations

from typing import Any

import pytest

from binderclip.contract.agent import Agent
from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.task import Approval, Comment, Interaction, Task
from binderclip.runs.desk import agent_actor
from binderclip.store.operations import Operations
from binderclip.store.tasks import Tasks
from binderclip.store.wakes import Wakes
from tests.runs.company import Scene


def reasons(scene: Scene, agent: Agent) -> list[tuple[str, ...]]:
    return [scene.store.get(run_id).wake_reasons for run_id in scene.queued(agent)]


def say(scene: Scene, task: Task, body: str, author: str = "person") -> Comment:
    return scene.desk.comment(Comment(id="", task_id=task.id, author=author, body=body))


def question(scene: Scene, task: Task, agent: Agent, kind: Any, **fields: Any) -> Interaction:
    asked = Interaction(
        id="", task_id=task.id, agent_id=agent.id, kind=kind, **{"run_id": None, **fields}
    )
    return scene.desk.ask(asked)


def test_assigning_a_task_wakes_its_agent(scene: Scene) -> None:
    """R2: assignment."""
    agent, other = scene.agent(), scene.agent()
    task = scene.task(assignee_agent_id=agent.id)
    assert reasons(scene, agent) == [("assignment",)]
    scene.desk.change_task(task.id, "person", assignee_agent_id=other.id)
    assert reasons(scene, other) == [("assignment",)]


def test_a_task_in_the_backlog_wakes_nobody_until_it_is_opened(scene: Scene) -> None:
    agent = scene.agent()
    task = scene.task(assignee_agent_id=agent.id, status="backlog")
    assert reasons(scene, agent) == []
    scene.desk.change_task(task.id, "person", status="todo")
    assert reasons(scene, agent) == [("assignment",)]


def test_an_agent_that_takes_a_task_does_not_wake_itself(scene: Scene) -> None:
    agent = scene.agent()
    task = scene.task()
    scene.desk.change_task(task.id, agent_actor(agent.id), assignee_agent_id=agent.id)
    assert reasons(scene, agent) == []


def test_a_comment_wakes_the_assignee_with_its_id(scene: Scene) -> None:
    """R2: comment."""
    agent = scene.agent()
    task = scene.task(assignee_agent_id=agent.id, status="in_review")
    said = say(scene, task, "please look again")
    (run_id,) = scene.queued(agent)
    with scene.db.reading() as connection:
        (wake,) = Wakes(connection).of_run(run_id)
    assert (wake.reason, wake.comment_id, wake.actor) == ("comment", said.id, "person")
    scene.admit()
    say(scene, task, "done", author=agent_actor(agent.id))
    assert scene.queued(agent) == []


def test_a_mention_wakes_whoever_is_named(scene: Scene) -> None:
    agent, other = scene.agent(name="Ada"), scene.agent(name="Grace H")
    task = scene.task()
    say(scene, task, "mail me@ada.org, or ask @grace-h, @nobody.")
    assert (reasons(scene, agent), reasons(scene, other)) == ([], [("mention",)])


def test_the_last_blocker_that_is_done_wakes_the_dependent_once(scene: Scene) -> None:
    """W3: dependents wake when their blockers are done and finalized."""
    agent = scene.agent()
    blockers = [scene.task(), scene.task()]
    ids = tuple(blocker.id for blocker in blockers)
    task = scene.task(assignee_agent_id=agent.id, blocked_by=ids, status="blocked")
    scene.desk.change_task(ids[0], "person", status="done")
    assert reasons(scene, agent) == []
    scene.clock.pass_minutes(1)
    scene.desk.change_task(ids[1], "person", status="done")
    assert reasons(scene, agent) == [("dependency",)]
    with scene.db.reading() as connection:
        assert Tasks(connection).get(task.id).status == "todo"
    (run_id,) = scene.admit()
    scene.end(run_id)
    scene.desk.change_task(ids[1], "person", title="renamed")
    assert reasons(scene, agent) == []


def test_a_blocker_wakes_its_dependents_only_when_finalized(scene: Scene) -> None:
    """W3: finalize succeeded, or waived by a person."""
    agent = scene.agent()
    blocker = scene.task()
    scene.task(assignee_agent_id=agent.id, blocked_by=(blocker.id,))
    with scene.db.writing() as connection:
        begun = Operations(connection).begin("r", blocker.id, "workspace_finalize", "now")
    scene.desk.change_task(blocker.id, "person", status="done")
    scene.desk.end_finalize(begun.id, succeeded=False, error="disk full")
    assert reasons(scene, agent) == []
    scene.desk.end_finalize(begun.id, succeeded=True)
    assert reasons(scene, agent) == [("dependency",)]


def test_taking_the_last_blocker_away_wakes_the_assignee(scene: Scene) -> None:
    agent = scene.agent()
    task = scene.task(assignee_agent_id=agent.id, blocked_by=(scene.task().id,))
    assert reasons(scene, agent) == []
    scene.desk.change_task(task.id, "person", blocked_by=())
    assert reasons(scene, agent) == [("dependency",)]


def test_an_answer_wakes_the_agent_that_asked(scene: Scene) -> None:
    """R2: approval."""
    agent = scene.agent()
    task = scene.task()
    asked = question(scene, task, agent, "ask_user_questions", payload={"q": "blue?"})
    answered = scene.desk.answer(asked.id, "answered", "person", {"a": "yes"})
    assert (answered.status, answered.response) == ("answered", {"a": "yes"})
    assert reasons(scene, agent) == [("approval",)]
    with pytest.raises(Conflict, match="already") as caught:
        scene.desk.answer(asked.id, "answered", "person")
    assert caught.value.code == "already_resolved"


def test_accepting_waits_for_the_workspace_of_the_run_that_asked(scene: Scene) -> None:
    """W4: 409 while pending and after a failure, until a retry succeeds or a person waives it."""
    agent, task = scene.agent(), scene.task()
    asked = question(scene, task, agent, "request_confirmation", run_id="r1")
    with scene.db.writing() as connection:
        begun = Operations(connection).begin("r1", task.id, "workspace_finalize", "now")
    with pytest.raises(Conflict) as pending:
        scene.desk.answer(asked.id, "accepted", "person")
    scene.desk.end_finalize(begun.id, succeeded=False, error="conflict")
    with pytest.raises(Conflict) as failed:
        scene.desk.answer(asked.id, "accepted", "person")
    assert pending.value.code == "workspace_finalize_pending"
    assert failed.value.code == "workspace_finalize_failed"
    scene.desk.waive_finalize(begun.id, "person", "I looked")
    assert scene.desk.answer(asked.id, "accepted", "person").status == "accepted"


@pytest.mark.parametrize("kind", ["suggest_tasks", "ask_user_questions"])
def test_other_questions_are_not_gated(scene: Scene, kind: str) -> None:
    """W4: a run without workspace operations and suggest_tasks are not gated."""
    agent, task = scene.agent(), scene.task()
    asked = question(scene, task, agent, kind, run_id="r1")
    with scene.db.writing() as connection:
        Operations(connection).begin("r1", task.id, "workspace_finalize", "now")
    assert scene.desk.answer(asked.id, "accepted", "person").status == "accepted"


def test_rejecting_is_never_gated(scene: Scene) -> None:
    agent, task = scene.agent(), scene.task()
    asked = question(scene, task, agent, "request_confirmation", run_id="r1")
    with scene.db.writing() as connection:
        Operations(connection).begin("r1", task.id, "workspace_finalize", "now")
    assert scene.desk.answer(asked.id, "rejected", "person").status == "rejected"


def test_accepted_suggestions_become_tasks_below_the_task(scene: Scene) -> None:
    agent, helper = scene.agent(), scene.agent()
    task = scene.task()
    tasks = [{"title": "one", "assigneeAgentId": helper.id}, {"title": "two"}, {"no": "title"}]
    asked = question(scene, task, agent, "suggest_tasks", payload={"tasks": tasks})
    scene.desk.answer(asked.id, "accepted", "person")
    with scene.db.reading() as connection:
        below = Tasks(connection).list(parent_id=task.id)
    assert sorted(child.title for child in below) == ["one", "two"]
    assert reasons(scene, helper) == [("assignment",)]


def test_a_decision_wakes_the_agent_that_asked_for_it(scene: Scene) -> None:
    agent, task = scene.agent(), scene.task()
    asked = Approval(
        id="", company_id="local", kind="hire", requested_by=agent.id, task_ids=(task.id,)
    )
    approval = scene.desk.request_approval(asked)
    decided = scene.desk.decide(approval.id, "approved", "person", "go ahead")
    assert (decided.status, decided.decision_note) == ("approved", "go ahead")
    (run_id,) = scene.queued(agent)
    assert scene.store.get(run_id).task_id == task.id
    with pytest.raises(Conflict, match="already"):
        scene.desk.decide(approval.id, "rejected", "person")


def test_a_task_is_checked_out_by_one_run(scene: Scene) -> None:
    """R4: checkout with a conflict."""
    agent, other = scene.agent(), scene.agent()
    task = scene.task()
    assert scene.desk.checkout(task.id, agent.id, "r1").status == "in_progress"
    assert scene.desk.checkout(task.id, agent.id, "r1").checkout_run_id == "r1"
    with pytest.raises(Conflict, match="another run"):
        scene.desk.checkout(task.id, other.id, "r2")
    scene.desk.change_task(task.id, "person", status="done")
    with pytest.raises(Conflict, match="is done"):
        scene.desk.checkout(task.id, agent.id, "r1")


def test_a_task_cannot_wait_for_itself(scene: Scene) -> None:
    first = scene.task()
    second = scene.task(blocked_by=(first.id,))
    third = scene.task(blocked_by=(second.id,))
    with pytest.raises(Conflict, match="itself"):
        scene.desk.change_task(first.id, "person", blocked_by=(third.id,))


def test_an_assignee_must_exist(scene: Scene) -> None:
    with pytest.raises(NotFound):
        scene.task(assignee_agent_id="nobody")


def test_a_queued_run_is_cancelled_at_once(scene: Scene) -> None:
    run_id = scene.wake(scene.agent()).run_id
    assert scene.desk.cancel(run_id, "person", "not now") == "cancelled"
    view = scene.store.get(run_id)
    assert (view.status, view.error_code) == ("cancelled", "cancelled")
    assert [change.state for change in scene.store.history(run_id)] == ["queued", "cancelled"]
    assert scene.admit() == []
    with pytest.raises(Conflict, match="over"):
        scene.desk.cancel(run_id, "person", "again")


def test_cancelling_an_unknown_run_is_refused(scene: Scene) -> None:
    with pytest.raises(NotFound):
        scene.desk.cancel("01a1e13f-311e-7908-8b11-165454e95050", "person", "what?")
