"""Operations on a run's workspace, and the gate that they are (W2-W4)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from binderclip.contract.wire import Wire

OperationKind = Literal["worktree_prepare", "execute", "workspace_finalize"]
OperationStatus = Literal["running", "succeeded", "failed", "waived"]
FinalizeGate = Literal["open", "pending", "failed"]


class WorkspaceOperation(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One operation of one run; a failed finalize can be tried again or waived by a person."""

    id: str
    run_id: str
    task_id: str | None
    kind: OperationKind
    status: OperationStatus = "running"
    started_at: str = ""
    ended_at: str | None = None
    error: str | None = None
    detail: dict[str, Any] = msgspec.field(default_factory=dict)
    waived_by: str | None = None
    waive_reason: str | None = None
