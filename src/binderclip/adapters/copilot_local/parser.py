"""Copilot's events (`--output-format json`), line by line.

Texts are shown as they stream and not again when they arrive whole; the session's id comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from binderclip.adapters.copilot_local.events import NOTES, SILENT
from binderclip.adapters.copilot_local.failures import (
    failure_of_error,
    failure_of_stderr,
    retry_note,
    vendor_words,
)
from binderclip.adapters.copilot_local.tools import (
    attachments_of,
    diff_of,
    kind_of,
    title_of,
    with_items,
)
from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    Init,
    JsonParser,
    Result,
    RetryNote,
    System,
    Thinking,
    ToolCall,
    ToolKind,
    ToolResult,
    User,
    as_number,
    as_string,
    parse_object,
    safe_session_id,
)

UNKNOWN_SESSION = "Error: No session, task, or name matched "
MOST_DENIALS = 100

_Event = dict[str, Any]
_Handler = Callable[[_Event, _Event, str], Sequence[Entry]]


class CopilotParser(JsonParser):
    """Entries and facts of one run."""

    inner = "data"

    def __init__(self) -> None:
        super().__init__()
        self.began = False
        """The prompt was taken, so there is a session, whatever becomes of the run."""
        self.generated = False
        """The model answered something, complete or not."""
        self._introduced = False
        self._complaint: Failure | None = None
        self._failed_call: _Event = {}
        self._agents: dict[str, str] = {}
        self._streamed: set[str] = set()
        self._thinking: set[str | None] = set()
        self._thoughts: dict[str | None, str] = {}
        self._calls: dict[str, tuple[ToolKind, _Event, str]] = {}
        self._handlers: dict[str, _Handler] = {
            "assistant.message_delta": self._message_delta,
            "assistant.reasoning_delta": self._reasoning_delta,
            "assistant.message": self._message,
            "assistant.reasoning": self._reasoning,
            "tool.execution_start": self._tool_start,
            "tool.execution_complete": self._tool_complete,
            "user.message": self._user_message,
            "session.tools_updated": self._introduction,
            "model.call_start": self._introduction,
            "model.call_failure": self._call_failure,
            "subagent.started": self._agent_started,
            "session.info": self._info,
            "session.error": self._error,
            "session_limits_exhausted.requested": self._limit,
            "result": self._result,
            **dict.fromkeys(NOTES, self._noted),
            **dict.fromkeys(SILENT, _nothing),
        }

    def parse_event(self, event: _Event, ts: str) -> Sequence[Entry] | None:
        kind = event.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        if handler is None:
            return None
        data = event.get("data")
        return handler(event, data if type(data) is dict else {}, ts)

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        if self.began:
            return None
        if line.startswith(UNKNOWN_SESSION):
            self.facts.unknown_session = True
        elif self._complaint is None:
            self._complaint = failure_of_stderr(line)
        return None

    def finish(self, ts: str) -> Sequence[Entry]:
        if self.facts.ended is None and self.facts.failure is None:
            self.facts.failure = self._complaint
        return ()

    def _parent(self, event: _Event, data: _Event) -> str | None:
        """The call that a sub-agent's event belongs to."""
        agent = event.get("agentId")
        if agent is None:
            return None
        named = data.get("parentToolCallId")
        if type(named) is str and named:
            return named
        return self._agents.get(agent) if type(agent) is str else None

    def _introduction(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        model = as_string(data.get("model"))
        if self._introduced or not model or "agentId" in event:
            return ()
        self._introduced = True
        self.facts.model = model
        return (Init(ts=ts, model=model, session_id=""),)

    def _user_message(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        self.began = True
        text = as_string(data.get("content"))
        return (User(ts=ts, text=text, parent_tool_use_id=self._parent(event, data)),)

    def _message_delta(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        text = data.get("deltaContent")
        if type(text) is not str or not text:
            return ()
        self.generated = True
        self._streamed.add(as_string(data.get("messageId")))
        parent = self._parent(event, data)
        return (Assistant(ts=ts, text=text, delta=True, parent_tool_use_id=parent),)

    def _reasoning_delta(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        text = data.get("deltaContent")
        if type(text) is not str or not text:
            return ()
        parent = self._parent(event, data)
        self.generated = True
        self._streamed.add(as_string(data.get("reasoningId")))
        self._thinking.add(parent)
        return (Thinking(ts=ts, text=text, delta=True, parent_tool_use_id=parent),)

    def _message(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        parent, text = self._parent(event, data), as_string(data.get("content"))
        if parent is None:
            self.facts.failure = None
            self.facts.model = as_string(data.get("model")) or self.facts.model
            if text and not data.get("toolRequests"):
                self.facts.final_text = text
        entries: list[Entry] = []
        if parent not in self._thinking:
            entries += self._thought(as_string(data.get("reasoningText")), parent, ts)
        self._thinking.discard(parent)
        id = as_string(data.get("messageId"))
        if id in self._streamed:
            self._streamed.discard(id)
        elif text:
            entries.append(Assistant(ts=ts, text=text, parent_tool_use_id=parent))
        return entries

    def _reasoning(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        id = as_string(data.get("reasoningId"))
        if id in self._streamed:
            self._streamed.discard(id)
            return ()
        return self._thought(as_string(data.get("content")), self._parent(event, data), ts)

    def _thought(self, text: str, parent: str | None, ts: str) -> Sequence[Entry]:
        """A thought that came whole: with its message and by itself, in either order."""
        if not text or self._thoughts.get(parent) == text:
            return ()
        self._thoughts[parent] = text
        return (Thinking(ts=ts, text=text, parent_tool_use_id=parent),)

    def _tool_start(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        name, id = as_string(data.get("toolName")), as_string(data.get("toolCallId"))
        kind, given = kind_of(name, data), parse_object(data.get("arguments"))
        parent = self._parent(event, data)
        self._thoughts.pop(parent, None)
        self._calls[id] = (kind, given, as_string(event.get("timestamp")))
        call = ToolCall(
            ts=ts,
            name=name,
            input=with_items(given) if kind == "todo" else given,
            tool_use_id=id or None,
            tool_kind=kind,
            title=title_of(kind, given, as_string(data.get("toolTitle"))),
            parent_tool_use_id=parent,
        )
        return (call,)

    def _tool_complete(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        id = as_string(data.get("toolCallId"))
        kind, given, began = self._calls.pop(id, ("other", {}, ""))
        result, error = parse_object(data.get("result")), parse_object(data.get("error"))
        code = _exit_code(parse_object(data.get("shellExecution")).get("exitCode"))
        failed = data.get("success") is False
        if error.get("code") == "denied":
            self._denied(id, kind, given)
        entry = ToolResult(
            ts=ts,
            tool_use_id=id,
            content=as_string(result.get("content")) or as_string(error.get("message")),
            is_error=failed or bool(code),
            exit_code=code,
            duration_ms=_milliseconds(began, as_string(event.get("timestamp"))),
            attachments=attachments_of(result),
            parent_tool_use_id=self._parent(event, data),
        )
        return (entry,) if failed else (entry, *diff_of(kind, given, data, id, ts))

    def _denied(self, id: str, kind: ToolKind, given: _Event) -> None:
        """Remember what the agent was not allowed to do: the run itself still succeeds."""
        denials = self.facts.result_json.setdefault("permissionDenials", [])
        if len(denials) < MOST_DENIALS:
            denials.append({"toolUseId": id, "title": title_of(kind, given, kind)})

    def _call_failure(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        if "agentId" not in event:
            self._failed_call = data
        return ()

    def _agent_started(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        call = as_string(data.get("toolCallId"))
        self._agents[as_string(event.get("agentId"))] = call
        name = as_string(data.get("agentDisplayName")) or as_string(data.get("agentName"))
        return (System(ts=ts, text=f"Sub-agent {name} started.", parent_tool_use_id=call or None),)

    def _info(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        """Notices; a retry also says what the vendor answered."""
        text, kind = as_string(data.get("message")), data.get("infoType")
        note: RetryNote | None = None
        if kind == "model_retry":
            note = retry_note(self._failed_call, text)
            words = f"{note.status_code or ''} {vendor_words(self._failed_call)}".strip()
            text = f"{text} ({words[:500]})" if words else text
        if not text or kind in ("file_created", "file_edited", "file_deleted"):
            return ()
        parent = self._parent(event, data)
        return (System(ts=ts, text=text, parent_tool_use_id=parent, retry=note),)

    def _noted(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        text = NOTES[event["type"]](data)
        if not text:
            return ()
        return (System(ts=ts, text=text, parent_tool_use_id=self._parent(event, data)),)

    def _error(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        """The end of a request that is not retried any more; a sub-agent's is its own matter."""
        if "agentId" in event:
            parent = self._parent(event, data)
            return (System(ts=ts, text=as_string(data.get("message")), parent_tool_use_id=parent),)
        self.began = True
        self.facts.failure = failure_of_error(data, self._failed_call)
        return ()

    def _limit(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        used, most = as_number(data.get("usedAiCredits")), as_number(data.get("maxAiCredits"))
        words = f"The limit of {most:g} AI credits is reached ({used:g} used)."
        self.facts.failure = Failure("budget", words)
        return (System(ts=ts, text=words),)

    def _result(self, event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
        facts, code = self.facts, event.get("exitCode")
        facts.session_id = safe_session_id(event.get("sessionId"))
        facts.ended = "success" if code == 0 and facts.failure is None else "failure"
        premium = as_number(parse_object(event.get("usage")).get("premiumRequests"))
        if premium:
            facts.result_json["premiumRequests"] = premium
        failed = facts.ended == "failure"
        return (
            Result(
                ts=ts,
                text="" if failed else facts.final_text or "",
                input_tokens=0,
                output_tokens=0,
                cached_tokens=0,
                cost_usd=None,
                subtype="error" if failed else "success",
                is_error=failed,
                errors=(facts.failure.message,) if facts.failure else (),
            ),
        )


def _nothing(event: _Event, data: _Event, ts: str) -> Sequence[Entry]:
    return ()


def _exit_code(value: object) -> int | None:
    return value if type(value) is int and -(2**31) <= value < 2**31 else None


def _milliseconds(begin: str, end: str) -> int | None:
    """How long a tool ran, by the runtime's own clock."""
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    except (ValueError, TypeError):
        return None
    return max(0, round(took.total_seconds() * 1000))
