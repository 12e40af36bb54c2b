"""Workspace operations as rows, and the gates that they open or keep shut (W2-W4)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from binderclip.contract.errors import Conflict
from binderclip.contract.ids import new_id
from binderclip.contract.operation import (
    FinalizeGate,
    OperationKind,
    OperationStatus,
    WorkspaceOperation,
)
from binderclip.store.shape import Shape
from binderclip.store.tables import operations

FINALIZE: OperationKind = "workspace_finalize"
_shape = Shape(operations, WorkspaceOperation, "operation", detail=dict[str, Any])


class Operations:
    """The operations that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(
        self, run_id: str, task_id: str | None, kind: OperationKind, now: str, **detail: Any
    ) -> WorkspaceOperation:
        """Note the beginning; the row exists before the work, so that a crash leaves a trace."""
        begun = WorkspaceOperation(
            id=new_id(), run_id=run_id, task_id=task_id, kind=kind, started_at=now, detail=detail
        )
        return _shape.insert(self._connection, begun)

    def end(
        self,
        id: str,
        status: OperationStatus,
        now: str,
        error: str | None = None,
        **detail: Any,
    ) -> WorkspaceOperation:
        """Note how an operation ended; `detail` adds to what was noted before."""
        told = {**self.get(id).detail, **detail}
        fields = {"status": status, "ended_at": now, "error": error, "detail": told}
        _shape.change(self._connection, id, fields)
        return self.get(id)

    def waive(self, id: str, by: str, reason: str, now: str) -> WorkspaceOperation:
        """A person lets work go on although this finalize failed (W4)."""
        if self.get(id).status != "failed":
            raise Conflict("Only a failed operation can be waived.", code="not_failed")
        fields = {"status": "waived", "waived_by": by, "waive_reason": reason, "ended_at": now}
        _shape.change(self._connection, id, fields)
        return self.get(id)

    def get(self, id: str) -> WorkspaceOperation:
        return _shape.read(_shape.get(self._connection, id))

    def of_run(self, run_id: str) -> list[WorkspaceOperation]:
        """A run's operations, oldest first."""
        query = select(operations).where(operations.c.run_id == run_id).order_by(operations.c.id)
        return [_shape.read(row) for row in self._connection.execute(query).mappings()]

    def of_task(self, task_id: str) -> list[WorkspaceOperation]:
        query = select(operations).where(operations.c.task_id == task_id).order_by(operations.c.id)
        return [_shape.read(row) for row in self._connection.execute(query).mappings()]

    def gate_of_run(self, run_id: str) -> FinalizeGate:
        """Whether the workspace of a run is finalized; one without operations is open (W4)."""
        return _gate(self.of_run(run_id))

    def gate_of_task(self, task_id: str) -> FinalizeGate:
        """Whether the workspaces of a task's runs are finalized, the last run's word counting."""
        return _gate(self.of_task(task_id))


def _gate(found: list[WorkspaceOperation]) -> FinalizeGate:
    if not found:
        return "open"
    last_run = found[-1].run_id
    ends = [op for op in found if op.run_id == last_run and op.kind == FINALIZE]
    if not ends or ends[-1].status == "running":
        return "pending"
    return "failed" if ends[-1].status == "failed" else "open"
