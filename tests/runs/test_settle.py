"""What follows from a run's end: retries, the breaker, wakes of dependents, each of them once."""

from __future__ import annotations

from typing import Any

import pytest

from binderclip.contract.agent import Agent
from binderclip.contract.run import ExecutionResult
from binderclip.contract.wire import iso_time
from binderclip.runs.settle import back_off, failure_sign, settle
from binderclip.store.activity import Activities
from binderclip.store.agents import Pauses
from binderclip.store.runfile import RunOutcome
from tests.runs.company import Scene

OVERLOADED: dict[str, Any] = {
    "error_code": "upstream",
    "error_family": "transient_upstream",
    "error_message": "overloaded",
}
BROKEN = {"error_code": "process_failed", "error_message": "exit code 1"}


def retry_of(scene: Scene, agent: Agent) -> Any:
    (run_id,) = scene.queued(agent)
    return scene.store.get(run_id)


def test_a_transient_failure_is_tried_again_later(scene: Scene) -> None:
    """Design 5: a retry by policy is a new run with retryOf and notBefore."""
    agent, task = scene.agent(), scene.task()
    failed = scene.wake(agent, task, reason="comment", prompt="p", comment_id="c").run_id
    scene.admit()
    scene.end(failed, **OVERLOADED)
    again = retry_of(scene, agent)
    assert (again.retry_of, again.prompt, again.task_id) == (failed, "p", task.id)
    assert again.wake_reasons == ("retry", "comment")
    assert again.not_before == iso_time(scene.clock() + back_off(0))
    assert scene.admit() == []
    scene.clock.pass_minutes(1)
    assert scene.admit() == [again.id]


def test_back_off_grows_to_an_hour(scene: Scene) -> None:
    assert [back_off(n) for n in (0, 1, 2, 20)] == [30, 60, 120, 3600]


def test_a_retry_honours_the_time_that_the_provider_named(scene: Scene) -> None:
    agent = scene.agent()
    later = iso_time(scene.clock() + 7200)
    quota = {"error_code": "quota", "error_family": "provider_quota", "error_message": "wait"}
    scene.run(agent, **quota, retry_not_before=later)
    assert retry_of(scene, agent).not_before == later


def test_a_time_that_is_none_does_not_hold_up_a_retry(scene: Scene) -> None:
    """A8: output is untrusted."""
    agent = scene.agent()
    scene.run(agent, **OVERLOADED, retry_not_before="tomorrow, perhaps")
    assert retry_of(scene, agent).not_before == iso_time(scene.clock() + back_off(0))


@pytest.mark.parametrize(
    "result",
    [
        BROKEN,
        {"error_code": "auth", "error_family": "auth", "error_message": "no key"},
        {"error_code": "quota", "error_family": "provider_quota", "error_message": "used up"},
        {"error_code": "cancelled", "error_message": "by a person"},
        {"error_code": "budget", "error_message": "spent"},
        {},
    ],
)
def test_what_does_not_pass_by_itself_is_not_tried_again(
    scene: Scene, result: dict[str, Any]
) -> None:
    agent = scene.agent()
    scene.run(agent, **result)
    assert scene.queued(agent) == []


def test_retries_end_at_the_agents_limit(scene: Scene) -> None:
    agent = scene.agent(retry_limit=1)
    scene.run(agent, **OVERLOADED)
    scene.clock.pass_minutes(60)
    (second,) = scene.admit()
    scene.end(second, **{**OVERLOADED, "error_message": "another"})
    assert scene.queued(agent) == []


def test_three_equal_failures_pause_agent_and_task_visibly(scene: Scene) -> None:
    """Design 5: three runs in a row with equal code and message, digits and ids removed."""
    agent, task = scene.agent(), scene.task()
    for n in range(3):
        message = f"exit code {n} of run 01a1e13f-311e-7908-8b11-165454e9505{n} after {n} s"
        scene.run(agent, task, error_code="process_failed", error_message=message)
    with scene.db.reading() as connection:
        (pause,) = Pauses(connection).open(agent.id)
        verbs = [done.verb for done in Activities(connection).list(subject=("agent", agent.id))]
    assert (pause.task_key, pause.error_code) == (task.id, "process_failed")
    assert "paused" in verbs
    run_id = scene.wake(agent, task).run_id
    assert scene.admit() == []
    assert "reset the breaker" in (scene.waiting(run_id) or "")
    other = scene.wake(agent, scene.task()).run_id
    assert scene.admit() == [other]


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_what_passes_by_itself_has_all_its_retries_before_the_breaker_trips(
    scene: Scene, limit: int
) -> None:
    """Design 5: equal transient failures trip it only when no retry is left."""
    agent = scene.agent(retry_limit=limit)
    scene.wake(agent)
    for retries in range(limit + 1):
        (run_id,) = scene.admit()
        assert paused(scene, agent) == []
        scene.end(run_id, **OVERLOADED)
        assert len(scene.queued(agent)) == (1 if retries < limit else 0)
        scene.clock.pass_minutes(61)
    assert bool(paused(scene, agent)) is (limit + 1 >= 3)


def test_retries_of_several_wakes_trip_the_breaker_together(scene: Scene) -> None:
    """Design 5: a short row of retries counts on with the next one."""
    agent = scene.agent(retry_limit=1)
    for expected in (False, True):
        scene.wake(agent)
        for _ in range(2):
            (run_id,) = scene.admit()
            scene.end(run_id, **OVERLOADED)
            scene.clock.pass_minutes(61)
        assert bool(paused(scene, agent)) is expected


def paused(scene: Scene, agent: Agent) -> list[Any]:
    with scene.db.reading() as connection:
        return list(Pauses(connection).open(agent.id))


def test_a_person_resets_the_breaker_and_failures_count_afresh(scene: Scene) -> None:
    agent = scene.agent()
    for _ in range(3):
        scene.run(agent, **BROKEN)
    waiting = scene.wake(agent).run_id
    assert scene.admit() == []
    scene.clock.pass_minutes(1)
    assert scene.desk.reset_pause(agent.id, "heartbeat", "person") is True
    assert scene.desk.reset_pause(agent.id, "heartbeat", "person") is False
    assert scene.admit() == [waiting]
    scene.end(waiting, **BROKEN)
    for _ in range(2):
        scene.run(agent, **BROKEN)
    assert scene.admit() == []
    scene.wake(agent)
    assert scene.admit() == []


@pytest.mark.parametrize(
    "between", [{}, {"error_code": "auth", "error_message": "no key"}], ids=["success", "other"]
)
def test_failures_that_differ_do_not_trip_the_breaker(
    scene: Scene, between: dict[str, Any]
) -> None:
    agent = scene.agent()
    for result in (BROKEN, BROKEN, between, BROKEN, BROKEN):
        scene.run(agent, **result)
    assert scene.admit() == []
    run_id = scene.wake(agent).run_id
    assert scene.admit() == [run_id]


def test_a_cancelled_run_is_no_failure(scene: Scene) -> None:
    agent = scene.agent()
    cancelled = {"error_code": "cancelled", "error_message": "by a person"}
    for result in (BROKEN, cancelled, BROKEN, cancelled, cancelled, cancelled):
        scene.run(agent, **result)
    run_id = scene.wake(agent).run_id
    assert scene.admit() == [run_id]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("took 12 s", "took 9001 s", True),
        ("request req_011CSHoEeqs5C35 failed", "request req_99ZZ1oEeqs5CxXx failed", True),
        ("no key", "no cash", False),
    ],
)
def test_failures_are_compared_without_digits_and_ids(one: str, other: str, equal: bool) -> None:
    def sign(message: str) -> str | None:
        return failure_sign(
            ExecutionResult(
                exit_code=1,
                signal=None,
                timed_out=False,
                error_code="upstream",
                error_message=message,
            )
        )

    assert (sign(one) == sign(other)) is equal


def test_settling_twice_changes_nothing(scene: Scene) -> None:
    """D5: a crash anywhere repeats it without doubling."""
    agent = scene.agent()
    run_id = scene.wake(agent).run_id
    scene.admit()
    scene.end(run_id, **OVERLOADED)
    before = scene.queued(agent)
    outcome = RunOutcome(state="failed", ended_at=scene.desk.now())
    assert settle(scene.db, run_id, outcome, scene.clock()) is False
    assert scene.queued(agent) == before


def test_a_run_whose_agent_never_started_is_tried_again_at_once(scene: Scene) -> None:
    """D1: what never ran can be run without doubling anything."""
    agent = scene.agent()
    run_id = scene.wake(agent).run_id
    scene.admit()
    outcome = RunOutcome(state="lost", ended_at=scene.desk.now())
    assert settle(scene.db, run_id, outcome, scene.clock(), never_ran=True)
    again = retry_of(scene, agent)
    assert again.retry_of == run_id
    assert scene.admit() == [again.id]


def test_a_finished_run_gives_back_what_it_checked_out(scene: Scene) -> None:
    agent, task = scene.agent(), scene.task()
    run_id = scene.wake(agent, task).run_id
    scene.admit()
    assert scene.desk.checkout(task.id, agent.id, run_id).checkout_run_id == run_id
    scene.end(run_id)
    after = scene.desk.checkout(task.id, agent.id, "another")
    assert (after.checkout_run_id, after.status) == ("another", "in_progress")
