"""Qwen Code's event stream (`--output-format stream-json`), line by line.

It resembles Claude Code's but differs in names and meaning: nothing is shared. A text that was
streamed in parts is not shown again when it arrives whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from binderclip.adapters.qwen_local import failures
from binderclip.adapters.qwen_local.tools import (
    TITLES,
    exit_code_of,
    kind_of,
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
from binderclip.sdk.tools import diff_from, title_from, with_todo_items
from binderclip.sdk.usage import add, count, from_inclusive

UNKNOWN_SESSION = "No saved session found with ID "
RETRY_WORDS = ("Retrying in ", "Retrying provider attempt")
_NUMBERED = re.compile(r"Retrying in (\d{1,9})s \(attempt (\d{1,9})/(\d{1,9})\): (.*)", re.DOTALL)
_API_ERROR = re.compile(r"\[API Error: (?:(\d{3}) )?(.*)\]", re.DOTALL)
_NOISE = ("Ripgrep not available", "    at ")
_SILENT_STREAM = frozenset(
    (
        *("goal_state", "message_start", "message_stop", "message_delta"),
        *("content_block_start", "content_block_stop", "tool_progress"),
    )
)

_Handler = Callable[[dict[str, Any], str], Sequence[Parsed] | None]


class QwenParser(JsonParser):
    """Entries and facts of one run."""

    def __init__(self) -> None:
        super().__init__()
        self._last_text = ""
        self._last_words = ""
        self._announced = False
        self._streamed: set[tuple[str, str | None]] = set()
        self._calls: dict[str, tuple[ToolKind, dict[str, Any]]] = {}
        self._handlers: dict[str, _Handler] = {
            "assistant": self._assistant,
            "user": self._user,
            "stream_event": self._stream_event,
            "system": self._system,
            "result": self._result,
        }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        kind = event.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        return handler(event, ts) if handler else None

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        if line.startswith(RETRY_WORDS):
            return (System(ts=ts, text=line, retry=_retry_note(line)),)
        if self.facts.session_id is None and line.startswith(UNKNOWN_SESSION):
            self.facts.unknown_session = True
        if line and not line.startswith(_NOISE) and self._tells_why():
            self._last_words = line
        return None

    def _tells_why(self) -> bool:
        """Before a session began the first line says why it did not, later the last one."""
        return not self._last_words or self.facts.session_id is not None

    def finish(self, ts: str) -> Sequence[Entry]:
        if self.facts.final_text is None:
            self.facts.final_text = self._last_text or None
        return ()

    def heed_exit(self, code: int | None) -> None:
        """A turn limit and bad arguments have no result line: the exit code and stderr tell."""
        if self.facts.ended is None and self.facts.failure is None:
            self.facts.failure = failures.by_exit(code, self._last_words)

    def _system(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        subtype, data = event.get("subtype"), parse_object(event.get("data"))
        if subtype == "init":
            return self._init(event, ts)
        if subtype == "retry":
            return (System(ts=ts, text=_retry_text(data), retry=self._unnumbered(data)),)
        if subtype == "model_fallback":
            models = (as_string(data.get(key)) for key in ("fromModel", "toModel"))
            return (System(ts=ts, text="Falling back: {} → {}.".format(*models)),)
        if subtype == "task_started":
            text = f"Task started: {as_string(data.get('description'))}"
            return (System(ts=ts, text=text, parent_tool_use_id=_id(data.get("tool_use_id"))),)
        if subtype == "task_notification":
            text = f"Task {as_string(data.get('status'))}."
            return (System(ts=ts, text=text, parent_tool_use_id=_id(data.get("tool_use_id"))),)
        return () if subtype in ("session_start", "session_end") else None

    def _unnumbered(self, data: dict[str, Any]) -> RetryNote | None:
        """A retry without a number; one with a number is announced here and told on stderr."""
        announced, self._announced = self._announced, count(data.get("attempt")) is not None
        return None if announced or self._announced else RetryNote(cause="The answer broke off.")

    def _init(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        model = as_string(event.get("model"))
        self.facts.session_id = safe_session_id(event.get("session_id"))
        self.facts.model = model or None
        self.facts.version = as_string(event.get("qwen_code_version")) or None
        return (Init(ts=ts, model=model, session_id=self.facts.session_id or ""),)

    def _assistant(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        message = event.get("message")
        if type(message) is not dict:
            return None
        parent = _id(event.get("parent_tool_use_id"))
        spent = self._count_step(message.get("usage"))
        blocks = message.get("content")
        if type(blocks) is str:
            blocks = [{"type": "text", "text": blocks}]
        if type(blocks) is not list:
            return spent
        entries = [entry for block in blocks for entry in self._block(block, parent, ts)]
        return (*entries, *spent)

    def _block(self, block: object, parent: str | None, ts: str) -> Sequence[Entry]:
        if type(block) is not dict:
            return ()
        kind = block.get("type")
        if kind == "text":
            text = as_string(block.get("text"))
            if parent is None:
                self._last_text = text
            if not self._was_streamed("text_delta", parent):
                return (Assistant(ts=ts, text=text, parent_tool_use_id=parent),)
        elif kind == "thinking":
            if not self._was_streamed("thinking_delta", parent):
                text = as_string(block.get("thinking"))
                return (Thinking(ts=ts, text=text, parent_tool_use_id=parent),)
        elif kind == "tool_use":
            return (self._tool_call(block, parent, ts),)
        return ()

    def _tool_call(self, block: dict[str, Any], parent: str | None, ts: str) -> Entry:
        name, id = as_string(block.get("name")), as_string(block.get("id"))
        kind, parameters = kind_of(name), parse_object(block.get("input"))
        self._calls[id] = (kind, parameters)
        return ToolCall(
            ts=ts,
            name=name,
            input=with_todo_items(parameters) if kind == "todo" else parameters,
            tool_use_id=id or None,
            tool_kind=kind,
            title=title_from(TITLES, kind, parameters),
            parent_tool_use_id=parent,
        )

    def _user(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        parent = _id(event.get("parent_tool_use_id"))
        content = parse_object(event.get("message")).get("content")
        if isinstance(content, str):
            return (User(ts=ts, text=content, parent_tool_use_id=parent),)
        blocks = content if isinstance(content, list) else []
        return [entry for block in blocks for entry in self._user_block(block, parent, ts)]

    def _user_block(self, block: object, parent: str | None, ts: str) -> Iterator[Entry]:
        if type(block) is not dict:
            return
        if block.get("type") == "tool_result":
            yield from self._tool_result(block, parent, ts)
        elif block.get("type") == "text":
            yield User(ts=ts, text=as_string(block.get("text")), parent_tool_use_id=parent)

    def _tool_result(self, block: dict[str, Any], parent: str | None, ts: str) -> Iterator[Entry]:
        id = as_string(block.get("tool_use_id"))
        kind, parameters = self._calls.pop(id, ("other", {}))
        content, is_error = _text_of(block.get("content")), block.get("is_error") is True
        yield ToolResult(
            ts=ts,
            tool_use_id=id,
            content=content,
            is_error=is_error,
            exit_code=exit_code_of(content) if kind == "shell" else None,
            parent_tool_use_id=parent,
        )
        if not is_error:
            yield from diff_from(kind, parameters, id, ts)

    def _stream_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        inner = parse_object(event.get("event"))
        kind = inner.get("type")
        if kind != "content_block_delta":
            return () if isinstance(kind, str) and kind in _SILENT_STREAM else None
        parent, delta = _id(event.get("parent_tool_use_id")), parse_object(inner.get("delta"))
        part = delta.get("type")
        if part == "text_delta":
            self._streamed.add((part, parent))
            text = as_string(delta.get("text"))
            return (Assistant(ts=ts, text=text, delta=True, parent_tool_use_id=parent),)
        if part == "thinking_delta":
            self._streamed.add((part, parent))
            text = as_string(delta.get("thinking"))
            return (Thinking(ts=ts, text=text, delta=True, parent_tool_use_id=parent),)
        return () if part in ("input_json_delta", "signature_delta") else None

    def _was_streamed(self, part: str, parent: str | None) -> bool:
        key = (part, parent)
        if key not in self._streamed:
            return False
        self._streamed.remove(key)
        return True

    def _count_step(self, usage: object) -> Sequence[SpentRecord]:
        """Each reply tells its own tokens, on its last block only; the others tell zeros."""
        step = usage_of(usage)
        if step is None or not (step.input_tokens or step.output_tokens):
            return ()
        self.facts.usage = add(self.facts.usage, step)
        return (SpentRecord(usage=step),)

    def _result(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        """The last result counts: a failed sub-agent prints one too, with no counts."""
        facts, usage = self.facts, usage_of(event.get("usage"))
        failed = event.get("is_error") is True
        message = as_string(parse_object(event.get("error")).get("message"))
        if failed:
            self._last_text = self._last_text.removesuffix(message)
        # A reply that broke off was paid for, but is in no count: zero would be a lie.
        uncounted = failed and self._last_text and facts.usage is None
        if usage is not None and facts.session_id is not None and not uncounted:
            facts.usage, facts.usage_basis = usage, "session_cumulative"
        facts.ended = "failure" if failed else "success"
        facts.failure = _failure(message) if failed else None
        facts.final_text = as_string(event.get("result")) or self._last_text or None
        denials = event.get("permission_denials")
        if isinstance(denials, list) and denials:
            facts.result_json["permissionDenials"] = denials
        return (_result_entry(event, facts.final_text or "", usage, message, ts),)


def usage_of(value: object) -> Usage | None:
    """Buckets from counts whose input includes the cached tokens; None where nothing was counted.

    Only real counts have the cached ones among them; messages without say zero for unknown.
    """
    told = parse_object(value)
    if "cache_read_input_tokens" not in told:
        return None
    return from_inclusive(
        input_tokens=count(told.get("input_tokens")),
        cached=count(told.get("cache_read_input_tokens")),
        cache_write=count(told.get("cache_creation_input_tokens")),
        output=count(told.get("output_tokens")),
    )


def _result_entry(
    event: dict[str, Any], text: str, usage: Usage | None, message: str, ts: str
) -> Result:
    usage = usage or Usage()
    return Result(
        ts=ts,
        text=text,
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cached_tokens=usage.cached_input_tokens or 0,
        cost_usd=None,
        subtype=as_string(event.get("subtype")),
        is_error=event.get("is_error") is True,
        errors=(message,) if message else (),
    )


def _failure(message: str) -> Failure:
    found = failures.told(message)
    return found or Failure("process_failed", message or "Qwen Code reported an error.")


def _retry_text(data: dict[str, Any]) -> str:
    delay = as_number(data.get("delayMs"))
    attempt, most = (int(as_number(data.get(key))) for key in ("attempt", "maxRetries"))
    when = f" in {delay / 1000:g} s" if delay else ""
    which = f" (attempt {attempt} of {most})" if attempt else ""
    return f"Retrying{when}{which}."


def _retry_note(line: str) -> RetryNote | None:
    told = _NUMBERED.fullmatch(line)
    if told is None:
        return None
    why = _API_ERROR.fullmatch(told[4])
    return RetryNote(
        cause=why[2] if why else told[4],
        attempt=int(told[2]),
        max_attempts=int(told[3]),
        delay_ms=int(told[1]) * 1000,
        status_code=int(why[1]) if why and why[1] else None,
    )


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(as_string(parse_object(block).get("text")) for block in blocks)


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
