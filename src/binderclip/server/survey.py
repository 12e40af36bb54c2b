"""What a transcript holds, at a glance: counts, errors, where the time went, slow tools.

It is fed one record at a time and never looks back, so a live run is surveyed as it grows.
"""

from __future__ import annotations

import heapq
from datetime import datetime
from typing import Any

import msgspec

from binderclip.contract.entry import ToolKind
from binderclip.contract.wire import Wire

MOST_BUCKETS = 240
MOST_ERRORS = 10_000
MOST_SLOW_TOOLS = 100
_FIRST_BUCKET_MS = 250
_MODEL = frozenset({"assistant", "thinking", "tool_call", "result"})


class SeenEntry(msgspec.Struct, rename="camel", gc=False):
    """The fields of an entry that surveys and indexes need; the rest is not decoded."""

    kind: str
    ts: str = ""
    id: str = ""
    stream: str | None = None
    offset: int | None = None
    name: str | None = None
    tool_name: str | None = None
    tool_kind: ToolKind | None = None
    tool_use_id: str | None = None
    duration_ms: int | None = None
    is_error: bool = False
    seq: int | None = None


class Bucket(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A stretch of time: what it was spent on, and the entries that fell into it."""

    from_seq: int
    entries: int
    model_ms: int
    tool_ms: int
    wait_ms: int
    errors: int


class ToolTime(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One of the slowest tool results."""

    seq: int
    name: str | None
    duration_ms: int
    is_error: bool


class ToolTotal(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """All results of the tools of one name."""

    name: str
    count: int
    errors: int
    total_ms: int
    longest_ms: int


class Survey(msgspec.Struct):
    """Sums over the entries of one attempt, kept as plain data so that they can be stored."""

    total: int = 0
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    errors: list[int] = msgspec.field(default_factory=list)
    error_count: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    bucket_ms: int = _FIRST_BUCKET_MS
    buckets: list[list[int]] = msgspec.field(default_factory=list)
    """Rows of `Bucket`'s fields, in their order."""
    slow: list[tuple[int, int, str | None, bool]] = msgspec.field(default_factory=list)
    tools: dict[str, list[int]] = msgspec.field(default_factory=dict)
    open_calls: dict[str, str] = msgspec.field(default_factory=dict)
    last_ts: str = ""
    """What was read last: many entries come in one moment."""

    def add(self, entry: SeenEntry) -> None:
        """Count the next entry of the attempt."""
        seq = self.total
        self.total += 1
        self.kinds[entry.kind] = self.kinds.get(entry.kind, 0) + 1
        if entry.is_error:
            self.error_count += 1
            if len(self.errors) < MOST_ERRORS:
                self.errors.append(seq)
        self._pass_time(entry, seq)
        if entry.kind == "tool_call" and entry.tool_use_id:
            self.open_calls[entry.tool_use_id] = entry.name or ""
        elif entry.kind == "tool_result":
            self._tool(entry, seq)

    def _pass_time(self, entry: SeenEntry, seq: int) -> None:
        now = self.last_ms if entry.ts == self.last_ts else milliseconds(entry.ts)
        if now is None:
            return
        self.last_ts = entry.ts
        if self.first_ms is None or self.last_ms is None:
            self.first_ms = self.last_ms = now
        now = max(now, self.last_ms)
        self._spend(self.last_ms, now, self._column(entry), seq)
        bucket = self._bucket(now, seq)
        bucket[1] += 1
        bucket[5] += entry.is_error
        self.last_ms = now

    def _column(self, entry: SeenEntry) -> int:
        """What the time before this entry was spent on, as a column of a bucket."""
        if self.open_calls:
            return 3
        return 2 if entry.kind in _MODEL else 4

    def _spend(self, begin: int, end: int, column: int, seq: int) -> None:
        while begin < end:
            bucket = self._bucket(begin, seq)
            assert self.first_ms is not None
            step = self.bucket_ms - (begin - self.first_ms) % self.bucket_ms
            took = min(step, end - begin)
            bucket[column] += took
            begin += took

    def _bucket(self, at: int, seq: int) -> list[int]:
        assert self.first_ms is not None
        while (at - self.first_ms) // self.bucket_ms >= MOST_BUCKETS:
            self._halve()
        number = (at - self.first_ms) // self.bucket_ms
        while len(self.buckets) <= number:
            self.buckets.append([seq, 0, 0, 0, 0, 0])
        return self.buckets[number]

    def _halve(self) -> None:
        """Make each bucket twice as long, so that a run of any length has a bounded number."""
        pairs = [self.buckets[at : at + 2] for at in range(0, len(self.buckets), 2)]
        self.buckets = [
            [pair[0][0], *(sum(column) for column in zip(*(row[1:] for row in pair), strict=True))]
            for pair in pairs
        ]
        self.bucket_ms *= 2

    def _tool(self, entry: SeenEntry, seq: int) -> None:
        called = self.open_calls.pop(entry.tool_use_id or "", None)
        name = entry.tool_name or called or None
        took = entry.duration_ms or 0
        sums = self.tools.setdefault(name or "", [0, 0, 0, 0])
        sums[0] += 1
        sums[1] += entry.is_error
        sums[2] += took
        sums[3] = max(sums[3], took)
        if entry.duration_ms is not None:
            slow = (took, seq, name, entry.is_error)
            push = heapq.heappush if len(self.slow) < MOST_SLOW_TOOLS else heapq.heappushpop
            push(self.slow, slow)


def milliseconds(ts: str) -> int | None:
    """Unix milliseconds of an ISO time; None for what is none."""
    try:
        return round(datetime.fromisoformat(ts).timestamp() * 1000)
    except ValueError:
        return None


class AttemptOutline(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Where an attempt's entries begin in the run's transcript, and where its time went."""

    attempt: int
    from_seq: int
    total: int
    parser: str
    parser_version: str
    started_ms: int | None
    ended_ms: int | None
    bucket_ms: int
    buckets: tuple[Bucket, ...]


class Outline(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A run's transcript at a glance (see `/outline`)."""

    total: int
    records: int
    cursor: str
    complete: bool
    kinds: dict[str, int]
    error_count: int
    errors: tuple[int, ...]
    attempts: tuple[AttemptOutline, ...]
    slowest_tools: tuple[ToolTime, ...]
    tools: tuple[ToolTotal, ...]


def attempt_outline(
    survey: Survey, attempt: int, base: int, parser: str, version: str
) -> AttemptOutline:
    rows = [[row[0] + base, *row[1:]] for row in survey.buckets]
    return AttemptOutline(
        attempt=attempt,
        from_seq=base,
        total=survey.total,
        parser=parser,
        parser_version=version,
        started_ms=survey.first_ms,
        ended_ms=survey.last_ms,
        bucket_ms=survey.bucket_ms,
        buckets=tuple(Bucket(**_named(row)) for row in rows),
    )


def slowest(surveys: list[tuple[int, Survey]]) -> tuple[ToolTime, ...]:
    """The slowest tools of all attempts, each survey given with the position it begins at."""
    found = [
        (took, seq + base, name, bad) for base, s in surveys for took, seq, name, bad in s.slow
    ]
    found.sort(key=lambda row: (-row[0], row[1]))
    return tuple(
        ToolTime(seq=seq, name=name, duration_ms=took, is_error=bad)
        for took, seq, name, bad in found[:MOST_SLOW_TOOLS]
    )


def tool_totals(surveys: list[Survey]) -> tuple[ToolTotal, ...]:
    sums: dict[str, list[int]] = {}
    for survey in surveys:
        for name, row in survey.tools.items():
            known = sums.setdefault(name, [0, 0, 0, 0])
            known[:] = [
                *(a + b for a, b in zip(known[:3], row[:3], strict=True)),
                max(known[3], row[3]),
            ]
    ordered = sorted(sums.items(), key=lambda item: -item[1][2])
    return tuple(
        ToolTotal(name=name, count=row[0], errors=row[1], total_ms=row[2], longest_ms=row[3])
        for name, row in ordered
    )


def _named(row: list[int]) -> dict[str, Any]:
    return dict(zip(Bucket.__struct_fields__, row, strict=True))
