"""Reading Claude Code's stream-json: one line per content block, one or more results per run.

A run that left work in the background prints a result for each time it went on: the last one
says how it ended, and only their sum is what it used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from binderclip.adapters.claude_local.failures import failure_of_result, refusal_to_start
from binderclip.adapters.claude_local.spending import Spending, answered, asked
from binderclip.adapters.claude_local.tools import Tools
from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    Init,
    JsonParser,
    Parsed,
    Result,
    RetryNote,
    System,
    Thinking,
    Usage,
    User,
    as_number,
    as_string,
    as_string_array,
    parse_object,
    safe_session_id,
)
from binderclip.sdk.usage import count

NO_SESSION = (
    "No conversation found with session ID",
    "Error: --resume requires a valid session ID",
)
INTERRUPTED = "[Request interrupted"
SILENT = frozenset(
    (
        *("status", "thinking_tokens", "background_tasks_changed", "session_state_changed"),
        *("task_progress", "task_updated", "task_summary", "hook_started", "hook_progress"),
        *("hook_response", "stop_hook_summary", "turn_duration", "files_persisted"),
        *("turn_starting", "vcs_state_changed", "post_turn_summary", "permission_denied"),
    )
)
TOLD = frozenset(
    (
        *("informational", "notification", "local_command"),
        *("local_command_output", "model_fallback", "model_refusal_fallback"),
        *("model_refusal_no_fallback", "model_consent_fallback", "session_writes_lost"),
    )
)
_Events = dict[str, Callable[[dict[str, Any], str], Sequence[Parsed] | None]]


class ClaudeParser(JsonParser):
    """State of one run: open tools, streamed messages, what was spent, the last words."""

    def __init__(self) -> None:
        super().__init__()
        self._tools = Tools()
        self._spending = Spending()
        self._started = False
        self._words: str | None = None
        self._api_error = ""
        self._resets_at: float = 0
        self._message: dict[str | None, str] = {}
        self._streamed: set[str] = set()
        self._counted: dict[str | None, str] = {}
        self._background: set[str] = set()
        self._events: _Events = {
            "system": self._system,
            "assistant": self._assistant,
            "user": self._user,
            "result": self._result,
            "stream_event": self._partial,
            "rate_limit_event": self._rate_limit,
            "output": self._output,
            "tool_progress": _nothing,
            "tool_use_summary": _nothing,
            "prompt_suggestion": _nothing,
            "keep_alive": _nothing,
            "auth_status": _nothing,
        }
        self._notices: _Events = {
            "init": self._init,
            "api_retry": _retry,
            "compact_boundary": _compacted,
            "task_started": self._task_started,
            "task_notification": self._task_ended,
        }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        kind = event.get("type")
        handle = self._events.get(kind) if type(kind) is str else None
        return handle(event, ts) if handle else None

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        # What it says before it started is its own; afterwards a hook or server may say anything.
        if not self._started and self.facts.ended is None and self.facts.failure is None:
            if line.startswith(NO_SESSION):
                self.facts.unknown_session = True
            else:
                self.facts.failure = refusal_to_start(line)
        return None

    def _system(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        subtype = event.get("subtype")
        if type(subtype) is not str:
            return None
        handle = self._notices.get(subtype)
        if handle is not None:
            return handle(event, ts)
        if subtype in SILENT:
            return ()
        if subtype not in TOLD:
            return None
        if subtype == "model_refusal_no_fallback":
            self._api_error = "refusal"
        text = _told(event) or subtype.replace("_", " ")
        return (System(ts=ts, text=text, parent_tool_use_id=_parent(event)),)

    def _init(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        facts, first = self.facts, not self._started
        self._started = True
        facts.session_id = safe_session_id(event.get("session_id")) or facts.session_id
        facts.model = as_string(event.get("model")) or facts.model
        facts.version = as_string(event.get("claude_code_version")) or facts.version
        if not first:
            return ()
        init = Init(ts=ts, model=facts.model or "", session_id=facts.session_id or "")
        return (init, *_broken_servers(event, ts))

    def _assistant(self, event: dict[str, Any], ts: str) -> Sequence[Parsed]:
        message, parent = parse_object(event.get("message")), _parent(event)
        model = message.get("model")
        if model == "<synthetic>" or event.get("is_api_error_message") is True:
            return self._synthetic(event, message, ts)
        if not self.facts.model:
            self.facts.model = as_string(model) or None
        id = as_string(message.get("id"))
        shown = bool(self._streamed) and id in self._streamed
        blocks = _blocks(message)
        if len(blocks) == 1:
            entries = self._block(blocks[0], ts, parent, shown)
        else:
            entries = [part for each in blocks for part in self._block(each, ts, parent, shown)]
        if self._counted.get(parent) == id or not (entries or shown):
            return entries
        self._counted[parent] = id
        return (*entries, *asked(message))

    def _block(
        self, block: dict[str, Any], ts: str, parent: str | None, shown: bool
    ) -> Sequence[Entry]:
        kind = block.get("type")
        if kind == "text":
            text = as_string(block.get("text"))
            if parent is None and text:
                self._words = text
            if shown or not text:
                return ()
            return (Assistant(ts=ts, text=text, parent_tool_use_id=parent),)
        if kind == "thinking":
            text = as_string(block.get("thinking"))
            if shown or not text:
                return ()
            return (Thinking(ts=ts, text=text, parent_tool_use_id=parent),)
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            return (self._tools.call(block, ts, parent),)
        if isinstance(kind, str) and kind.endswith("_tool_result"):
            return self._tools.result(block, {}, ts, parent)
        return ()

    def _synthetic(
        self, event: dict[str, Any], message: dict[str, Any], ts: str
    ) -> Sequence[Entry]:
        """An error that the CLI wrote in the model's place."""
        if _parent(event) is None:
            self._api_error = as_string(event.get("api_error")) or as_string(event.get("error"))
        text = "\n".join(as_string(block.get("text")) for block in _blocks(message))
        return (System(ts=ts, text=text, parent_tool_use_id=_parent(event)),) if text else ()

    def _user(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        message, parent = parse_object(event.get("message")), _parent(event)
        entries: list[Entry] = []
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                entries += self._tools.result(block, event.get("tool_use_result"), ts, parent)
                continue
            text = as_string(block.get("text"))
            if not text:
                continue
            own = event.get("isSynthetic") is True or text.startswith(INTERRUPTED)
            kind = System if own else User
            entries.append(kind(ts=ts, text=text, parent_tool_use_id=parent))
        return entries

    def _partial(self, event: dict[str, Any], ts: str) -> Sequence[Parsed]:
        inner, parent = parse_object(event.get("event")), _parent(event)
        kind = inner.get("type")
        if kind == "message_start":
            started = parse_object(inner.get("message"))
            self._message[parent] = as_string(started.get("id"))
        if kind == "message_delta":
            return answered(inner)
        if kind != "content_block_delta":
            return ()
        delta = parse_object(inner.get("delta"))
        text, thought = delta.get("text"), delta.get("thinking")
        if delta.get("type") == "text_delta" and isinstance(text, str):
            self._streamed.add(self._message.get(parent, ""))
            return (Assistant(ts=ts, text=text, delta=True, parent_tool_use_id=parent),)
        if delta.get("type") == "thinking_delta" and isinstance(thought, str):
            self._streamed.add(self._message.get(parent, ""))
            return (Thinking(ts=ts, text=thought, delta=True, parent_tool_use_id=parent),)
        return ()

    def _result(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        facts = self.facts
        errors = tuple(as_string_array(event.get("errors")))
        text = as_string(event.get("result")) or _told(event)
        self._conclude(event, errors, text)
        failed = facts.failure is not None or facts.unknown_session
        facts.ended = "failure" if failed else "success"
        facts.final_text = self._words if failed else text or self._words
        self._spending.add(event)
        facts.usage, facts.cost_usd = self._spending.usage, self._spending.cost_usd
        facts.provider = self._spending.provider or facts.provider
        facts.result_json = _kept(event)
        used = facts.usage or Usage()
        return (
            Result(
                ts=ts,
                text=text,
                input_tokens=used.input_tokens or 0,
                output_tokens=used.output_tokens or 0,
                cached_tokens=used.cached_input_tokens or 0,
                cost_usd=facts.cost_usd,
                subtype=as_string(event.get("subtype")),
                is_error=failed,
                errors=errors or ((text,) if failed and text else ()),
            ),
        )

    def _conclude(self, event: dict[str, Any], errors: tuple[str, ...], text: str) -> None:
        """How the run ended by this result; an id that never began a session is not kept."""
        facts, began = self.facts, self._started or as_number(event.get("num_turns")) > 0
        if not began and errors and errors[0].startswith(NO_SESSION):
            facts.unknown_session = True
            return
        if began:
            facts.session_id = safe_session_id(event.get("session_id")) or facts.session_id
        if not began and event.get("is_error") is True:
            words = (errors[0] if errors else text) or "Claude Code refused to start."
            facts.failure = Failure("bad_config", words.strip())
            return
        facts.failure = failure_of_result(event, self._api_error, self._resets_at)
        self._api_error = ""

    def _rate_limit(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        info = parse_object(event.get("rate_limit_info"))
        status, window = as_string(info.get("status")), as_string(info.get("rateLimitType"))
        if status == "rejected":
            self._resets_at = as_number(info.get("resetsAt"))
        if status in ("", "allowed"):
            return ()
        return (System(ts=ts, text=f"Usage limit {window}: {status}".replace("_", " ")),)

    def _task_started(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        if event.get("is_backgrounded") is True:
            self._background.add(as_string(event.get("task_id")))
        return ()

    def _task_ended(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        summary = as_string(event.get("summary"))
        if as_string(event.get("task_id")) not in self._background or not summary:
            return ()
        status = as_string(event.get("status"))
        return (System(ts=ts, text=f"Background task {status}: {summary}"),)

    def _output(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        text = _told(event)
        self.facts.final_text = text or self.facts.final_text
        return (Assistant(ts=ts, text=text),) if text else ()


def _nothing(event: dict[str, Any], ts: str) -> Sequence[Entry]:
    return ()


def _retry(event: dict[str, Any], ts: str) -> Sequence[Entry]:
    attempt, most = as_number(event.get("attempt")), as_number(event.get("max_retries"))
    wait = as_number(event.get("retry_delay_ms")) / 1000
    status = event.get("error_status")
    why = as_string(event.get("error")).replace("_", " ") or "error"
    code = f" ({status})" if isinstance(status, int) else ""
    text = f"Retry {attempt:.0f} of {most:.0f} in {wait:.1f} s: {why}{code}"
    note = RetryNote(
        cause=why,
        attempt=count(event.get("attempt")),
        max_attempts=count(event.get("max_retries")),
        delay_ms=count(event.get("retry_delay_ms")),
        status_code=count(status),
    )
    return (System(ts=ts, text=text, retry=note),)


def _broken_servers(event: dict[str, Any], ts: str) -> list[Entry]:
    servers = event.get("mcp_servers")
    found = [item for item in servers if isinstance(item, dict)] if type(servers) is list else []
    return [
        System(ts=ts, text=f"MCP server {as_string(item.get('name'))}: {item['status']}")
        for item in found
        if item.get("status") in ("failed", "needs-auth")
    ]


def _compacted(event: dict[str, Any], ts: str) -> Sequence[Entry]:
    about = parse_object(event.get("compact_metadata"))
    size = as_number(about.get("pre_tokens"))
    before = f", {size:.0f} tokens before" if size else ""
    return (System(ts=ts, text=f"Context compacted ({as_string(about.get('trigger'))}{before})"),)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if type(content) is list:
        if len(content) == 1 and type(content[0]) is dict:
            return content
        return [block for block in content if type(block) is dict]
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


def _parent(event: dict[str, Any]) -> str | None:
    parent = event.get("parent_tool_use_id")
    return parent if parent is None or (type(parent) is str and parent) else None


def _told(event: dict[str, Any]) -> str:
    """The words of an event, whichever of its usual fields holds them."""
    for name in ("message", "content", "text", "summary"):
        value = event.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _kept(event: dict[str, Any]) -> dict[str, Any]:
    """What the result says besides the facts: turns, times, reasons, denied tools."""
    names = {
        "num_turns": "numTurns",
        "duration_ms": "durationMs",
        "duration_api_ms": "durationApiMs",
        "stop_reason": "stopReason",
        "terminal_reason": "terminalReason",
        "subtype": "subtype",
        "api_error_status": "apiErrorStatus",
        "permission_denials": "permissionDenials",
        "structured_output": "structuredOutput",
    }
    return {name: event[key] for key, name in names.items() if event.get(key) not in (None, [])}
