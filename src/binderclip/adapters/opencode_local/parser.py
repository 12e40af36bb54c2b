"""OpenCode's events (`opencode run --format json`), line by line.

There is no first and no last event: the session is on every line, the end is a step that stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from binderclip.adapters.opencode_local.failures import (
    failure_of_error,
    failure_of_finish,
    failure_of_stderr,
)
from binderclip.adapters.opencode_local.tools import (
    attachments_of,
    diff_of,
    kind_of,
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
    SpentRecord,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    as_number,
    as_string,
    parse_object,
    safe_session_id,
)
from binderclip.sdk.tools import with_todo_items
from binderclip.sdk.usage import add, count, total_tokens

UNKNOWN_SESSION = "Session not found"
USAGE = "opencode run [message"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_GOES_ON = ("tool-calls", "unknown", "")
"""Reasons of a step after which OpenCode calls the model again."""


class OpenCodeParser(JsonParser):
    """Entries and facts of one run."""

    inner = "part"

    def __init__(self) -> None:
        super().__init__()
        self._errors: list[str] = []
        self._denied: str | None = None
        self._reason = ""
        self._begun = False
        self._complaint: Failure | None = None
        self._handlers: dict[str, Callable[[dict[str, Any], str], Sequence[Parsed]]] = {
            "step_start": self._step_start,
            "text": self._text,
            "reasoning": self._reasoning,
            "tool_use": self._tool_use,
            "step_finish": self._step_finish,
            "error": self._error,
        }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        kind = event.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        if handler is None:
            return None
        if self._begun:
            return handler(event, ts)
        return (*self._session(event, ts), *handler(event, ts))

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        words = _COLOURS.sub("", line).strip()
        if words.startswith("! "):
            words = words[2:].strip()
            if words.startswith("permission requested: "):
                asked = words.removeprefix("permission requested: ")
                self._denied = asked.removesuffix("; auto-rejecting")
            return (System(ts=ts, text=words),)
        if words.startswith("Error: "):
            self._complain(words.removeprefix("Error: "))
        elif words.startswith("↳ ") and self._complaint is not None:
            more = f"{self._complaint.message} {words}"
            self._complaint = Failure(self._complaint.code, more)
        elif words.startswith(USAGE) and self._complaint is None:
            self._complaint = Failure(
                "bad_config", "OpenCode refused its command line and printed its usage."
            )
        return None

    def finish(self, ts: str) -> Sequence[Entry]:
        facts = self.facts
        if facts.ended is None and facts.failure is None:
            facts.failure = self._denial() or self._complaint
        if facts.cost_usd == 0 and total_tokens(facts.usage):
            # OpenCode counts a model whose price it does not know as free.
            facts.cost_usd = None
        if facts.ended is None:
            return ()
        usage = facts.usage or Usage()
        return (
            Result(
                ts=ts,
                text=facts.final_text or "",
                input_tokens=usage.input_tokens or 0,
                output_tokens=usage.output_tokens or 0,
                cached_tokens=usage.cached_input_tokens or 0,
                cost_usd=facts.cost_usd,
                subtype=self._reason if facts.ended == "success" else "error",
                is_error=facts.ended == "failure",
                errors=tuple(self._errors) if facts.ended == "failure" else (),
            ),
        )

    def _complain(self, words: str) -> None:
        """The CLI's own last word, which comes before any event if at all."""
        if words == UNKNOWN_SESSION and self.facts.session_id is None:
            self.facts.unknown_session = True
        elif self._complaint is None:
            self._complaint = failure_of_stderr(words)

    def _denial(self) -> Failure | None:
        """A denied tool call ends the run with exit code 0, unless it may go on."""
        if self._denied is None or self._reason != "tool-calls":
            return None
        return Failure(
            "permission",
            f"OpenCode ended because {self._denied} was denied: nobody was there to approve it. "
            "Allow it in opencode.json, or set continueAfterDenial.",
        )

    def _session(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        found = safe_session_id(event.get("sessionID"))
        if found is None:
            return ()
        self.facts.session_id = found
        self._begun = True
        return (Init(ts=ts, model="", session_id=found),)

    def _step_start(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        """An error that the run survives is a notice; the last one stands in the result."""
        facts = self.facts
        survived = facts.failure if facts.ended == "failure" else None
        facts.ended = None
        return (System(ts=ts, text=survived.message),) if survived else ()

    def _text(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        text = as_string(parse_object(event.get("part")).get("text"))
        self.facts.final_text = text or self.facts.final_text
        return (Assistant(ts=ts, text=text),)

    def _reasoning(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        text = as_string(parse_object(event.get("part")).get("text"))
        return (Thinking(ts=ts, text=text),)

    def _tool_use(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        part = parse_object(event.get("part"))
        state, name = parse_object(part.get("state")), as_string(part.get("tool"))
        given, metadata = parse_object(state.get("input")), parse_object(state.get("metadata"))
        id, kind = as_string(part.get("callID")), kind_of(name)
        if kind == "agent":
            self.facts.result_json["usageLeavesOut"] = "sub-agents"
        call = ToolCall(
            ts=ts,
            name=as_string(given.get("tool"), name) if name == "invalid" else name,
            input=with_todo_items(given) if kind == "todo" else given,
            tool_use_id=id or None,
            tool_kind=kind,
            title=title_of(given, state),
        )
        result = _result(ts, id, name, state, metadata)
        if result.is_error or kind not in ("write", "edit"):
            return (call, result)
        return (call, result, *diff_of(kind, given, metadata, id, ts))

    def _step_finish(self, event: dict[str, Any], ts: str) -> Sequence[Parsed]:
        facts, part = self.facts, parse_object(event.get("part"))
        used = _usage(part.get("tokens"))
        facts.usage = add(facts.usage, used)
        cost = as_number(part.get("cost"), -1)
        if cost >= 0:
            facts.cost_usd = round((facts.cost_usd or 0.0) + cost, 10)
        self._finished(as_string(part.get("reason")))
        return (SpentRecord(usage=used),) if used else ()

    def _finished(self, reason: str) -> None:
        self._reason = reason
        if reason in _GOES_ON:
            return
        failure = failure_of_finish(reason)
        if failure is None:
            self.facts.ended, self.facts.failure = "success", None
        else:
            self._fail(failure)

    def _error(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        self._fail(failure_of_error(event, begun=self.facts.usage is not None))
        return ()

    def _fail(self, failure: Failure) -> None:
        self.facts.ended, self.facts.failure = "failure", failure
        if failure.message not in self._errors:
            self._errors.append(failure.message)


def _result(
    ts: str, id: str, name: str, state: dict[str, Any], metadata: dict[str, Any]
) -> ToolResult:
    failed = state.get("status") == "error" or name == "invalid"
    code = metadata.get("exit")
    exit_code = code if type(code) is int else None
    words = as_string(state.get("error")) if state.get("status") == "error" else ""
    return ToolResult(
        ts=ts,
        tool_use_id=id,
        content=words or as_string(state.get("output")),
        is_error=failed or bool(exit_code),
        exit_code=exit_code,
        duration_ms=_duration(parse_object(state.get("time"))),
        attachments=attachments_of(state) if "attachments" in state else (),
    )


def _duration(time: dict[str, Any]) -> int | None:
    begin, end = count(time.get("start")), count(time.get("end"))
    return end - begin if begin is not None and end is not None and end >= begin else None


def _usage(tokens: object) -> Usage | None:
    """One step's counts: fresh input and answer are told without cached and reasoning tokens."""
    if not isinstance(tokens, dict):
        return None
    cache = parse_object(tokens.get("cache"))
    answer, reasoning = count(tokens.get("output")), count(tokens.get("reasoning"))
    return Usage(
        input_tokens=count(tokens.get("input")),
        cached_input_tokens=count(cache.get("read")),
        cache_write_tokens=count(cache.get("write")),
        output_tokens=None if answer is None else answer + (reasoning or 0),
        reasoning_tokens=reasoning,
    )
