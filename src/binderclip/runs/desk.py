"""Tasks with their consequences: whoever assigns, comments, answers or finishes wakes somebody."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from sqlalchemy import Connection

from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.run import WakeReason
from binderclip.contract.task import (
    CLOSED_STATUSES,
    Approval,
    ApprovalStatus,
    Comment,
    Interaction,
    InteractionStatus,
    Task,
)
from binderclip.runs.admission import open_blocker
from binderclip.runs.control import Control
from binderclip.runs.dependencies import wake_dependents
from binderclip.runs.waking import Ask, wake
from binderclip.store.agents import Agents
from binderclip.store.decisions import Approvals, Interactions
from binderclip.store.operations import Operations
from binderclip.store.tasks import Tasks

_MENTION = re.compile(r"(?<![\w@])@([\w.-]*\w)")
_READY = ("todo", "in_progress")


def agent_actor(agent_id: str) -> str:
    """How an agent is named where people and agents act alike."""
    return f"agent:{agent_id}"


class Desk(Control):
    """The verbs on tasks and on what waits for a person."""

    def create_task(self, task: Task, actor: str) -> Task:
        """Add a task and wake its assignee, if nothing stands in its way."""
        with self.db.writing() as connection:
            created = self._create(connection, task, actor)
        self.nudge()
        return created

    def change_task(self, id: str, actor: str, **fields: Any) -> Task:
        """Set some fields; what that means for agents follows in the same transaction."""
        with self.db.writing() as connection:
            before = Tasks(connection).get(id, lock=True)
            waited = open_blocker(connection, id) is not None
            self._check_assignee(connection, msgspec.structs.replace(before, **fields))
            after = Tasks(connection).change(id, self.now(), **fields)
            self._note(connection, after.company_id, actor, "changed", ("task", id), **fields)
            self._follow_change(connection, before, after, waited, actor)
        self.nudge()
        return after

    def checkout(self, id: str, agent_id: str, run_id: str) -> Task:
        """Take a task for a run of an agent; Conflict if somebody else has it."""
        with self.db.writing() as connection:
            return Tasks(connection).checkout(id, agent_id, run_id, self.now())

    def comment(self, comment: Comment) -> Comment:
        """Say something about a task; its assignee and all who are mentioned wake."""
        with self.db.writing() as connection:
            said = Tasks(connection).comment(comment, self.now())
            task = Tasks(connection).get(said.task_id)
            mentioned = self._mentioned(connection, task, said)
            wakes: dict[str, WakeReason] = dict.fromkeys(mentioned, "mention")
            if task.assignee_agent_id is not None:
                wakes.setdefault(task.assignee_agent_id, "comment")
            for agent_id in sorted(wakes):
                if agent_actor(agent_id) != said.author:
                    ask = Ask(
                        agent_id,
                        task.id,
                        wakes[agent_id],
                        actor=said.author,
                        comment_id=said.id,
                    )
                    wake(connection, ask, self.clock())
        self.nudge()
        return said

    def ask(self, interaction: Interaction) -> Interaction:
        """Put a question of an agent before people."""
        with self.db.writing() as connection:
            task = Tasks(connection).get(interaction.task_id)
            asked = Interactions(connection).create(interaction, self.now())
            actor = agent_actor(asked.agent_id) if asked.agent_id else "person"
            subject = ("interaction", asked.id)
            self._note(connection, task.company_id, actor, "asked", subject, kind=asked.kind)
        return asked

    def answer(
        self,
        id: str,
        status: InteractionStatus,
        by: str,
        response: dict[str, Any] | None = None,
    ) -> Interaction:
        """A person's answer; the agent that asked wakes. Accepting may have to wait (W4)."""
        with self.db.writing() as connection:
            asked = Interactions(connection).get(id, lock=True)
            if asked.kind == "request_confirmation" and status == "accepted":
                _refuse_unfinalized(connection, asked.run_id)
            answered = Interactions(connection).resolve(id, status, by, self.now(), response)
            task = Tasks(connection).get(asked.task_id)
            if asked.kind == "suggest_tasks" and status == "accepted":
                self._create_suggested(connection, task, asked, response, by)
            self._note(connection, task.company_id, by, status, ("interaction", id))
            agent_id = asked.agent_id or task.assignee_agent_id
            if agent_id is not None and status != "cancelled":
                ask = Ask(agent_id, task.id, "approval", actor=by, approval_id=id)
                wake(connection, ask, self.clock())
        self.nudge()
        return answered

    def request_approval(self, approval: Approval) -> Approval:
        """Ask people for something that only they may allow."""
        with self.db.writing() as connection:
            for task_id in approval.task_ids:
                if Tasks(connection).get(task_id).company_id != approval.company_id:
                    raise NotFound(f"There is no task {task_id!r}.")
            return Approvals(connection).create(approval, self.now())

    def decide(self, id: str, status: ApprovalStatus, by: str, note: str | None = None) -> Approval:
        """A person's decision; the agent that asked wakes."""
        with self.db.writing() as connection:
            decided = Approvals(connection).decide(id, status, by, self.now(), note)
            self._note(connection, decided.company_id, by, status, ("approval", id))
            if decided.requested_by is not None and status != "cancelled":
                task_id = decided.task_ids[0] if decided.task_ids else None
                ask = Ask(decided.requested_by, task_id, "approval", actor=by, approval_id=id)
                wake(connection, ask, self.clock())
        self.nudge()
        return decided

    def _create(self, connection: Connection, task: Task, actor: str) -> Task:
        self._check_assignee(connection, task)
        created = Tasks(connection).create(task, self.now())
        subject = ("task", created.id)
        self._note(connection, created.company_id, actor, "created", subject, title=created.title)
        self._assign(connection, created, actor)
        return created

    def _create_suggested(
        self,
        connection: Connection,
        parent: Task,
        asked: Interaction,
        response: dict[str, Any] | None,
        by: str,
    ) -> None:
        """The tasks that an agent suggested, or those of them that the person kept."""
        suggested = (response or {}).get("tasks", asked.payload.get("tasks", []))
        for item in suggested if isinstance(suggested, list) else []:
            if isinstance(item, dict) and isinstance(item.get("title"), str):
                task = Task(
                    id="",
                    company_id=parent.company_id,
                    identifier="",
                    title=item["title"],
                    body=str(item.get("body") or item.get("description") or ""),
                    assignee_agent_id=item.get("assigneeAgentId"),
                    parent_id=parent.id,
                    cwd=parent.cwd,
                    created_by=by,
                )
                self._create(connection, task, by)

    def _follow_change(
        self, connection: Connection, before: Task, after: Task, waited: bool, actor: str
    ) -> None:
        if after.status == "done" and before.status != "done":
            wake_dependents(connection, after.id, self.clock())
        handed_over = after.assignee_agent_id != before.assignee_agent_id
        opened = after.status in _READY and before.status not in (*_READY, "in_review")
        freed = waited and open_blocker(connection, after.id) is None
        if handed_over or opened or freed:
            self._assign(connection, after, actor, "dependency" if freed else "assignment")

    def _assign(
        self, connection: Connection, task: Task, actor: str, reason: WakeReason = "assignment"
    ) -> None:
        agent_id = task.assignee_agent_id
        if agent_id is None or task.status not in _READY or actor == agent_actor(agent_id):
            return
        if open_blocker(connection, task.id) is None:
            ask = Ask(agent_id, task.id, reason, actor=actor)
            wake(connection, ask, self.clock())

    def _check_assignee(self, connection: Connection, task: Task) -> None:
        if task.assignee_agent_id is None:
            return
        agent = Agents(connection).get(task.assignee_agent_id)
        if agent.company_id != task.company_id or agent.status == "archived":
            raise NotFound(f"There is no agent {task.assignee_agent_id!r}.")

    def _mentioned(self, connection: Connection, task: Task, said: Comment) -> list[str]:
        names = {name.lower() for name in _MENTION.findall(said.body)}
        if not names or task.status in CLOSED_STATUSES:
            return []
        agents = Agents(connection).list(task.company_id, limit=1000)
        return [agent.id for agent in agents if agent.name.lower().replace(" ", "-") in names]


def _refuse_unfinalized(connection: Connection, run_id: str | None) -> None:
    gate = Operations(connection).gate_of_run(run_id) if run_id else "open"
    if gate == "pending":
        raise Conflict(
            "The workspace of the run that asked is still being finalized.",
            code="workspace_finalize_pending",
            hint="Try again in a moment.",
        )
    if gate == "failed":
        raise Conflict(
            "The workspace of the run that asked could not be finalized.",
            code="workspace_finalize_failed",
            hint="Try the finalize again, or waive it with a reason.",
        )
