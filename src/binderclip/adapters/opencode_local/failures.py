"""What OpenCode's error events and the ends of its steps mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from binderclip.sdk import (
    ErrorCode,
    Failure,
    as_number,
    as_string,
    parse_json,
    parse_object,
)
from binderclip.sdk.usage import count
from binderclip.sdk.vendor_errors import failure_by_status, family_of

SERVER_ERROR = "Unexpected server error"
_BY_NAME: dict[str, ErrorCode] = {
    "ContextOverflowError": "context_overflow",
    "ProviderAuthError": "auth",
    "ContentFilterError": "refusal",
    "MessageOutputLengthError": "cut_output",
}
_BY_FINISH: dict[str, tuple[ErrorCode, str]] = {
    "length": ("cut_output", "The model's answer was cut at its output limit."),
    "content-filter": ("refusal", "The provider's content filter blocked the answer."),
    "error": ("upstream", "The model's answer ended in an error."),
}


def failure_of_error(event: dict[str, Any], begun: bool) -> Failure:
    """The class of an `error` event; `begun` says whether the model had answered before."""
    error = parse_object(event.get("error"))
    name, data = as_string(error.get("name")), parse_object(error.get("data"))
    words = _words(data) or name or "OpenCode reported an error without words."
    if name in _BY_NAME:
        return _failure(_BY_NAME[name], words)
    found = failure_by_status(count(data.get("statusCode")), words, _not_before(event, data))
    if found is not None:
        return found
    if data.get("isRetryable") is True:
        return _failure("upstream", words)
    if not begun and words.startswith(SERVER_ERROR):
        hint = "It says so of a model it does not know; `opencode models` lists the others."
        return _failure("bad_config", f"{words} {hint}")
    return _failure("process_failed", words)


def failure_of_finish(reason: str) -> Failure | None:
    """Why a last step with this reason is no success, or None if it is one."""
    found = _BY_FINISH.get(reason)
    return _failure(*found) if found else None


def failure_of_stderr(words: str) -> Failure:
    """What the CLI itself said before or instead of its events."""
    bad = words.startswith(("Configuration is invalid", "Config file at", "You must provide"))
    return _failure("bad_config" if bad else "process_failed", words)


def _failure(code: ErrorCode, message: str) -> Failure:
    return Failure(code, message, family_of(code))


def _words(data: dict[str, Any]) -> str:
    """The message; some vendors' errors arrive as JSON inside of it."""
    message = as_string(data.get("message"))
    inner = parse_json(message) if message.startswith("{") else None
    if inner is None:
        return message
    told = as_string(inner.get("message")) or as_string(
        parse_object(inner.get("error")).get("message")
    )
    kind = as_string(inner.get("type"))
    return f"{told} ({kind})" if told and kind else told or message


def _not_before(event: dict[str, Any], data: dict[str, Any]) -> str | None:
    """When a retry makes sense, by the vendor's `retry-after` and the time of the event."""
    headers = parse_object(data.get("responseHeaders"))
    wait = as_string(headers.get("retry-after"))
    told_at = as_number(event.get("timestamp"))
    if not wait.isdigit() or len(wait) > 7 or not 0 < told_at < 4e12:
        return None
    moment = datetime.fromtimestamp(told_at / 1000, UTC) + timedelta(seconds=int(wait))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
