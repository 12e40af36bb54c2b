"""What Pi's error messages and stop reasons mean."""

from __future__ import annotations

from typing import Any

from binderclip.sdk import ErrorCode, Failure, as_string, parse_json, parse_object
from binderclip.sdk.vendor_errors import failure_by_status, family_of

_BAD_CONFIG = ("Error: Unknown option", "Error: Model ", "Error: --", "No model selected")
_NO_CREDENTIAL = ("No API key found", "No models available")


def failure_of_message(message: dict[str, Any]) -> Failure | None:
    """Why an assistant's message is no good end, or None."""
    reason = message.get("stopReason")
    words = as_string(message.get("errorMessage"))
    if reason == "length":
        return _failure("cut_output", "The model's answer was cut at its output limit.")
    if reason == "aborted":
        return _failure("process_failed", words or "The model's answer was aborted.")
    if reason != "error":
        return None
    if message.get("rawStopReason") == "refusal":
        return _failure("refusal", words or "The model refused to answer.")
    return failure_of_words(words)


def failure_of_words(words: str) -> Failure:
    """The class of an error message: a vendor's status and body, or a network's words."""
    status = status_of(words)
    told = _told(words.partition(" ")[2] if status else words)
    message = f"{status} {told}" if status else told
    found = failure_by_status(status, message)
    if found is not None:
        return found
    return _failure("process_failed", message or "Pi reported an error without words.")


def status_of(words: str) -> int | None:
    """The vendor's HTTP status, with which an error message begins where there was one."""
    head = words.partition(" ")[0]
    return int(head) if len(head) == 3 and head.isascii() and head.isdigit() else None


def failure_of_stderr(line: str) -> Failure | None:
    """What the CLI itself says before or instead of its events."""
    if line.startswith(_NO_CREDENTIAL):
        return _failure("auth", line)
    if line.startswith(_BAD_CONFIG):
        return _failure("bad_config", line.removeprefix("Error: "))
    if line.startswith("Error: "):
        return _failure("process_failed", line.removeprefix("Error: "))
    return None


def _failure(code: ErrorCode, message: str) -> Failure:
    return Failure(code, message, family_of(code))


def _told(body: str) -> str:
    """The vendor's sentence inside its JSON envelope."""
    inner = parse_json(body)
    if inner is None:
        return body
    error = parse_object(inner.get("error")) or inner
    message, kind = as_string(error.get("message")), as_string(error.get("type"))
    return f"{message} ({kind})" if message and kind else message or body
