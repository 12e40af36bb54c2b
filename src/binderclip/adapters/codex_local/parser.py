"""Reading `codex exec --json`: threads, turns and items.

An `error` line may be a mere retry: only `turn.failed` and `turn.completed` say how a turn ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from binderclip.adapters.codex_local.failures import (
    failure_of,
    is_retry,
    refusal_to_start,
    retry_note,
)
from binderclip.adapters.codex_local.items import Items
from binderclip.sdk import (
    Entry,
    Init,
    JsonParser,
    Result,
    System,
    Usage,
    as_string,
    parse_object,
    safe_session_id,
)
from binderclip.sdk.usage import count, from_inclusive

NO_SESSION = "Error: thread/resume: thread/resume failed: no rollout found for thread id"
NOISE = ("Reading additional input from stdin...", "Reading prompt from stdin...")


class CodexParser(JsonParser):
    """State of one run: open items, the last error that was no retry."""

    inner = "item"

    def __init__(self) -> None:
        super().__init__()
        self._items = Items()
        self._started = False
        self._error = ""
        self._events: dict[str, Callable[[dict[str, Any], str], Sequence[Entry] | None]] = {
            "thread.started": self._thread_started,
            "turn.started": _nothing,
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "item.started": self._item,
            "item.updated": self._item,
            "item.completed": self._item,
            "error": self._told_error,
        }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        kind = event.get("type")
        handle = self._events.get(kind) if type(kind) is str else None
        return handle(event, ts) if handle else None

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        if line in NOISE:
            return ()
        # Once a thread began, stderr also tells what the model asked for: words of the agent.
        if not self._started and self.facts.ended is None and self.facts.failure is None:
            if line.startswith(NO_SESSION):
                self.facts.unknown_session = True
            else:
                self.facts.failure = refusal_to_start(line)
        return None

    def finish(self, ts: str) -> Sequence[Entry]:
        if self.facts.ended is None and self._error:
            self.facts.failure = failure_of(self._error)
        return ()

    def _thread_started(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        self._started = True
        found = safe_session_id(event.get("thread_id"))
        self.facts.session_id = found
        return (Init(ts=ts, model="", session_id=found or ""),)

    def _item(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        item = event.get("item")
        if type(item) is not dict:
            return None
        done = event["type"] == "item.completed"
        if done and item.get("type") == "agent_message":
            self.facts.final_text = as_string(item.get("text")) or self.facts.final_text
        return self._items.entries(item, done, ts)

    def _told_error(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        message = as_string(event.get("message"))
        self._error = "" if is_retry(message) else message
        return (System(ts=ts, text=message, retry=retry_note(message)),) if message else ()

    def _turn_completed(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        facts = self.facts
        facts.ended, facts.failure = "success", None
        usage = _usage(event.get("usage"))
        if usage is not None:
            # The count covers the whole thread, earlier runs included.
            facts.usage, facts.usage_basis = usage, "session_cumulative"
        return (*self._items.left_open(ts), self._result(ts, facts.final_text or "", ()))

    def _turn_failed(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        told = as_string(parse_object(event.get("error")).get("message"))
        failure = failure_of(told or self._error or "Codex reported a failure without words.")
        self.facts.ended, self.facts.failure = "failure", failure
        return (self._result(ts, failure.message, (failure.message,)),)

    def _result(self, ts: str, text: str, errors: tuple[str, ...]) -> Result:
        used = self.facts.usage or Usage()
        return Result(
            ts=ts,
            text=text,
            input_tokens=used.input_tokens or 0,
            output_tokens=used.output_tokens or 0,
            cached_tokens=used.cached_input_tokens or 0,
            cost_usd=None,
            subtype="error" if errors else "success",
            is_error=bool(errors),
            errors=errors,
        )


def _nothing(event: dict[str, Any], ts: str) -> Sequence[Entry]:
    return ()


def _usage(told: object) -> Usage | None:
    counts = parse_object(told)
    if not counts:
        return None
    return from_inclusive(
        input_tokens=count(counts.get("input_tokens")),
        cached=count(counts.get("cached_input_tokens")),
        cache_write=count(counts.get("cache_write_input_tokens")),
        output=count(counts.get("output_tokens")),
        reasoning=count(counts.get("reasoning_output_tokens")),
    )
