"""A finished run as events and checkpoints: a function of its files, the same every time (D2, N4).

Ids come from the run, the attempt and the entry, times from the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from binderclip.contract.checkpoint import (
    Checkpoint,
    CheckpointStatus,
    Expert,
    TextPart,
    UserMessage,
)
from binderclip.contract.errors import RunError
from binderclip.contract.event import (
    Ending,
    Event,
    EventError,
    Retry,
    StartRun,
    Step,
    StopRunByError,
    StopRunByExceededMaxSteps,
)
from binderclip.contract.ids import short
from binderclip.contract.job import JobRun
from binderclip.contract.run import ExecutionResult, RunOrder, Usage
from binderclip.contract.wire import to_plain
from binderclip.jobs.events import KEPT_TEXTS, Identity, Steps, milliseconds
from binderclip.jobs.grouping import job_of
from binderclip.jobs.normalized import (
    NO_USAGE,
    add_usage,
    create_complete_run_event,
    create_normalized_checkpoint,
    create_runtime_init_event,
    token_usage,
)
from binderclip.jobs.runtimes import runtime_of
from binderclip.jobs.source import telling_entries
from binderclip.jobs.spending import beyond
from binderclip.sdk.resume import next_session
from binderclip.sdk.usage import add
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, read_order, read_outcome
from binderclip.store.titles import title_of
from binderclip.supervisor.documents import INDEX
from binderclip.supervisor.launch import read_exit, read_meta

_STATUS = re.compile(r"(?<![\d.])([45]\d\d)(?![\d.])")
_RETRYABLE = frozenset({"rate_limit", "upstream", "quota"})
_OUTPUT_SHOWN = 500


class RunHistory:
    """One finished run; exhaust `events` once, then `checkpoints` and `summary` are complete."""

    def __init__(self, home: Home, run_id: str) -> None:
        self.home = home
        self.order: RunOrder = read_order(home, run_id)
        outcome = read_outcome(home, run_id)
        if outcome is None:
            raise RunError(f"Run {short(run_id)} is not over yet, so it has no history to keep.")
        self.outcome: RunOutcome = outcome
        self.job_id = job_of(home, self.order)
        self.checkpoints: list[Checkpoint] = []
        self._numbers = home.attempts(run_id)
        self._meta = {number: self._read_meta(number) for number in self._numbers}
        self.expert = self._expert()
        self.runtime = runtime_of(
            self.order, self._meta[self._numbers[-1]] if self._numbers else {}
        )
        self._who = Identity(self.job_id, run_id, self.expert.key, self.runtime)
        self._count = 0
        self._steps = 0

    @property
    def result(self) -> ExecutionResult:
        return self.outcome.result or ExecutionResult(exit_code=None, signal=None, timed_out=False)

    def events(self) -> Iterator[Event]:
        """Everything that happened, in order."""
        for event in self._all():
            self._count += 1
            yield event

    def summary(self) -> JobRun:
        """The run among the others of its job."""
        usage = NO_USAGE
        for checkpoint in self.checkpoints:
            usage = add_usage(usage, checkpoint.usage)
        result = self.result
        told = self._usage_of(self._numbers[-1]) if self._numbers else None
        return JobRun(
            id=self.order.id,
            job_id=self.job_id,
            status=self.outcome.state,
            stopped=self.checkpoints[-1].status,
            adapter_type=self.order.adapter_type,
            runtime=self.runtime,
            expert_key=self.expert.key,
            cwd=self.order.cwd,
            started_at=milliseconds(self.order.created_at),
            finished_at=milliseconds(self.outcome.ended_at),
            steps=self._steps,
            events=self._count,
            usage=usage,
            usage_source=told.source if told else "unknown",
            cost_usd=self._cost(),
            title=title_of(self.order),
            prompt=self.order.prompt,
            continues=self.order.continues or self.order.retry_of,
            checkpoints=tuple(checkpoint.id for checkpoint in self.checkpoints),
            model=result.model,
            error_code=result.error_code,
            error_message=result.error_message,
            output=(result.summary or "")[:_OUTPUT_SHOWN] or None,
        )

    def _all(self) -> Iterator[Event]:
        if not self._numbers:
            begin = milliseconds(self.order.created_at)
            yield self._start(0, begin)
            yield self._end(0, Steps(self._who, begin), milliseconds(self.outcome.ended_at, begin))
        for number in self._numbers:
            yield from self._attempt(number)

    def _attempt(self, number: int) -> Iterator[Event]:
        begin = milliseconds(self._meta[number].get("startedAt"), self._created)
        yield create_runtime_init_event(
            self.job_id,
            self.order.id,
            self.expert.name,
            self.runtime,
            model=self.result.model,
            id=self._id(number, "init"),
            timestamp=begin,
        )
        yield self._start(number, begin)
        steps = Steps(self._who, begin, first=self._steps + 1)
        directory = self.home.attempt_dir(self.order.id, number)
        if (directory / INDEX).exists():
            yield from steps.events(telling_entries(directory, KEPT_TEXTS))
        self._steps = steps.number
        exit = read_exit(str(directory))
        end = milliseconds(exit.ended_at if exit else None, begin)
        if number == self._numbers[-1]:
            yield self._end(number, steps, end)
        else:
            yield self._retry(number, steps, end)

    def _start(self, number: int, at: int) -> StartRun:
        fresh = number > 1
        session = self.order.runtime
        asked: tuple[UserMessage, ...] = ()
        if self.order.prompt:
            part = TextPart(id=self._id(number, "prompt"), text=self.order.prompt)
            asked = (UserMessage(contents=(part,), timestamp=at),)
        return StartRun(
            **self._fields(number, "start", at, self._steps + 1),
            input_messages=asked,
            session_id=None if fresh else session.session_display_id,
            resumed_from=None if fresh else self.order.continues,
        )

    def _retry(self, number: int, steps: Steps, at: int) -> Retry:
        """Only an unknown session is tried again within a run (S4)."""
        error = EventError(
            name="unknown_session",
            message="The runtime does not know the session.",
            is_retryable=True,
        )
        checkpoint = self._checkpoint(number, steps, at, "stoppedByError", "", error)
        return Retry(
            **self._fields(number, "retry", at, steps.number),
            reason=error.message,
            usage=checkpoint.usage,
            new_messages=steps.last_words(at),
            error=error,
        )

    def _end(self, number: int, steps: Steps, at: int) -> Ending:
        self._steps = steps.number
        error = event_error(self.result) if self.outcome.state != "succeeded" else None
        text = self.result.summary or ""
        status = _stopped(error)
        checkpoint = self._checkpoint(number, steps, at, status, text, error)
        step = Step(
            step_number=steps.number,
            usage=token_usage(steps.used(self._usage_of(number))),
            started_at=steps.started_at,
            new_messages=steps.last_words(at),
        )
        fields = self._fields(number, "end", at, steps.number)
        if error is None:
            return create_complete_run_event(
                self.job_id,
                self.order.id,
                self.expert.key,
                checkpoint,
                text,
                id=fields["id"],
                timestamp=at,
                step=step,
            )
        kind = StopRunByError if status == "stoppedByError" else StopRunByExceededMaxSteps
        return kind(**fields, checkpoint=checkpoint, step=step, error=error)

    def _checkpoint(
        self,
        number: int,
        steps: Steps,
        at: int,
        status: CheckpointStatus,
        output: str,
        error: EventError | None,
    ) -> Checkpoint:
        last = not self._numbers or number == self._numbers[-1]
        usage = self._usage_of(number)
        made = create_normalized_checkpoint(
            job_id=self.job_id,
            run_id=self.order.id,
            expert_key=self.expert.key,
            expert=self.expert,
            output=output,
            runtime=self.runtime,
            id=f"{self.order.id}-{number}",
            status=status,
            step_number=steps.number,
            usage=usage,
            timestamp=at,
            metadata={
                "adapterType": self.order.adapter_type,
                "adapterVersion": self.expert.version or None,
                "cwd": self.order.cwd,
                "attempt": number,
                "state": self.outcome.state if last else "failed",
                "usage": to_plain(usage),
                "usageBeyondSteps": to_plain(beyond(usage, add(steps.before, steps.used(usage)))),
                "costUsd": self.result.cost_usd if last else None,
                "session": self._session() if last else None,
                "error": to_plain(error),
            },
        )
        self.checkpoints.append(made)
        return made

    def _session(self) -> dict[str, Any] | None:
        """What resumes the agent from here."""
        params = next_session(self.order.runtime.session_params, self.result)
        if params is None:
            return None
        shown = self.result.session_display_id or self.order.runtime.session_display_id
        return {"params": params, "displayId": shown, "target": self.outcome.session_target}

    def _usage_of(self, number: int) -> Usage | None:
        for told in self.outcome.usage:
            if told.attempt == number:
                return told.usage
        last = not self._numbers or number == self._numbers[-1]
        return self.result.usage if last and not self.outcome.usage else None

    def _cost(self) -> float | None:
        if not self.outcome.usage:
            return self.result.cost_usd
        costs = [told.cost_usd for told in self.outcome.usage]
        return None if None in costs else sum(cost or 0 for cost in costs)

    def _fields(self, number: int, what: str, at: int, step: int) -> dict[str, Any]:
        return {
            "id": self._id(number, what),
            "timestamp": at,
            "job_id": self.job_id,
            "run_id": self.order.id,
            "expert_key": self.expert.key,
            "step_number": step,
        }

    def _id(self, number: int, what: str) -> str:
        return f"{self.order.id}:{number}.{what}"

    @property
    def _created(self) -> int:
        return milliseconds(self.order.created_at)

    def _read_meta(self, number: int) -> dict[str, Any]:
        return read_meta(str(self.home.attempt_dir(self.order.id, number))) or {}

    def _expert(self) -> Expert:
        key = self.order.agent.name if self.order.scheduled else self.order.adapter_type
        last = self._meta[self._numbers[-1]] if self._numbers else {}
        version = last.get("adapterVersion") or self.order.adapter_version
        return Expert(key=key, name=key, version=str(version or ""))


def event_error(result: ExecutionResult) -> EventError:
    """The error of a run that did not succeed."""
    name = result.error_code or "process_failed"
    return EventError(
        name=name,
        message=result.error_message or name,
        status_code=_http_status(result),
        is_retryable=result.error_family == "transient_upstream" or name in _RETRYABLE,
    )


def _http_status(result: ExecutionResult) -> int | None:
    """What the vendor answered, where the runtime tells it or says it in its message."""
    told = (result.result_json or {}).get("apiErrorStatus")
    if isinstance(told, int) and not isinstance(told, bool):
        return told
    found = _STATUS.search(result.error_message or "") if result.error_family else None
    return int(found[1]) if found else None


def _stopped(error: EventError | None) -> CheckpointStatus:
    if error is None:
        return "completed"
    return "stoppedByExceededMaxSteps" if error.name == "turn_limit" else "stoppedByError"
