"""Tasks that wait for others: woken once, when all blockers are done and finalized (W3)."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from binderclip.contract.task import CLOSED_STATUSES, Task
from binderclip.contract.wake import WakeReceipt
from binderclip.contract.wire import iso_time
from binderclip.runs.admission import open_blocker
from binderclip.runs.waking import Ask, wake
from binderclip.store.tables import wakes
from binderclip.store.tasks import Tasks

ACTOR = "system"


def wake_dependents(connection: Connection, task_id: str, now: float) -> list[WakeReceipt]:
    """Wake the assignees of all tasks that this one was the last obstacle of."""
    if Tasks(connection).get(task_id).status != "done":
        return []
    ready = [task for task in Tasks(connection).dependents(task_id) if _ready(connection, task)]
    # In one order everywhere, since each wake holds its agent's row.
    ready.sort(key=lambda task: task.assignee_agent_id or "")
    return [_wake(connection, task, now) for task in ready]


def _ready(connection: Connection, task: Task) -> bool:
    if task.assignee_agent_id is None or task.status in CLOSED_STATUSES:
        return False
    return open_blocker(connection, task.id) is None and not _told(connection, task)


def _told(connection: Connection, task: Task) -> bool:
    """Whether it was woken for this since its last blocker was done."""
    done = max(b.completed_at or "" for b in Tasks(connection).blockers(task.id))
    query = select(func.max(wakes.c.at)).where(
        wakes.c.task_id == task.id, wakes.c.reason == "dependency"
    )
    return (connection.scalar(query) or "") >= done


def _wake(connection: Connection, task: Task, now: float) -> WakeReceipt:
    assert task.assignee_agent_id is not None
    if task.status == "blocked":
        Tasks(connection).change(task.id, iso_time(now), status="todo")
    ask = Ask(task.assignee_agent_id, task.id, "dependency", actor=ACTOR)
    return wake(connection, ask, now)
