"""From entries to events: the steps of an agent, its tools and their results (N3).

A step begins when the agent speaks or uses a tool after it has seen a result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from binderclip.contract.checkpoint import ExpertMessage, TextPart
from binderclip.contract.entry import (
    Assistant,
    Entry,
    Init,
    RetryNote,
    SpentRecord,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    clip,
)
from binderclip.contract.event import (
    CallTools,
    ContinueToNextStep,
    Event,
    EventError,
    ResolveToolResults,
    Retry,
    Step,
    ToolOutcome,
    ToolUse,
)
from binderclip.contract.usage import Usage
from binderclip.jobs.normalized import NO_USAGE, token_usage
from binderclip.jobs.source import Told
from binderclip.jobs.spending import filled
from binderclip.sdk.usage import add
from binderclip.sdk.vendor_errors import failure_by_status

KEPT_TEXTS = 500
"""How many texts in a row a message keeps, the last ones; the transcript has all of them."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose events these are."""

    job_id: str
    run_id: str
    expert_key: str
    runtime: str


class Steps:
    """Turns the entries of one attempt into events; afterwards `number` counts its steps."""

    def __init__(self, who: Identity, started_at: int, first: int = 1) -> None:
        self.who = who
        self.number = self._first = first
        self.started_at = started_at
        self.model: str | None = None
        self.before: Usage | None = None
        """What the steps before this one used, as far as the runtime told."""
        self._used: Usage | None = None
        self._said: dict[str | None, deque[TextPart]] = {}
        self._has_seen_result = False
        self._ts = ""
        self._ms = started_at

    def events(self, told: Iterable[Told]) -> Iterator[Event]:
        entry: Any
        for entry in told:
            kind = type(entry)
            if kind is ToolCall:
                yield from self._next_step(entry)
                yield self._call(entry)
            elif kind is ToolResult:
                yield self._result(entry)
            elif kind is Assistant:
                yield from self._next_step(entry)
                text = clip(entry).text  # type: ignore[union-attr]
                part = TextPart(id=entry.id, text=text)
                self._say(entry.parent_tool_use_id, part)
            elif kind is Thinking:
                yield from self._next_step(entry)
            elif kind is SpentRecord:
                self._used = add(self._used, entry.usage)
            elif kind is System:
                yield from self._retried(entry)
            elif kind is Init:
                self.model = self.model or entry.model or None

    def last_words(self, timestamp: int) -> tuple[ExpertMessage, ...]:
        """What the agent said after its last tool."""
        message = self._message(None, timestamp)
        return (message,) if message else ()

    def used(self, whole: Usage | None) -> Usage | None:
        """What the last step used, in an attempt that used this as a whole."""
        return filled(self._used, whole) if self.number == self._first else self._used

    def _next_step(self, entry: Entry) -> Iterator[Event]:
        if not self._has_seen_result or entry.parent_tool_use_id is not None:
            return
        self._has_seen_result = False
        at = self._time(entry.ts)
        usage = token_usage(self._used)
        step = Step(step_number=self.number, usage=usage, started_at=self.started_at)
        yield ContinueToNextStep(
            id=f"{self.who.run_id}:{entry.id}.step",
            timestamp=at,
            job_id=self.who.job_id,
            run_id=self.who.run_id,
            expert_key=self.who.expert_key,
            step_number=self.number,
            step=step,
        )
        self.number += 1
        self.started_at = at
        self.before, self._used = add(self.before, self._used), None

    def _retried(self, entry: System) -> Iterator[Event]:
        note = entry.retry
        if note is None:
            return
        yield Retry(
            id=f"{self.who.run_id}:{entry.id}",
            timestamp=self._time(entry.ts),
            job_id=self.who.job_id,
            run_id=self.who.run_id,
            expert_key=self.who.expert_key,
            step_number=self.number,
            reason=entry.text,
            usage=NO_USAGE,
            error=retry_error(note),
            attempt=note.attempt,
            max_attempts=note.max_attempts,
            delay_ms=note.delay_ms,
        )

    def _call(self, entry: ToolCall) -> CallTools:
        at = self._time(entry.ts)
        use = ToolUse(
            id=entry.tool_use_id or entry.id,
            skill_name=self.who.runtime,
            tool_name=entry.name,
            args=entry.input,
        )
        return CallTools(
            id=f"{self.who.run_id}:{entry.id}",
            timestamp=at,
            job_id=self.who.job_id,
            run_id=self.who.run_id,
            expert_key=self.who.expert_key,
            step_number=self.number,
            tool_calls=(use,),
            new_message=self._message(entry.parent_tool_use_id, at),
            parent_tool_call_id=entry.parent_tool_use_id,
        )

    def _result(self, entry: ToolResult) -> ResolveToolResults:
        if entry.parent_tool_use_id is None:
            self._has_seen_result = True
        shown = clip(entry)
        assert isinstance(shown, ToolResult)
        outcome = ToolOutcome(
            id=entry.tool_use_id,
            skill_name=self.who.runtime,
            tool_name=entry.tool_name or "",
            result=(TextPart(id=entry.id, text=shown.content),),
            is_error=entry.is_error,
            exit_code=entry.exit_code,
            duration_ms=entry.duration_ms,
        )
        return ResolveToolResults(
            id=f"{self.who.run_id}:{entry.id}",
            timestamp=self._time(entry.ts),
            job_id=self.who.job_id,
            run_id=self.who.run_id,
            expert_key=self.who.expert_key,
            step_number=self.number,
            tool_results=(outcome,),
            parent_tool_call_id=entry.parent_tool_use_id,
        )

    def _say(self, lane: str | None, part: TextPart) -> None:
        if lane not in self._said:
            self._said[lane] = deque(maxlen=KEPT_TEXTS)
        self._said[lane].append(part)

    def _message(self, lane: str | None, timestamp: int) -> ExpertMessage | None:
        parts = self._said.pop(lane, None)
        return ExpertMessage(contents=tuple(parts), timestamp=timestamp) if parts else None

    def _time(self, ts: str) -> int:
        if ts != self._ts:
            self._ts = ts
            self._ms = milliseconds(ts, self._ms)
        return self._ms


def retry_error(note: RetryNote) -> EventError:
    """Why a request is made again; the runtime itself holds it to be worth that."""
    found = failure_by_status(note.status_code, note.cause)
    return EventError(
        name=found.code if found else "upstream",
        message=note.cause,
        status_code=note.status_code,
        is_retryable=True,
    )


def milliseconds(iso: str | None, otherwise: int = 0) -> int:
    """The Unix time of an ISO timestamp in milliseconds."""
    try:
        return round(datetime.fromisoformat(iso or "").timestamp() * 1000)
    except ValueError:
        return otherwise
