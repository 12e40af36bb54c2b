"""Heartbeats: agents that wake every so many minutes."""

from __future__ import annotations

from binderclip.contract.wake import WakeReceipt
from binderclip.contract.wire import iso_time
from binderclip.runs.waking import Ask, wake
from binderclip.store.agents import Agents
from binderclip.store.database import Database

ACTOR = "timer"


def beat(db: Database, now: float) -> list[WakeReceipt]:
    """Wake every agent whose timer has run out, once, however many beats were missed."""
    with db.reading() as connection:
        if not Agents(connection).due(iso_time(now)):
            return []
    with db.writing() as connection:
        agents = Agents(connection)
        receipts = []
        for agent in agents.due(iso_time(now)):
            agents.change(
                agent.id, agent.updated_at, next_beat_at=next_beat(agent.heartbeat_minutes, now)
            )
            if agent.heartbeat_minutes:
                ask = Ask(agent.id, reason="timer", actor=ACTOR)
                receipts.append(wake(connection, ask, now))
        return receipts


def next_beat(minutes: float | None, now: float) -> str | None:
    """When an agent's timer runs out next; None without one."""
    return iso_time(now + minutes * 60) if minutes else None
