"""Parsing saved output offline: the same bytes always give the same transcript and result.

The path is that of a live run: lines, builder, `conclude`; only clock and process are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import msgspec

from binderclip.contract.entry import Coverage, Entry, Record, Stream, apply
from binderclip.contract.run import AgentRef, ExecutionRequest, ExecutionResult, RuntimeSession
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.config import AdapterConfig, read_config
from binderclip.sdk.lines import Line, LineSplitter
from binderclip.sdk.outcome import EndReason, Outcome, ProcessEnd
from binderclip.sdk.parser import Facts
from binderclip.sdk.transcript import TranscriptBuilder

REPLAY_TS = "2000-01-01T00:00:00.000Z"
TAIL_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class Replay:
    """What saved output became."""

    entries: list[Entry]
    records: list[Record]
    result: ExecutionResult
    coverage: Coverage
    builder: TranscriptBuilder


def replay(
    adapter: Adapter,
    stdout: bytes,
    stderr: bytes = b"",
    *,
    exit_code: int | None = 0,
    signal: str | None = None,
    reason: EndReason = "exited",
    session: Mapping[str, Any] | None = None,
    cwd: str | None = None,
    argv: Sequence[str] = (),
    chunks: int | Sequence[int] | None = None,
    ts: str = REPLAY_TS,
) -> Replay:
    """Build transcript and result from saved bytes: all of stdout first, then all of stderr.

    `session` are the parameters of the session that the run was asked to resume; without them, a
    session id among the words of `argv` says that it was resumed. `chunks` is one size or a cycle
    of sizes to feed the bytes in, and never changes what comes out.
    """
    builder = TranscriptBuilder(adapter.create_parser())
    records: list[Record] = []
    streams: tuple[tuple[Stream, bytes], ...] = (("stdout", stdout), ("stderr", stderr))
    for stream, data in streams:
        for line in _lines(data, chunks):
            records.extend(builder.feed(stream, line, ts))
    records.extend(builder.finish(len(stdout)))
    outcome = Outcome(
        request=_request(adapter, session),
        end=ProcessEnd(None if signal else exit_code, signal, reason),
        parser=builder.parser,
        stdout_tail=_tail(stdout),
        stderr_tail=_tail(stderr),
        cwd=cwd,
        limits=_limits(),
    )
    result = adapter.conclude(outcome)
    if session is None and outcome.facts.session_id in argv:
        result = _as_told(result, outcome.facts)
    return Replay(apply([], records), records, result, builder.coverage, builder)


def _as_told(result: ExecutionResult, facts: Facts) -> ExecutionResult:
    """Counts of a resumed session whose earlier totals nobody knows are the session's, not ours."""
    if facts.usage_basis == "session_cumulative" and result.usage is not None:
        result = msgspec.structs.replace(result, usage_basis="session_cumulative")
    if facts.cost_basis == "session_cumulative":
        result = msgspec.structs.replace(result, cost_usd=None)
    return result


def _lines(data: bytes, chunks: int | Sequence[int] | None) -> Iterator[Line]:
    splitter = LineSplitter()
    for chunk in _cut(data, chunks):
        yield from splitter.push(chunk)
    yield from splitter.finish()


def _cut(data: bytes, chunks: int | Sequence[int] | None) -> Iterator[bytes]:
    if not chunks:
        yield data
        return
    at = 0
    for size in cycle((chunks,) if isinstance(chunks, int) else chunks):
        if at >= len(data):
            return
        yield data[at : at + max(1, size)]
        at += max(1, size)


def _request(adapter: Adapter, session: Mapping[str, Any] | None) -> ExecutionRequest:
    params = adapter.session_codec.deserialize(dict(session)) if session else None
    shown = adapter.session_codec.get_display_id(params)
    agent = AgentRef(id="replay", company_id="local", name="replay", adapter_type=adapter.type)
    runtime = RuntimeSession(session_id=shown, session_params=params, session_display_id=shown)
    return ExecutionRequest(run_id="replay", agent=agent, runtime=runtime, config={})


def _limits() -> dict[str, Any]:
    config = read_config(AdapterConfig, {})
    return {
        "timeoutSec": config.timeout_sec,
        "idleTimeoutSec": config.idle_timeout_sec,
        "graceSec": config.grace_sec,
        "maxLogBytes": config.max_log_bytes,
    }


def _tail(data: bytes) -> str:
    return data[-TAIL_BYTES:].decode("utf-8", "replace")
