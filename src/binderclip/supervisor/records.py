"""What a driver and a supervisor say to each other, as plain data.

Named tuples: every start of a run makes these classes, and data classes take five times as long.
"""

from __future__ import annotations

import os
from typing import Any, Literal, Mapping, NamedTuple, Sequence

Mode = Literal["file", "pipe"]
Reason = Literal[
    "exited",
    "timeout",
    "idle_timeout",
    "cancelled",
    "output_limit",
    "disk_full",
    "spawn_failed",
    "aborted",
]


class Capture(NamedTuple):
    """How each stream reaches its log.

    `file`: the child writes straight into the log. `pipe`: through a FIFO that the supervisor
    reads, which a script cannot truncate.
    """

    stdout: Mode = "file"
    stderr: Mode = "pipe"


class Limits(NamedTuple):
    """Limits that hold even when nobody but the supervisor is alive; 0 means none.

    A `grace_sec` of 0 is no grace: SIGKILL follows SIGTERM at once.
    """

    timeout_sec: float = 14400
    idle_timeout_sec: float = 3600
    grace_sec: float = 15
    max_log_bytes: int = 4 << 30
    disk_reserve_bytes: int = 64 << 20
    disk_wait_sec: float = 600
    """How long pipe capture lets the child wait for space on a full disk."""

    def to_json(self) -> dict[str, float]:
        return {
            "timeoutSec": self.timeout_sec,
            "idleTimeoutSec": self.idle_timeout_sec,
            "graceSec": self.grace_sec,
            "maxLogBytes": self.max_log_bytes,
            "diskReserveBytes": self.disk_reserve_bytes,
            "diskWaitSec": self.disk_wait_sec,
        }


class Request(NamedTuple):
    """Everything about one attempt; nothing is inherited from the process that asks."""

    attempt_dir: str | os.PathLike[str]
    """A directory that exists."""
    run_id: str
    attempt: int
    argv: Sequence[str]
    env: Mapping[str, str]
    """The child's complete environment; it should carry `marker`."""
    cwd: str
    capture: Capture = Capture()
    limits: Limits = Limits()
    marker: str = ""
    """`NAME=value` by which strays of this run are found; default `PAPERCLIP_RUN_ID=<run id>`."""
    secrets: Sequence[str] = ()
    """Values to mask in the logs, with their escaped forms; those under 8 bytes are ignored."""
    secret_env: Sequence[str] = ()
    """Names in `env` whose values are secrets: masked, and found again by an adopter."""
    meta: Mapping[str, Any] = {}
    """The driver's own facts, written into meta.json as they are; it never holds a secret."""

    def to_json(self) -> dict[str, Any]:
        return {
            "attemptDir": os.path.abspath(self.attempt_dir),
            "runId": self.run_id,
            "attempt": self.attempt,
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": self.cwd,
            "capture": self.capture._asdict(),
            "limits": self.limits.to_json(),
            "marker": self.marker or "PAPERCLIP_RUN_ID=" + self.run_id,
            "secrets": list(self.secrets),
            "secretEnv": list(self.secret_env),
            "meta": dict(self.meta),
        }


class Launched(NamedTuple):
    """A supervisor that holds the attempt's lock."""

    supervisor_pid: int
    child_pid: int | None
    """None only after an adoption that found nothing alive: exit.json is there already."""
    started_at: str | None


class Leftover(NamedTuple):
    """A process that outlived the main child and was ended by the supervisor."""

    pid: int
    command: str


class Truncation(NamedTuple):
    """A log was cut behind the writer's back; bytes before `at` may be lost."""

    stream: Literal["stdout", "stderr"]
    at: int


class Cancel(NamedTuple):
    by: str
    reason: str


class ExitRecord(NamedTuple):
    """The end of an attempt (exit.json). Its existence means: the logs are complete."""

    reason: Reason
    exit_code: int | None
    signal: str | None
    started_at: str | None
    ended_at: str
    stdout_bytes: int
    stderr_bytes: int
    masked: int
    leftovers: tuple[Leftover, ...]
    truncated: tuple[Truncation, ...]
    adopted: bool
    """An adopter wrote this; exit_code and signal are then unknown."""
    cancel: Cancel | None
    error: Mapping[str, Any] | None
    """`where`, `message` and, from the system, `errno`."""
    killed: bool
    """SIGTERM was not enough."""

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ExitRecord:
        cancel = document["cancel"]
        return cls(
            reason=document["reason"],
            exit_code=document["exitCode"],
            signal=document["signal"],
            started_at=document["startedAt"],
            ended_at=document["endedAt"],
            stdout_bytes=document["stdoutBytes"],
            stderr_bytes=document["stderrBytes"],
            masked=document["masked"],
            leftovers=tuple(Leftover(x["pid"], x["command"]) for x in document["leftovers"]),
            truncated=tuple(Truncation(x["stream"], x["at"]) for x in document["truncated"]),
            adopted=document["adopted"],
            cancel=Cancel(cancel["by"], cancel["reason"]) if cancel else None,
            error=document["error"],
            killed=document["killed"],
        )


class LaunchRefused(Exception):
    """No child was started by this call; `reason` says why.

    `locked`: another supervisor has the attempt. `finished`: exit.json is there. `started`: an
    earlier supervisor began it and is gone, so it must be adopted. `aborted`: the supervisor failed
    and ended the attempt. `no_answer`: it died before it could say anything.
    """

    def __init__(self, reason: str, message: str, error: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error


class SpawnFailed(LaunchRefused):
    """The program could not be started; the attempt is complete and exit.json has the `error`."""
