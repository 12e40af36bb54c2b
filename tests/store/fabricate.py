"""Orders, outcomes and whole run directories, as drivers and supervisors would leave them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from binderclip.contract.entry import Coverage
from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, ExecutionResult, RunOrder, StateChange, Usage
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, write_order, write_outcome

CREATED = "2026-03-01T12:00:00.000Z"
STARTED = "2026-03-01T12:00:01.000Z"
ENDED = "2026-03-01T12:00:09.000Z"
# Ids of one millisecond have no order; a second apart they sort as they were made.
_moments = itertools.count(1_772_366_400)
EXIT: dict[str, Any] = {
    "reason": "exited",
    "exitCode": 0,
    "signal": None,
    "startedAt": STARTED,
    "endedAt": ENDED,
    "stdoutBytes": 120,
    "stderrBytes": 0,
    "masked": 0,
    "leftovers": [],
    "truncated": [],
    "adopted": False,
    "cancel": None,
    "error": None,
    "killed": False,
}


def order(**changes: Any) -> RunOrder:
    agent = AgentRef(id="a1", company_id="c1", name="Ada", adapter_type="process")
    fields: dict[str, Any] = {
        "id": new_id(next(_moments)),
        "adapter_type": "process",
        "agent": agent,
        "cwd": "/tmp",
        "created_at": CREATED,
        "prompt": "go",
        "wake_reasons": ("manual",),
        "task_key": "T-1",
    }
    return RunOrder(**{**fields, **changes})


def result(**changes: Any) -> ExecutionResult:
    fields: dict[str, Any] = {
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "usage": Usage(input_tokens=10, cached_input_tokens=5, output_tokens=7),
        "usage_basis": "per_run",
        "cost_usd": 0.0123,
        "provider": "anthropic",
        "model": "opus",
        "session_params": {"sessionId": "s-1"},
        "session_display_id": "s-1",
        "summary": "done",
    }
    return ExecutionResult(**{**fields, **changes})


def change(state: Any, at: str = ENDED) -> StateChange:
    return StateChange(state=state, at=at, reason=f"is {state}", actor="cli")


def outcome(**changes: Any) -> RunOutcome:
    fields: dict[str, Any] = {
        "state": "succeeded",
        "ended_at": ENDED,
        "result": result(),
        "coverage": Coverage(lines=9, understood=9, unknown=0),
        "session_reason": "no earlier session",
        "history": (
            change("queued", CREATED),
            change("running", STARTED),
            change("succeeded"),
        ),
    }
    return RunOutcome(**{**fields, **changes})


def run_directory(home: Home, asked: RunOrder, ended: RunOutcome | None = None) -> None:
    """A run with one attempt, finished if it has an outcome."""
    write_order(home, asked)
    attempt = home.make_attempt_dir(asked.id, 1)
    meta = {"runId": asked.id, "attempt": 1, "startedAt": STARTED, "child": {"pid": 77}}
    (attempt / "meta.json").write_text(json.dumps(meta))
    if ended is not None:
        (attempt / "exit.json").write_text(json.dumps(EXIT))
        write_outcome(home, asked.id, ended)
