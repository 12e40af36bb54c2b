"""The environment test: checks and their verdict (contract section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from binderclip.contract.target import ExecutionTarget
from binderclip.contract.wire import Wire

Level = Literal["info", "warn", "error"]
Status = Literal["pass", "warn", "fail"]
Depth = Literal["preflight", "quick", "live"]
"""`preflight` starts no process; `quick` may ask for a version; `live` makes a tiny real call."""


class Check(Wire, frozen=True, kw_only=True):
    code: str
    level: Level
    message: str
    detail: str | None = None
    hint: str | None = None


class CheckRequest(Wire, frozen=True, kw_only=True):
    company_id: str
    adapter_type: str
    config: dict[str, Any]
    depth: Depth = "quick"
    execution_target: ExecutionTarget = ExecutionTarget()


class EnvironmentReport(Wire, frozen=True, kw_only=True, omit_defaults=False):
    adapter_type: str
    status: Status
    checks: tuple[Check, ...]
    tested_at: str


def verdict(checks: Sequence[Check]) -> Status:
    """Fail on any error, warn on any warning, else pass (E1)."""
    levels = {check.level for check in checks}
    if "error" in levels:
        return "fail"
    return "warn" if "warn" in levels else "pass"
