"""Wakes: why an agent shall run, and the answer to whoever asked for it (R2)."""

from __future__ import annotations

from binderclip.contract.run import RunState, WakeReason
from binderclip.contract.wire import Wire


class Wake(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One reason to run; wakes that wait for the same agent and task share a run."""

    id: str
    run_id: str
    agent_id: str
    task_id: str | None
    reason: WakeReason
    actor: str
    at: str
    prompt: str | None = None
    comment_id: str | None = None
    approval_id: str | None = None
    coalesced: bool = False


class WakeReceipt(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Which run a wake led to, and whether that run was waiting already."""

    run_id: str
    status: RunState
    coalesced: bool
