"""Cursor's event stream (`--output-format stream-json`), line by line.

Every field may be missing. A text that was streamed in parts is not shown again when it is flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from binderclip.adapters.cursor.failures import failure_of_words, says_unknown_session, told
from binderclip.adapters.cursor.tools import (
    KINDS,
    TITLES,
    content_of,
    diff_of,
    named,
    outcome_of,
    with_items,
)
from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    Init,
    JsonParser,
    Result,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    as_string,
    parse_object,
    safe_session_id,
)
from binderclip.sdk.tools import title_from
from binderclip.sdk.usage import count

MOST_DENIALS = 100

_Event = dict[str, Any]
_Handler = Callable[[_Event, str], Sequence[Entry] | None]


class CursorParser(JsonParser):
    """Entries and facts of one run."""

    def __init__(self) -> None:
        super().__init__()
        self._complaint: Failure | None = None
        self._parts: list[str] = []
        self._started: dict[str, tuple[_Event, int | None]] = {}
        self._handlers: dict[str, _Handler] = {
            "thinking": self._thinking,
            "assistant": self._assistant,
            "tool_call": self._tool_call,
            "user": self._user,
            "system": self._system,
            "result": self._result,
        }

    def parse_event(self, event: _Event, ts: str) -> Sequence[Entry] | None:
        kind = event.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        return None if handler is None else handler(event, ts)

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        words = told(line)
        if self.facts.session_id is None and says_unknown_session(words):
            self.facts.unknown_session = True
        else:
            self._complaint = failure_of_words(words) or self._complaint
        return None

    def finish(self, ts: str) -> Sequence[Entry]:
        facts = self.facts
        if facts.final_text is None:
            facts.final_text = "".join(self._parts) or None
        if facts.ended is None and facts.failure is None:
            facts.failure = self._complaint
        return ()

    def _system(self, event: _Event, ts: str) -> Sequence[Entry] | None:
        if event.get("subtype") != "init":
            return None
        model = as_string(event.get("model"))
        self.facts.session_id = safe_session_id(event.get("session_id"))
        self.facts.model = model or None
        return (Init(ts=ts, model=model, session_id=self.facts.session_id or ""),)

    def _user(self, event: _Event, ts: str) -> Sequence[Entry]:
        text = _text_of(event)
        return (User(ts=ts, text=text),) if text else ()

    def _thinking(self, event: _Event, ts: str) -> Sequence[Entry] | None:
        subtype, text = event.get("subtype"), event.get("text")
        if subtype == "delta" and type(text) is str:
            return (Thinking(ts=ts, text=text, delta=True),) if text else ()
        return () if subtype in ("delta", "completed") else None

    def _assistant(self, event: _Event, ts: str) -> Sequence[Entry]:
        text = _text_of(event)
        if not text:
            return ()
        if "timestamp_ms" in event and "model_call_id" not in event:
            self._parts.append(text)
            return (Assistant(ts=ts, text=text, delta=True),)
        self.facts.final_text = text
        shown = "".join(self._parts)
        self._parts = []
        if shown and text.startswith(shown):
            rest = text[len(shown) :]
            return (Assistant(ts=ts, text=rest, delta=True),) if rest else ()
        return () if shown.endswith(text) else (Assistant(ts=ts, text=text),)

    def _tool_call(self, event: _Event, ts: str) -> Sequence[Entry] | None:
        subtype = event.get("subtype")
        if subtype == "started":
            return self._tool_started(event, ts)
        return self._tool_completed(event, ts) if subtype == "completed" else None

    def _tool_started(self, event: _Event, ts: str) -> Sequence[Entry]:
        name, tool = named(event.get("tool_call"))
        id, args = as_string(event.get("call_id")), parse_object(tool.get("args"))
        self._started[id] = (args, count(event.get("timestamp_ms")))
        return (_call(name, args, id, ts),)

    def _tool_completed(self, event: _Event, ts: str) -> Sequence[Entry]:
        name, tool = named(event.get("tool_call"))
        id = as_string(event.get("call_id"))
        known = self._started.pop(id, None)
        before, began = known or ({}, None)
        args = parse_object(tool.get("args")) or before
        kind, (ending, given) = KINDS.get(name, "other"), outcome_of(tool)
        code = _exit_code(given.get("exitCode"))
        failed = ending not in ("success", "")
        if ending == "rejected":
            self._denied(id, title_from(TITLES, kind, args) or name)
        result = ToolResult(
            ts=ts,
            tool_use_id=id,
            tool_name=name or None,
            content=content_of(kind, given) or (ending if failed else ""),
            is_error=failed or bool(code),
            exit_code=code,
            duration_ms=_between(began, count(event.get("timestamp_ms"))),
        )
        # A call that was never announced still gets its card.
        head = () if known else (_call(name, args, id, ts),)
        return (*head, result, *(() if failed else diff_of(kind, args, given, id, ts)))

    def _denied(self, id: str, title: str) -> None:
        """Remember what the agent was not allowed to do: the run itself still succeeds."""
        denials = self.facts.result_json.setdefault("permissionDenials", [])
        if len(denials) < MOST_DENIALS:
            denials.append({"toolUseId": id, "title": title})

    def _result(self, event: _Event, ts: str) -> Sequence[Entry]:
        """The end of a run; its text is all messages in one, so the last message is kept."""
        facts, text = self.facts, as_string(event.get("result"))
        failed = event.get("is_error") is True or event.get("subtype") == "error"
        facts.session_id = facts.session_id or safe_session_id(event.get("session_id"))
        facts.ended = "failure" if failed else "success"
        facts.final_text = facts.final_text or "".join(self._parts) or text or None
        facts.usage = _usage(event.get("usage"))
        if failed:
            words = text or "Cursor reported an error without words."
            facts.failure = failure_of_words(words) or Failure("process_failed", words)
        return (self._ending(as_string(event.get("subtype")), ts),)

    def _ending(self, subtype: str, ts: str) -> Result:
        facts, usage = self.facts, self.facts.usage or Usage()
        failed = facts.ended == "failure"
        return Result(
            ts=ts,
            text="" if failed else facts.final_text or "",
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            cached_tokens=usage.cached_input_tokens or 0,
            cost_usd=None,
            subtype=subtype,
            is_error=failed,
            errors=(facts.failure.message,) if facts.failure else (),
        )


def _call(name: str, args: _Event, id: str, ts: str) -> ToolCall:
    kind = KINDS.get(name, "other")
    return ToolCall(
        ts=ts,
        name=name,
        input=with_items(args) if kind == "todo" else args,
        tool_use_id=id or None,
        tool_kind=kind,
        title=title_from(TITLES, kind, args),
    )


def _usage(told_usage: object) -> Usage | None:
    """This run's tokens; input is without cached ones. Old versions tell none."""
    if not isinstance(told_usage, dict):
        return None
    usage = Usage(
        input_tokens=count(told_usage.get("inputTokens")),
        cached_input_tokens=count(told_usage.get("cacheReadTokens")),
        cache_write_tokens=count(told_usage.get("cacheWriteTokens")),
        output_tokens=count(told_usage.get("outputTokens")),
    )
    return None if usage == Usage() else usage


def _text_of(event: _Event) -> str:
    message = event.get("message")
    content = message.get("content") if type(message) is dict else None
    if type(content) is str:
        return content
    blocks = content if type(content) is list else []
    texts = [as_string(block.get("text")) for block in blocks if type(block) is dict]
    return texts[0] if len(texts) == 1 else "".join(texts)


def _exit_code(value: object) -> int | None:
    return value if type(value) is int and -(2**31) <= value < 2**31 else None


def _between(begin: int | None, end: int | None) -> int | None:
    return None if begin is None or end is None else max(0, end - begin)
