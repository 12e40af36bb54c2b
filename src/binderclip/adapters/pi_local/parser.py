"""Pi's events (`pi --mode json`), line by line.

A message is shown as it streams and never again; failures count only once nothing is retried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from binderclip.adapters.pi_local.failures import (
    failure_of_message,
    failure_of_stderr,
    failure_of_words,
    status_of,
)
from binderclip.adapters.pi_local.tools import (
    attachments_of,
    blocks_of,
    diff_of,
    exit_code_of,
    kind_of,
    text_of,
    title_of,
)
from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    Init,
    JsonParser,
    Parsed,
    Result,
    RetryNote,
    SpentRecord,
    System,
    Thinking,
    ToolCall,
    ToolKind,
    ToolResult,
    Usage,
    User,
    as_number,
    as_string,
    parse_object,
    safe_session_id,
)
from binderclip.sdk.usage import add, count, total_tokens

UNKNOWN_SESSION = ("No session found matching ", "Session found in different project: ")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_Handler = Callable[[dict[str, Any], str], Sequence[Parsed]]


class PiParser(JsonParser):
    """Entries and facts of one run."""

    inner = "assistantMessageEvent"

    def __init__(self) -> None:
        super().__init__()
        self._streamed = False
        self._concluded = False
        self._owed: Sequence[SpentRecord] = ()
        self._complaint: Failure | None = None
        self._calls: dict[str, tuple[ToolKind, dict[str, Any]]] = {}
        self._handlers: dict[str, _Handler] = {
            "message_update": self._message_update,
            "session": self._session,
            "agent_start": self._agent_start,
            "message_start": self._message_start,
            "message_end": self._message_end,
            "tool_execution_start": self._tool_start,
            "tool_execution_end": self._tool_end,
            "agent_end": self._agent_end,
            "agent_settled": self._agent_settled,
            "auto_retry_start": self._retry,
            "summarization_retry_scheduled": self._retry,
            "compaction_start": self._compaction_start,
            "compaction_end": self._compaction_end,
            **dict.fromkeys(SILENT, _nothing),
        }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        kind = event.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        return None if handler is None else handler(event, ts)

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        words = _COLOURS.sub("", line)
        if words.startswith(UNKNOWN_SESSION) and self.facts.session_id is None:
            self.facts.unknown_session = True
        elif self._complaint is None:
            self._complaint = failure_of_stderr(words)
        return None

    def finish(self, ts: str) -> Sequence[Parsed]:
        facts = self.facts
        if facts.ended is None and facts.failure is None:
            facts.failure = self._complaint
        return (*self._owed, *self._conclusion(ts))

    def _session(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        """The first event; which model answers is told by its messages only."""
        found = safe_session_id(event.get("id"))
        self.facts.session_id = found
        return (Init(ts=ts, model="", session_id=found or ""),)

    def _agent_start(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        self.facts.ended = None
        return ()

    def _message_start(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        message = parse_object(event.get("message"))
        self._streamed = False
        if message.get("role") != "assistant":
            return ()
        self.facts.model = as_string(message.get("model")) or self.facts.model
        self.facts.provider = as_string(message.get("provider")) or self.facts.provider
        return ()

    def _message_update(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        update = event.get("assistantMessageEvent")
        if type(update) is not dict:
            return ()
        kind, delta = update.get("type"), update.get("delta")
        if type(delta) is not str:
            return ()
        if kind == "text_delta":
            self._streamed = True
            return (Assistant(ts=ts, text=delta, delta=True),)
        if kind == "thinking_delta":
            self._streamed = True
            return (Thinking(ts=ts, text=delta, delta=True),)
        return ()

    def _message_end(self, event: dict[str, Any], ts: str) -> Sequence[Parsed]:
        """The usage of a message that shows nothing itself is told behind its first tool call."""
        message, owed = parse_object(event.get("message")), self._owed
        self._owed = ()
        entries, spent = self._ended(message, ts), self._spent(message.get("usage"))
        if not (entries or self._streamed) and message.get("stopReason") == "toolUse":
            self._owed, spent = spent, ()
        return (*owed, *entries, *spent)

    def _ended(self, message: dict[str, Any], ts: str) -> Sequence[Entry]:
        role = message.get("role")
        if role == "assistant":
            return self._assistant(message, ts)
        text = text_of(message.get("content"))
        if role == "user":
            return (User(ts=ts, text=text),)
        return (System(ts=ts, text=text),) if role == "custom" and text else ()

    def _assistant(self, message: dict[str, Any], ts: str) -> Sequence[Entry]:
        self.facts.failure = failure_of_message(message)
        blocks = blocks_of(message.get("content"))
        text = "".join(as_string(b.get("text")) for b in blocks if b.get("type") == "text")
        if text and message.get("stopReason") not in ("error", "aborted"):
            self.facts.final_text = text
        if self._streamed:
            return ()
        return [entry for block in blocks for entry in _whole(block, ts)]

    def _tool_start(self, event: dict[str, Any], ts: str) -> Sequence[Parsed]:
        name, id = as_string(event.get("toolName")), as_string(event.get("toolCallId"))
        kind, given = kind_of(name), parse_object(event.get("args"))
        self._calls[id] = (kind, given)
        owed, self._owed = self._owed, ()
        return (
            ToolCall(
                ts=ts,
                name=name,
                input=given,
                tool_use_id=id or None,
                tool_kind=kind,
                title=title_of(kind, given),
            ),
            *owed,
        )

    def _tool_end(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        id, failed = as_string(event.get("toolCallId")), event.get("isError") is True
        kind, given = self._calls.pop(id, ("other", {}))
        result = parse_object(event.get("result"))
        blocks = result.get("content")
        content = text_of(blocks)
        entry = ToolResult(
            ts=ts,
            tool_use_id=id,
            content=content,
            is_error=failed,
            tool_name=as_string(event.get("toolName")) or None,
            exit_code=exit_code_of(content, failed) if kind == "shell" else None,
            attachments=attachments_of(blocks),
        )
        if failed:
            return (entry,)
        return (entry, *diff_of(kind, given, parse_object(result.get("details")), id, ts))

    def _agent_end(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        """The last event of old versions; new ones settle afterwards, and say so here."""
        if "willRetry" not in event:
            self._end()
        return ()

    def _agent_settled(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        self._end()
        return self._conclusion(ts)

    def _end(self) -> None:
        self.facts.ended = "failure" if self.facts.failure else "success"

    def _conclusion(self, ts: str) -> Sequence[Entry]:
        facts, usage = self.facts, self.facts.usage or Usage()
        if facts.cost_usd == 0 and total_tokens(facts.usage):
            # Pi counts a model whose price it does not know as free.
            facts.cost_usd = None
        if facts.ended is None or self._concluded:
            return ()
        self._concluded = True
        return (
            Result(
                ts=ts,
                text=facts.final_text or "",
                input_tokens=usage.input_tokens or 0,
                output_tokens=usage.output_tokens or 0,
                cached_tokens=usage.cached_input_tokens or 0,
                cost_usd=facts.cost_usd,
                subtype="error" if facts.failure else "success",
                is_error=facts.failure is not None,
                errors=(facts.failure.message,) if facts.failure else (),
            ),
        )

    def _retry(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        told = as_string(event.get("errorMessage"))
        words = failure_of_words(told).message
        attempt, most = count(event.get("attempt")), count(event.get("maxAttempts"))
        seconds = as_number(event.get("delayMs")) / 1000
        note = RetryNote(
            cause=words,
            attempt=attempt,
            max_attempts=most,
            delay_ms=count(event.get("delayMs")),
            status_code=status_of(told),
        )
        text = f"Retry {attempt} of {most} in {seconds:g} s: {words}"
        return (System(ts=ts, text=text, retry=note),)

    def _compaction_start(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        return (System(ts=ts, text=f"Compacting the session ({as_string(event.get('reason'))})."),)

    def _compaction_end(self, event: dict[str, Any], ts: str) -> Sequence[Parsed]:
        spent = self._spent(parse_object(event.get("result")).get("usage"))
        problem = as_string(event.get("errorMessage"))
        if not problem:
            return spent
        return (System(ts=ts, text=f"The session was not compacted: {problem}"), *spent)

    def _spent(self, told: object) -> Sequence[SpentRecord]:
        """Add one model call: an answer, a tool's nested call or a summary."""
        if not isinstance(told, dict):
            return ()
        used = _usage(told)
        self.facts.usage = add(self.facts.usage, used)
        cost = parse_object(told.get("cost")).get("total")
        if isinstance(cost, int | float) and as_number(cost, -1) >= 0:
            self.facts.cost_usd = round((self.facts.cost_usd or 0.0) + as_number(cost), 10)
        return (SpentRecord(usage=used),)


SILENT = (
    *("turn_start", "turn_end", "tool_execution_update", "auto_retry_end", "queue_update"),
    *("entry_appended", "session_info_changed", "thinking_level_changed"),
    *("summarization_retry_attempt_start", "summarization_retry_finished"),
)
"""Events that repeat what others told, or that nobody needs to see."""


def _nothing(event: dict[str, Any], ts: str) -> Sequence[Entry]:
    return ()


def _whole(block: dict[str, Any], ts: str) -> Sequence[Entry]:
    """A block of a message that did not stream."""
    kind = block.get("type")
    if kind == "text":
        return (Assistant(ts=ts, text=as_string(block.get("text"))),)
    thought = as_string(block.get("thinking"))
    return (Thinking(ts=ts, text=thought),) if kind == "thinking" and thought else ()


def _usage(told: dict[str, Any]) -> Usage:
    """One call's counts: input is fresh, output includes reasoning where a vendor tells it."""
    return Usage(
        input_tokens=count(told.get("input")),
        cached_input_tokens=count(told.get("cacheRead")),
        cache_write_tokens=count(told.get("cacheWrite")),
        output_tokens=count(told.get("output")),
        reasoning_tokens=count(told.get("reasoning")),
    )
