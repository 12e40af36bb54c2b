"""Why a run of Codex failed: it tells no status and no class, only a message (A9)."""

from __future__ import annotations

import re

from binderclip.sdk import ErrorCode, Failure, RetryNote, as_string, parse_json, parse_object
from binderclip.sdk.vendor_errors import failure_by_status, family_of

RETRY = "Reconnecting..."
_STATUS = re.compile(r"(?:unexpected status|last status:) (\d{3})\b")
_RETRIED = re.compile(r"Reconnecting\.\.\. (?:(\d{1,9})/(\d{1,9}) ?|[^(]*)(?:\((.*)\))?", re.DOTALL)
_WORDS: tuple[tuple[str, ErrorCode], ...] = (
    ("hit your usage limit", "quota"),
    ("usage limit reached", "quota"),
    ("quota exceeded", "quota"),
    ("out of credits", "quota"),
    ("upgrade to plus", "quota"),
    ("ran out of room", "context_overflow"),
    ("missing environment variable", "auth"),
    ("sign in again", "auth"),
    ("log in again", "auth"),
    ("not logged in", "auth"),
    ("was flagged", "refusal"),
    ("been flagged", "refusal"),
    ("usage policy", "refusal"),
    ("at capacity", "upstream"),
    ("high demand", "upstream"),
    ("stream disconnected", "upstream"),
    ("connection failed", "upstream"),
    ("timed out", "upstream"),
)
_NO_MODEL = ("model: ", "the model ", "model not found", "unknown model")
_REFUSALS = ("error: ", "Error: ", "Error loading config", "Not inside a trusted directory")


def is_retry(message: str) -> bool:
    """Whether an error line only says that Codex tries again."""
    return message.startswith(RETRY)


def retry_note(message: str) -> RetryNote | None:
    """What a line says of a request that is made again; None if it says no such thing."""
    told = _RETRIED.fullmatch(message) if is_retry(message) else None
    if told is None:
        return None
    status = _STATUS.search(message)
    return RetryNote(
        cause=told[3] or message,
        attempt=int(told[1]) if told[1] else None,
        max_attempts=int(told[2]) if told[2] else None,
        status_code=int(status[1]) if status else None,
    )


def failure_of(message: str) -> Failure:
    """The class of a final message; vendors' own JSON inside it is opened."""
    told = _opened(message)
    found = _STATUS.search(message)
    # Curly apostrophes come and go between versions.
    words = told.replace("\u2019", "'").lower()
    if found is None:
        code = next((code for part, code in _WORDS if part in words), None)
        if code is not None:
            return Failure(code, told, family_of(code))
        if words.startswith(_NO_MODEL):
            return Failure("bad_config", told)
    status = int(found[1]) if found else None
    return failure_by_status(status, told) or Failure("process_failed", told)


def refusal_to_start(line: str) -> Failure | None:
    """What stderr says when no thread even began: bad flags, bad config, no trust."""
    return Failure("bad_config", line) if line.startswith(_REFUSALS) else None


def _opened(message: str) -> str:
    if not message.startswith("{"):
        return message
    inner = parse_object(parse_json(message))
    error = inner.get("error")
    told = as_string(parse_object(error).get("message")) or as_string(inner.get("message"))
    return told or message
