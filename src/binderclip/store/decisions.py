"""What waits for a person: interactions of tasks, and approvals."""

from __future__ import annotations

import builtins
from typing import Any

from sqlalchemy import Connection

from binderclip.contract.errors import Conflict
from binderclip.contract.ids import new_id
from binderclip.contract.task import Approval, ApprovalStatus, Interaction, InteractionStatus
from binderclip.store.shape import Shape, changed
from binderclip.store.tables import approvals, interactions

_interaction = Shape(
    interactions, Interaction, "interaction", payload=dict[str, Any], response=dict[str, Any]
)
_approval = Shape(approvals, Approval, "approval", payload=dict[str, Any], task_ids=tuple[str, ...])


class Interactions:
    """The questions that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, interaction: Interaction, now: str) -> Interaction:
        asked = changed(interaction, id=interaction.id or new_id(), created_at=now)
        return _interaction.insert(self._connection, asked)

    def get(self, id: str, *, lock: bool = False) -> Interaction:
        return _interaction.read(_interaction.get(self._connection, id, lock=lock))

    def list(
        self,
        task_id: str | None = None,
        *,
        status: InteractionStatus | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> builtins.list[Interaction]:
        conditions = []
        if task_id is not None:
            conditions.append(interactions.c.task_id == task_id)
        if status is not None:
            conditions.append(interactions.c.status == status)
        page = _interaction.page(*conditions, limit=limit, before=before)
        return [_interaction.read(row) for row in self._connection.execute(page).mappings()]

    def resolve(
        self,
        id: str,
        status: InteractionStatus,
        by: str,
        now: str,
        response: dict[str, Any] | None = None,
    ) -> Interaction:
        """Answer a question once; whoever comes second is told."""
        found = self.get(id, lock=True)
        if found.status != "open":
            raise Conflict(f"This was {found.status} already.", code="already_resolved")
        fields = {
            "status": status,
            "response": response,
            "resolved_at": now,
            "resolved_by": by,
        }
        _interaction.change(self._connection, id, fields)
        return self.get(id)


class Approvals:
    """The approvals that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, approval: Approval, now: str) -> Approval:
        asked = changed(approval, id=approval.id or new_id(), created_at=now)
        return _approval.insert(self._connection, asked)

    def get(self, id: str, *, lock: bool = False) -> Approval:
        return _approval.read(_approval.get(self._connection, id, lock=lock))

    def list(
        self,
        company_id: str | None = None,
        *,
        status: ApprovalStatus | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> builtins.list[Approval]:
        conditions = []
        if company_id is not None:
            conditions.append(approvals.c.company_id == company_id)
        if status is not None:
            conditions.append(approvals.c.status == status)
        page = _approval.page(*conditions, limit=limit, before=before)
        return [_approval.read(row) for row in self._connection.execute(page).mappings()]

    def decide(
        self, id: str, status: ApprovalStatus, by: str, now: str, note: str | None = None
    ) -> Approval:
        """Decide once; whoever comes second is told."""
        found = self.get(id, lock=True)
        if found.status != "pending":
            raise Conflict(f"This was {found.status} already.", code="already_resolved")
        fields = {"status": status, "decision_note": note, "decided_at": now, "decided_by": by}
        _approval.change(self._connection, id, fields)
        return self.get(id)
