"""Which session a run continues, and what a worn-out one leaves to the next (S1, S3, S5)."""

from __future__ import annotations

from sqlalchemy import Connection

from binderclip.contract.agent import Agent
from binderclip.contract.ids import short
from binderclip.contract.session import ResumeDecision, StoredSession
from binderclip.contract.task import Task
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.resume import decide
from binderclip.store import runs, sessions
from binderclip.store.tasks import Tasks

SHOWN_COMMENTS = 5
LONGEST_SUMMARY = 8000


def decide_session(
    connection: Connection,
    key: sessions.Key,
    agent: Agent,
    adapter: Adapter,
    cwd: str,
    now: str,
    target: str = "local",
) -> tuple[ResumeDecision, StoredSession | None]:
    """Resume, rotate or start fresh, with the reason that people are shown."""
    stored = sessions.load(connection, key)
    if stored is None:
        reset = sessions.last_reset(connection, key)
        if reset is not None:
            reason = f"the earlier session was reset by {reset['by']} at {reset['at']}"
            return ResumeDecision(action="reset", reason=reason), None
    limits = agent.session_limits or adapter.session_management
    return decide(stored, cwd=cwd, target=target, now=now, management=limits), stored


def handoff_note(
    connection: Connection, stored: StoredSession, decision: ResumeDecision, task: Task | None
) -> str:
    """Markdown for the first run of a new session: where the earlier one stood."""
    parts = [
        "# Handoff from your earlier session",
        f"You start in a fresh session because {decision.reason}. "
        f"The earlier one served {stored.runs} runs. Read on before you begin.",
        *_last_run(connection, stored),
    ]
    if task is not None:
        parts.append(f"## Task {task.identifier}: {task.title}\n\nIts status is {task.status}.")
        said = Tasks(connection).comments(task.id, limit=1000)[-SHOWN_COMMENTS:]
        if said:
            lines = [f"- {comment.author}: {_cut(comment.body, 1000)}" for comment in said]
            parts.append("## Last comments\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _last_run(connection: Connection, stored: StoredSession) -> list[str]:
    row = runs.find(connection, stored.last_run_id) if stored.last_run_id else None
    if row is None:
        return []
    told = row["summary"] or row["error_message"] or "It left no words."
    heading = f"## Last run {short(row['id'])}, {row['status']}"
    return [f"{heading}\n\n{_cut(told, LONGEST_SUMMARY)}"]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} […]"
