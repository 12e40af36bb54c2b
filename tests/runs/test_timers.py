"""Heartbeats with a clock of the test's own."""

from __future__ import annotations

from binderclip.runs.timers import beat
from binderclip.store.agents import Agents
from tests.runs.company import Scene


def test_an_agent_wakes_every_so_many_minutes(scene: Scene) -> None:
    """R2: timer."""
    agent = scene.agent(heartbeat_minutes=5)
    assert beat(scene.db, scene.clock()) == []
    scene.clock.pass_minutes(5)
    (first,) = beat(scene.db, scene.clock())
    assert beat(scene.db, scene.clock()) == []
    assert scene.store.get(first.run_id).wake_reasons == ("timer",)
    scene.admit()
    scene.end(first.run_id)
    scene.clock.pass_minutes(5)
    (second,) = beat(scene.db, scene.clock())
    assert second.run_id != first.run_id
    assert scene.queued(agent) == [second.run_id]


def test_missed_beats_are_not_made_up_for(scene: Scene) -> None:
    scene.agent(heartbeat_minutes=1)
    scene.clock.pass_minutes(600)
    assert len(beat(scene.db, scene.clock())) == 1
    assert beat(scene.db, scene.clock()) == []


def test_a_beat_joins_a_run_that_waits(scene: Scene) -> None:
    agent = scene.agent(heartbeat_minutes=1)
    waiting = scene.wake(agent).run_id
    scene.clock.pass_minutes(1)
    (receipt,) = beat(scene.db, scene.clock())
    assert (receipt.run_id, receipt.coalesced) == (waiting, True)
    assert scene.store.get(waiting).wake_reasons == ("manual", "timer")


def test_paused_agents_and_agents_without_a_rhythm_sleep(scene: Scene) -> None:
    scene.agent()
    paused = scene.agent(heartbeat_minutes=1)
    scene.roster.change_agent(paused.id, "person", status="paused")
    stopped = scene.agent(heartbeat_minutes=1)
    scene.roster.change_agent(stopped.id, "person", heartbeat_minutes=None)
    scene.clock.pass_minutes(10)
    assert beat(scene.db, scene.clock()) == []
    with scene.db.reading() as connection:
        assert Agents(connection).get(stopped.id).next_beat_at is None
