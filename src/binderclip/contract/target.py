"""Where an agent runs: on this machine, or on another one over SSH."""

from __future__ import annotations

from typing import Literal

from binderclip.contract.wire import Wire


class ExecutionTarget(Wire, frozen=True, kw_only=True):
    """`local` needs nothing else; `ssh` names the host and the directory there."""

    kind: Literal["local", "ssh"] = "local"
    host: str | None = None
    port: int | None = None
    user: str | None = None
    remote_cwd: str | None = None
