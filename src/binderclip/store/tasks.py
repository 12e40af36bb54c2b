"""Tasks, their blockers and comments as rows."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, or_, select

from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.ids import new_id
from binderclip.contract.task import CLOSED_STATUSES, Comment, Task
from binderclip.store.shape import Shape, changed
from binderclip.store.tables import comments, companies, task_blockers, tasks

_shape = Shape(tasks, Task, "task")
_comment = Shape(comments, Comment, "comment")


class Tasks:
    """The tasks that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, task: Task, now: str) -> Task:
        """Add a task; it gets the company's next number, and an id if it has none."""
        number = self._next_number(task.company_id)
        task = changed(
            task,
            id=task.id or new_id(),
            identifier=f"T-{number}",
            created_at=now,
            updated_at=now,
            completed_at=now if task.status == "done" else None,
        )
        self._refuse_foreign(task.company_id, [*task.blocked_by, task.parent_id])
        _shape.insert(self._connection, task, number=number)
        self._set_blockers(task.id, task.blocked_by)
        return task

    def get(self, id: str, *, lock: bool = False) -> Task:
        return self._whole([_shape.get(self._connection, id, lock=lock)])[0]

    def find(self, company_id: str, text: str) -> Task:
        """The task that a person named by `T-12` or by the last characters of its id."""
        number = text[2:] if text[:2].upper() == "T-" else ""
        condition = (
            tasks.c.number == int(number)
            if number.isdigit()
            else tasks.c.id.endswith(text, autoescape=True)
        )
        query = select(tasks).where(tasks.c.company_id == company_id, condition).limit(2)
        rows = self._connection.execute(query).mappings().all()
        if len(rows) != 1:
            told = "No task is" if not rows else "Several tasks are"
            raise NotFound(f"{told} called {text!r}.", hint="`binderclip tasks` lists them.")
        return self._whole(rows)[0]

    def list(
        self,
        company_id: str | None = None,
        *,
        status: str | None = None,
        assignee: str | None = None,
        parent_id: str | None = None,
        text: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> builtins.list[Task]:
        """Tasks, newest first; `status` may name several, separated by commas."""
        conditions = []
        if company_id is not None:
            conditions.append(tasks.c.company_id == company_id)
        if status is not None:
            conditions.append(tasks.c.status.in_(status.split(",")))
        if assignee is not None:
            conditions.append(tasks.c.assignee_agent_id == assignee)
        if parent_id is not None:
            conditions.append(tasks.c.parent_id == parent_id)
        if text:
            found = (c.icontains(text, autoescape=True) for c in (tasks.c.title, tasks.c.body))
            conditions.append(or_(*found))
        rows = self._connection.execute(_shape.page(*conditions, limit=limit, before=before))
        return self._whole(rows.mappings().all())

    def change(self, id: str, now: str, **fields: Any) -> Task:
        """Set some fields; `blocked_by` replaces all blockers."""
        before = self.get(id, lock=True)
        status = fields.get("status", before.status)
        if status != before.status:
            fields["completed_at"] = now if status == "done" else None
        if status in CLOSED_STATUSES:
            fields["checkout_run_id"] = None
        if "blocked_by" in fields or "parent_id" in fields:
            named = [*fields.get("blocked_by", ()), fields.get("parent_id")]
            self._refuse_foreign(before.company_id, named)
            self._refuse_circle(id, fields.get("blocked_by", before.blocked_by))
            self._set_blockers(id, fields.get("blocked_by", before.blocked_by))
        _shape.change(self._connection, id, {**fields, "updated_at": now})
        return self.get(id)

    def checkout(self, id: str, agent_id: str, run_id: str, now: str) -> Task:
        """Take the task for a run; refused while the run of somebody else has it."""
        task = self.get(id, lock=True)
        if task.status in CLOSED_STATUSES:
            raise Conflict(f"{task.identifier} is {task.status}.", code="task_closed")
        if task.checkout_run_id not in (None, run_id):
            raise Conflict(
                f"{task.identifier} is checked out by another run, {task.checkout_run_id}.",
                code="checked_out",
            )
        if task.assignee_agent_id not in (None, agent_id):
            raise Conflict(f"{task.identifier} is assigned to another agent.", code="not_assignee")
        return self.change(
            id, now, checkout_run_id=run_id, assignee_agent_id=agent_id, status="in_progress"
        )

    def release(self, run_id: str, now: str) -> None:
        """Give back what an ended run had checked out; the tasks' statuses stay."""
        query = select(tasks.c.id).where(tasks.c.checkout_run_id == run_id)
        for id in self._connection.scalars(query).all():
            _shape.change(self._connection, id, {"checkout_run_id": None, "updated_at": now})

    def blockers(self, id: str) -> builtins.list[Task]:
        """The tasks that must be done before this one."""
        return self._linked(task_blockers.c.blocker_id, task_blockers.c.task_id == id)

    def dependents(self, id: str) -> builtins.list[Task]:
        """The tasks that wait for this one."""
        return self._linked(task_blockers.c.task_id, task_blockers.c.blocker_id == id)

    def comment(self, comment: Comment, now: str) -> Comment:
        _shape.get(self._connection, comment.task_id)
        comment = changed(comment, id=comment.id or new_id(), created_at=now)
        return _comment.insert(self._connection, comment)

    def comments(
        self, task_id: str, *, limit: int = 200, after: str | None = None
    ) -> builtins.list[Comment]:
        """What was said about a task, oldest first, after the comment `after`."""
        query = select(comments).where(comments.c.task_id == task_id).order_by(comments.c.id)
        if after is not None:
            query = query.where(comments.c.id > after)
        rows = self._connection.execute(query.limit(limit)).mappings()
        return [_comment.read(row) for row in rows]

    def get_comment(self, id: str) -> Comment:
        return _comment.read(_comment.get(self._connection, id))

    def _linked(self, column: Any, condition: Any) -> builtins.list[Task]:
        query = select(tasks).where(tasks.c.id.in_(select(column).where(condition)))
        return self._whole(self._connection.execute(query.order_by(tasks.c.id)).mappings().all())

    def _whole(self, rows: Iterable[RowMapping]) -> builtins.list[Task]:
        rows = list(rows)
        ids = [row["id"] for row in rows]
        blocked: dict[str, builtins.list[str]] = defaultdict(builtins.list)
        links = select(task_blockers).where(task_blockers.c.task_id.in_(ids))
        for link in self._connection.execute(links.order_by(task_blockers.c.blocker_id)):
            blocked[link.task_id].append(link.blocker_id)
        return [
            _shape.read(row, identifier=f"T-{row['number']}", blocked_by=tuple(blocked[row["id"]]))
            for row in rows
        ]

    def _next_number(self, company_id: str) -> int:
        # The company's row is locked, so that two tasks never get one number.
        held = select(companies.c.id).where(companies.c.id == company_id).with_for_update()
        if self._connection.scalar(held) is None:
            raise NotFound(f"There is no company {company_id!r}.")
        query = select(func.max(tasks.c.number)).where(tasks.c.company_id == company_id)
        return (self._connection.scalar(query) or 0) + 1

    def _set_blockers(self, id: str, blockers: Iterable[str]) -> None:
        self._connection.execute(delete(task_blockers).where(task_blockers.c.task_id == id))
        rows = [{"task_id": id, "blocker_id": blocker} for blocker in dict.fromkeys(blockers)]
        if rows:
            self._connection.execute(insert(task_blockers), rows)

    def _refuse_foreign(self, company_id: str, named: Iterable[str | None]) -> None:
        wanted = {id for id in named if id}
        query = select(tasks.c.id).where(tasks.c.id.in_(wanted), tasks.c.company_id == company_id)
        missing = wanted - set(self._connection.scalars(query))
        if missing:
            raise NotFound(f"There is no task {min(missing)!r} in this company.")

    def _refuse_circle(self, id: str, blockers: Iterable[str]) -> None:
        seen: set[str] = set()
        ahead = list(blockers)
        while ahead:
            blocker = ahead.pop()
            if blocker == id:
                raise Conflict("A task cannot wait for itself.", code="blocker_circle")
            if blocker not in seen:
                seen.add(blocker)
                ahead += [task.id for task in self.blockers(blocker)]
