"""Finished runs made of recorded output, by the path that recovery takes; no agent is started."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec

from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, RunOrder, RuntimeSession
from binderclip.contract.wire import iso_time
from binderclip.plugins.registry import load_adapter
from binderclip.runs.recover import take_over
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.testing.fixtures import Case
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, write_order

# Ids of one millisecond have no order; a minute apart they sort as they were made.
_moments = itertools.count(1_772_366_400, 60)
EXIT: dict[str, Any] = {
    "reason": "exited",
    "exitCode": 0,
    "signal": None,
    "masked": 0,
    "leftovers": [],
    "truncated": [],
    "adopted": False,
    "cancel": None,
    "error": None,
    "killed": False,
}


def order_for(adapter: Adapter, **changes: Any) -> RunOrder:
    at = next(_moments)
    agent = AgentRef(id="cli", company_id="local", name="cli", adapter_type=adapter.type)
    fields: dict[str, Any] = {
        "id": new_id(at),
        "adapter_type": adapter.type,
        "agent": agent,
        "cwd": "/tmp",
        "created_at": iso_time(at),
        "prompt": "go",
        "wake_reasons": ("manual",),
    }
    return RunOrder(**{**fields, **changes})


def attempt_files(
    home: Home, order: RunOrder, stdout: bytes, stderr: bytes = b"", number: int = 1, **exit: Any
) -> None:
    """What a supervisor leaves behind of one attempt."""
    begin = 1_772_366_400_000_000 + number * 1_000_000
    directory = home.make_attempt_dir(order.id, number)
    (directory / "stdout.log").write_bytes(stdout)
    (directory / "stderr.log").write_bytes(stderr)
    index = f"{begin} o {len(stdout)}\n{begin + 1000} e {len(stderr)}\n"
    (directory / "index").write_text(index)
    started, ended = iso_time(begin / 1e6), iso_time(begin / 1e6 + 0.5)
    meta = {"runId": order.id, "attempt": number, "startedAt": started, "adapterVersion": "1"}
    (directory / "meta.json").write_text(json.dumps(meta))
    sizes = {"stdoutBytes": len(stdout), "stderrBytes": len(stderr)}
    document = {**EXIT, **sizes, "startedAt": started, "endedAt": ended, **exit}
    (directory / "exit.json").write_text(json.dumps(document))


def finish(home: Home, order: RunOrder) -> RunOutcome:
    return take_over(home, order.id, load_adapter)


def recorded_run(home: Home, adapter: Adapter, case: Case, **changes: Any) -> RunOrder:
    """The run that a recording was made of, finished."""
    params = adapter.session_codec.deserialize(case.given.get("session"))
    shown = adapter.session_codec.get_display_id(params)
    runtime = RuntimeSession(session_params=params, session_id=shown, session_display_id=shown)
    order = order_for(adapter, runtime=runtime, cwd=case.given.get("cwd") or "/tmp", **changes)
    write_order(home, order)
    code = None if case.signal else case.exit_code
    reason = case.given.get("reason", "exited")
    attempt_files(
        home, order, case.stdout, case.stderr, exitCode=code, signal=case.signal, reason=reason
    )
    finish(home, order)
    return order


def spoken_run(home: Home, *entries: dict[str, Any], **changes: Any) -> RunOrder:
    """A finished run whose transcript is exactly these entries."""
    order = order_for(load_adapter("codex_local"), **changes)
    write_order(home, order)
    attempt_files(home, order, b"")
    finish(home, order)
    lines = [b'{"parser":"codex_local","version":"1"}']
    for seq, entry in enumerate(entries):
        host = {"ts": order.created_at, "id": f"1o{seq}.0", "seq": seq, "attempt": 1}
        line = {"type": "entry", "entry": {**host, "stream": "stdout", "offset": seq, **entry}}
        lines.append(msgspec.json.encode(line))
    path = home.attempt_dir(order.id, 1) / "transcript.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return order
