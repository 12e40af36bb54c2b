"""Reads the body of an answer: SSE, one JSON object a line, a whole JSON document, or plain text.

Known objects: an entry of the contract (`kind`), `error`, a string under `delta`, `text`,
`content` or `message`, a `status`. Every other object is kept raw and counted as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    GenericParser,
    Init,
    Result,
    System,
    Usage,
    safe_session_id,
)

TEXT_KEYS = ("delta", "text", "content", "message")
FINAL_CHARACTERS = 1024 * 1024
FIELDS_KEPT = 1000
HELD_CHARACTERS = 16 * 1024 * 1024

_HOST_FIELDS = ("id", "seq", "attempt", "stream", "offset", "truncated")
_SSE_FIELDS = ("data", "event", "id", "retry")


class HttpParser(GenericParser):
    """Plain lines are what the agent said; framing and objects are recognised line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.last_object: Any = None
        """The last JSON object that came, for `resultPath`."""
        self._framed: bool | None = None
        self._event = ""
        self._fields: list[str] | None = []
        self._held: list[str] = []
        self._held_size = 0
        self._deltas: list[str] = []
        self._said: str | None = None

    def parse_line(self, line: str, ts: str) -> Sequence[Entry] | None:  # type: ignore[override]
        if self._held:
            return self._hold(line, ts, closing=line.startswith(("}", "]")))
        name, colon, rest = line.partition(":")
        if self._framed is None:
            # The first line decides: a later "id: 7" of a plain text is not framing.
            self._framed = colon != "" and (name in _SSE_FIELDS or line.startswith(": "))
        if self._framed and colon and (name in _SSE_FIELDS or not name):
            return self._field(line, name, rest.removeprefix(" "), ts)
        if line.rstrip() in ("{", "["):
            return self._hold(line, ts, closing=False)
        value = _decoded(line)
        return self._object(value, ts) if isinstance(value, dict) else super().parse_line(line, ts)

    def finish(self, ts: str) -> Sequence[Entry]:
        entries = self._released(self._held + (self._fields or []), ts)
        super().finish(ts)
        if self._deltas:
            self._said = "".join(self._deltas)[-FINAL_CHARACTERS:]
        self.facts.final_text = self._said or self.facts.final_text
        return entries

    def _hold(self, line: str, ts: str, closing: bool) -> Sequence[Entry]:
        """Gather the lines of one document, until they are one or can be none any more."""
        self._held.append(line)
        self._held_size += len(line)
        value = _decoded("\n".join(self._held)) if closing else None
        if value is None:
            return self._released(self._held, ts) if self._held_size > HELD_CHARACTERS else ()
        text = "\n".join(self._held)
        self._held, self._held_size = [], 0
        known = self._object(value, ts) if isinstance(value, dict) else None
        return super().parse_line(text, ts) if known is None else known

    def _released(self, lines: list[str], ts: str) -> Sequence[Entry]:
        """Lines that turned out to be plain text."""
        self._held, self._held_size = [], 0
        return [entry for line in lines for entry in super(HttpParser, self).parse_line(line, ts)]

    def _field(self, line: str, name: str, value: str, ts: str) -> Sequence[Entry] | None:
        if name == "event":
            self._event = value
        if name != "data":
            # Without any data it was a text after all, and is shown at the end.
            if self._fields is not None and len(self._fields) < FIELDS_KEPT:
                self._fields.append(line)
            return ()
        self._fields = None
        event, self._event = self._event, ""
        if value == "[DONE]":
            self.facts.ended = "success"
            return ()
        document = _decoded(value)
        if event == "error":
            return self._error(document if document is not None else value, ts)
        if isinstance(document, dict):
            return self._object(document, ts)
        text = document if isinstance(document, str) else value
        return self._assistant(text, ts, delta=True) if text else ()

    def _object(self, value: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        self.last_object = value
        if isinstance(value.get("kind"), str):
            return self._entry(value, ts)
        if value.get("error"):
            return self._error(value["error"], ts)
        for key in TEXT_KEYS:
            text = value.get(key)
            if isinstance(text, str):
                return self._assistant(text, ts, delta=bool(self._framed) or key == "delta")
        status = value.get("status")
        return (System(ts=ts, text=f"status: {status}"),) if isinstance(status, str) else None

    def _assistant(self, text: str, ts: str, delta: bool) -> Sequence[Entry]:
        if not text:
            return ()
        if delta:
            self._deltas.append(text)
        else:
            self._deltas.clear()
            self._said = text[-FINAL_CHARACTERS:]
        return (Assistant(ts=ts, text=text, delta=delta),)

    def _entry(self, value: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        kept = {key: item for key, item in value.items() if key not in _HOST_FIELDS}
        try:
            entry = msgspec.convert({**kept, "ts": ts}, Entry)
        except msgspec.ValidationError:
            return None
        if isinstance(entry, Assistant):
            return self._assistant(entry.text, ts, entry.delta)
        if isinstance(entry, Init):
            self.facts.session_id = safe_session_id(entry.session_id)
            self.facts.model = entry.model or None
        if isinstance(entry, Result):
            self._ended(entry)
        return (entry,)

    def _ended(self, result: Result) -> None:
        facts = self.facts
        facts.usage = Usage(
            input_tokens=result.input_tokens,
            output_tokens=result.output_tokens,
            cached_input_tokens=result.cached_tokens,
        )
        facts.cost_usd = result.cost_usd
        facts.ended = "failure" if result.is_error else "success"
        if result.text:
            self._deltas.clear()
            self._said = result.text[-FINAL_CHARACTERS:]
        if result.is_error:
            told = "; ".join(result.errors) or result.text or result.subtype
            facts.failure = Failure("process_failed", f"The endpoint reported: {told[:500]}")

    def _error(self, problem: Any, ts: str) -> Sequence[Entry]:
        text = error_text(problem)
        self.facts.failure = Failure("process_failed", f"The endpoint reported: {text[:500]}")
        entry = Result(
            ts=ts,
            text=text,
            input_tokens=0,
            output_tokens=0,
            cached_tokens=0,
            cost_usd=None,
            subtype="error",
            is_error=True,
            errors=(text,),
        )
        return (entry,)


def error_text(problem: Any) -> str:
    """An error in words: itself, its message, or its JSON."""
    if isinstance(problem, dict):
        inner = problem.get("message") or problem.get("error") or problem.get("detail")
        problem = inner if isinstance(inner, str) else problem
    return problem if isinstance(problem, str) else msgspec.json.encode(problem).decode()


def _decoded(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
