"""Gemini CLI's event stream (`--output-format stream-json`), line by line.

Unknown events are left to the host; wrong types inside a known event never raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from binderclip.adapters.gemini_local import failures
from binderclip.adapters.gemini_local.tools import TITLES, kind_of
from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    Init,
    JsonParser,
    Result,
    RetryNote,
    Stdout,
    System,
    ToolCall,
    ToolKind,
    ToolResult,
    Usage,
    User,
    as_string,
    parse_json,
    parse_object,
    safe_session_id,
)
from binderclip.sdk.tools import diff_from, title_from, with_todo_items
from binderclip.sdk.usage import count

EXIT_WORDS = "Command exited with code: "
ALIASES = frozenset(("auto", "pro", "flash", "flash-lite"))
LOOP_WORDS = "Loop detected"
RETRY = re.compile(
    r"Attempt (\d{1,9}) failed(?: with status (\d{3}))?\. Retrying with backoff\.\.\. ?(.*)",
    re.DOTALL,
)
API_FAILED = "Error when talking to Gemini API"
UNKNOWN_SESSION = (
    "Error resuming session: No previous sessions found for this project",
    "Error resuming session: Invalid session identifier",
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = (
    "Warning: ",
    "YOLO mode is enabled",
    "Approval mode overridden",
    "Ripgrep is not available",
    "[STARTUP]",
    "    at ",
)


class GeminiParser(JsonParser):
    """Entries and facts of one run."""

    def __init__(self) -> None:
        super().__init__()
        self.facts.provider = "google"
        self._answer: list[str] = []
        self._answer_before_tools = ""
        self._calls: dict[str, tuple[ToolKind, dict[str, Any], str]] = {}
        self._errors: list[str] = []
        self._last_words = ""
        self._unclassified = False
        self._document: list[str] = []
        self._handlers: dict[str, Callable[[dict[str, Any], str], Sequence[Entry] | None]] = {
            "init": self._init,
            "message": self._message,
            "tool_use": self._tool_use,
            "tool_result": self._tool_result,
            "error": self._error,
            "result": self._result,
        }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        kind = event.get("type")
        if type(kind) is not str or kind not in self._handlers:
            return None
        return self._handlers[kind](event, ts)

    def parse_text(self, line: str, ts: str) -> Sequence[Entry] | None:
        """`--output-format json` prints one document over many lines instead of events."""
        if not self._document and (line != "{" or self.facts.session_id):
            return None
        self._document.append(line)
        if line != "}":
            return ()
        text = "\n".join(self._document)
        self._document.clear()
        whole = parse_json(text)
        return (Stdout(ts=ts, text=text),) if whole is None else self._whole(whole, ts)

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        again = RETRY.fullmatch(line)
        if again is not None:
            return (System(ts=ts, text=line, retry=_retry_note(again)),)
        if self.facts.session_id is None and line.startswith(UNKNOWN_SESSION):
            self.facts.unknown_session = True
        if line.startswith(API_FAILED) and "ModelNotFoundError: " in line:
            self._missing_model()
        if line and not line.startswith(_NOISE) and self._tells_why():
            self._last_words = _COLOURS.sub("", line)
        return None

    def _tells_why(self) -> bool:
        """Before a session began the first line says why it did not, later the last one."""
        return not self._last_words or self.facts.session_id is not None

    def finish(self, ts: str) -> Sequence[Entry]:
        self.facts.final_text = self._final_text()
        left = "\n".join(self._document)
        return (Stdout(ts=ts, text=left),) if left else ()

    def heed_exit(self, code: int | None) -> None:
        """Classify by the exit code what the event stream left open, or never told at all."""
        facts = self.facts
        if facts.ended == "success" or (facts.failure and not self._unclassified):
            return
        words = facts.failure.message if facts.failure else self._last_words
        found = failures.by_exit(code, words)
        if found is not None:
            facts.failure = found

    def _init(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        model = as_string(event.get("model"))
        self.facts.session_id = safe_session_id(event.get("session_id"))
        self.facts.model = model or None
        return (Init(ts=ts, model=model, session_id=self.facts.session_id or ""),)

    def _whole(self, document: dict[str, Any], ts: str) -> Sequence[Entry]:
        self.facts.session_id = safe_session_id(document.get("session_id"))
        answer, error = as_string(document.get("response")), document.get("error")
        self._answer.append(answer)
        end = {
            "status": "error" if error else "success",
            "error": error,
            "stats": document_stats(parse_object(document.get("stats"))),
        }
        return (Assistant(ts=ts, text=answer), *self._result(end, ts))

    def _message(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        role, text = event.get("role"), event.get("content")
        if type(text) is not str:
            text = ""
        if role == "assistant":
            self._answer.append(text)
            return (Assistant(ts=ts, text=text, delta=event.get("delta") is True),)
        return (User(ts=ts, text=text),) if role == "user" else None

    def _tool_use(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        self._answer_before_tools = "".join(self._answer) or self._answer_before_tools
        self._answer.clear()
        name, id = as_string(event.get("tool_name")), as_string(event.get("tool_id"))
        kind, parameters = kind_of(name), parse_object(event.get("parameters"))
        self._calls[id] = (kind, parameters, as_string(event.get("timestamp")))
        return (
            ToolCall(
                ts=ts,
                name=name,
                input=with_todo_items(parameters, "description") if kind == "todo" else parameters,
                tool_use_id=id or None,
                tool_kind=kind,
                title=title_from(TITLES, kind, parameters),
            ),
        )

    def _tool_result(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        id = as_string(event.get("tool_id"))
        kind, parameters, began = self._calls.pop(id, ("other", {}, ""))
        failed = event.get("status") == "error"
        output = as_string(event.get("output"))
        if failed and not output:
            output = as_string(parse_object(event.get("error")).get("message"))
        result = ToolResult(
            ts=ts,
            tool_use_id=id,
            content=output,
            is_error=failed,
            exit_code=_exit_code(output) if kind == "shell" else None,
            duration_ms=_milliseconds(began, as_string(event.get("timestamp"))),
        )
        return (result,) if failed else (result, *diff_from(kind, parameters, id, ts))

    def _error(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        message = as_string(event.get("message"))
        if event.get("severity") == "error" or message.startswith(LOOP_WORDS):
            self._errors.append(message)
        return (System(ts=ts, text=message),)

    def _result(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        facts, stats = self.facts, parse_object(event.get("stats"))
        facts.usage = usage_of(stats, answered=bool(self._answer or self._answer_before_tools))
        facts.model = _model(stats, facts.model)
        facts.final_text = self._final_text()
        self._end(event)
        usage = facts.usage or Usage()
        return (
            Result(
                ts=ts,
                text=facts.final_text or "",
                input_tokens=usage.input_tokens or 0,
                output_tokens=usage.output_tokens or 0,
                cached_tokens=usage.cached_input_tokens or 0,
                cost_usd=None,
                subtype=as_string(event.get("status")),
                is_error=facts.ended == "failure",
                errors=(facts.failure.message,) if facts.failure else (),
            ),
        )

    def _end(self, event: dict[str, Any]) -> None:
        """A loop that the CLI broke off is no success, whatever its status says."""
        facts = self.facts
        looped = any(message.startswith(LOOP_WORDS) for message in self._errors)
        if event.get("status") == "success" and not looped:
            facts.ended = "success"
            return
        facts.ended = "failure"
        error = parse_object(event.get("error"))
        words = self._errors[-1] if self._errors else ""
        if facts.failure is not None:
            return
        facts.failure = failures.told(error, words, as_string(event.get("timestamp")))
        if facts.failure is None:
            self._unclassified = not looped
            message = as_string(error.get("message")) or words or "Gemini CLI reported an error."
            facts.failure = Failure("process_failed", message)

    def _missing_model(self) -> None:
        """Only stderr names the class of this error; it may come before or after the result."""
        told = self.facts.failure
        message = told.message if told else "Gemini CLI does not know the model it was given."
        self.facts.failure = Failure("bad_config", message)
        self._unclassified = False

    def _final_text(self) -> str | None:
        return "".join(self._answer) or self._answer_before_tools or None


def _retry_note(told: re.Match[str]) -> RetryNote:
    """Only the words tell of a request that is made again; the vendor's sentence is inside."""
    body = parse_json(told[3][told[3].find("{") :]) if "{" in told[3] else None
    sentence = as_string(parse_object(parse_object(body).get("error")).get("message"))
    return RetryNote(
        cause=sentence or told[3],
        attempt=int(told[1]),
        status_code=int(told[2]) if told[2] else None,
    )


def usage_of(stats: dict[str, Any], *, answered: bool) -> Usage | None:
    """Disjoint buckets; thinking is only in the total, and zeros after an answer are no counts."""
    everything, output = count(stats.get("input_tokens")), count(stats.get("output_tokens"))
    cached, total = count(stats.get("cached")), count(stats.get("total_tokens"))
    if everything is None or output is None or not stats.get("models"):
        return None
    if answered and not total:
        return None
    thinking = max(0, total - everything - output) if total is not None else None
    return Usage(
        input_tokens=max(0, everything - (cached or 0)),
        cached_input_tokens=cached,
        output_tokens=output + (thinking or 0),
        reasoning_tokens=thinking,
        source="derived" if thinking else "reported",
    )


def document_stats(stats: dict[str, Any]) -> dict[str, Any]:
    """The counts of a document, by model and by role, in the form that the events have."""
    models = parse_object(stats.get("models"))
    told = [parse_object(parse_object(model).get("tokens")) for model in models.values()]
    names = {"total": "total_tokens", "prompt": "input_tokens", "candidates": "output_tokens"}
    sums = {
        name: sum(count(tokens.get(key)) or 0 for tokens in told)
        for key, name in {**names, "cached": "cached"}.items()
    }
    by_model = {
        name: {"total_tokens": t.get("total")} for name, t in zip(models, told, strict=True)
    }
    return {**sums, "models": by_model}


def _model(stats: dict[str, Any], asked: str | None) -> str | None:
    """The model that did most of the work, where the CLI chose it by an alias."""
    if asked is not None and asked not in ALIASES:
        return asked
    used = {
        name: count(parse_object(counts).get("total_tokens")) or 0
        for name, counts in parse_object(stats.get("models")).items()
    }
    return max(used, key=lambda name: used[name]) if used else asked


def _exit_code(output: str) -> int | None:
    if not output.startswith(EXIT_WORDS):
        return None
    digits = output[len(EXIT_WORDS) :].strip()
    return int(digits) if digits.isdecimal() and len(digits) < 6 else None


def _milliseconds(begin: str, end: str) -> int | None:
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    except (ValueError, TypeError):
        return None
    return max(0, round(took.total_seconds() * 1000))
