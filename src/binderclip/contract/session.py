"""Sessions of a runtime and the decision to resume one (contract section 4)."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from binderclip.contract.wire import Wire

HEARTBEAT = "heartbeat"
"""The task key of a wake that belongs to no task."""

ResumeAction = Literal["fresh", "resume", "reset", "rotate"]


class SessionCodec(Protocol):
    """Turns stored session parameters into an adapter's own and back; opaque to the host (S2)."""

    def deserialize(self, raw: object) -> dict[str, Any] | None: ...

    def serialize(self, params: dict[str, Any] | None) -> dict[str, Any] | None: ...

    def get_display_id(self, params: dict[str, Any] | None) -> str | None: ...


class SessionManagement(Wire, frozen=True, kw_only=True):
    """What a runtime says about the life of its sessions (S5)."""

    compacts_itself: bool = False
    max_runs: int | None = None
    max_tokens: int | None = None
    max_age_sec: int | None = None


class StoredSession(Wire, frozen=True, kw_only=True):
    """A session as it is kept per agent, adapter type and task (S1)."""

    agent_id: str
    adapter_type: str
    task_key: str
    params: dict[str, Any]
    display_id: str | None = None
    cwd: str | None = None
    target: str = "local"
    last_run_id: str | None = None
    runs: int = 0
    tokens: int = 0
    created_at: str = ""
    updated_at: str = ""


class ResumeDecision(Wire, frozen=True, kw_only=True):
    """Whether a run continues a session, and the reason that people are shown."""

    action: ResumeAction
    reason: str
    params: dict[str, Any] | None = None
    display_id: str | None = None
    continues: str | None = None
    """The run that left the session, where that is known."""
