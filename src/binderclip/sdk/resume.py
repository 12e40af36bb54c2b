"""Deciding whether a run continues a session, and what is kept afterwards (S1-S5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from binderclip.contract.run import ExecutionResult
from binderclip.contract.session import ResumeDecision, SessionManagement, StoredSession

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")


def safe_session_id(value: object) -> str | None:
    """A session id that may be stored and passed on a command line, or None (A8)."""
    return value if isinstance(value, str) and _SAFE_ID.fullmatch(value) else None


class SessionParams:
    """The default codec: `{sessionId, cwd?, …}` with a valid id, or nothing (S2)."""

    def deserialize(self, raw: object) -> dict[str, Any] | None:
        if not isinstance(raw, Mapping):
            return None
        found = safe_session_id(raw.get("sessionId") or raw.get("session_id"))
        return {**raw, "sessionId": found} if found else None

    def serialize(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        return self.deserialize(params)

    def get_display_id(self, params: dict[str, Any] | None) -> str | None:
        return safe_session_id((params or {}).get("sessionId"))


def decide(
    stored: StoredSession | None,
    *,
    cwd: str,
    target: str = "local",
    now: str,
    management: SessionManagement | None = None,
) -> ResumeDecision:
    """Resume the stored session, or start fresh and say why."""
    if stored is None:
        return ResumeDecision(action="fresh", reason="no earlier session")
    if stored.target != target:
        return ResumeDecision(
            action="fresh",
            reason=f"the earlier session lives on {stored.target}, this run on {target}",
        )
    if stored.cwd and _resolved(stored.cwd) != _resolved(cwd):
        return ResumeDecision(
            action="fresh",
            reason=f"the earlier session was made in another directory, {stored.cwd}",
        )
    worn = _worn_out(stored, management or SessionManagement(), now)
    if worn:
        return ResumeDecision(action="rotate", reason=worn)
    reason = (
        f"continues the session of run {stored.last_run_id[-8:]}"
        if stored.last_run_id
        else ("continues the stored session")
    )
    return ResumeDecision(
        action="resume",
        reason=reason,
        params=stored.params,
        display_id=stored.display_id,
        continues=stored.last_run_id,
    )


def next_session(earlier: dict[str, Any] | None, result: ExecutionResult) -> dict[str, Any] | None:
    """What to keep: `clearSession` gives none, the result's params win, else the earlier stay."""
    if result.clear_session and not result.session_params:
        return None
    return result.session_params or (None if result.clear_session else earlier)


def _resolved(path: str) -> Path:
    return Path(path).resolve()


def _worn_out(stored: StoredSession, limits: SessionManagement, now: str) -> str | None:
    if limits.compacts_itself:
        return None
    if limits.max_runs and stored.runs >= limits.max_runs:
        return f"the session has served {stored.runs} runs, the limit is {limits.max_runs}"
    if limits.max_tokens and stored.tokens >= limits.max_tokens:
        return f"the session has used {stored.tokens} tokens, the limit is {limits.max_tokens}"
    if limits.max_age_sec and stored.created_at:
        age = datetime.fromisoformat(now) - datetime.fromisoformat(stored.created_at)
        if age.total_seconds() >= limits.max_age_sec:
            return f"the session is older than {limits.max_age_sec} seconds"
    return None
