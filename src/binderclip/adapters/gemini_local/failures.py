"""Why a Gemini CLI run failed: its error object, its exit code, its last words (A9)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from binderclip.sdk import ErrorCode, Failure, as_number, as_string, parse_json, parse_object
from binderclip.sdk.vendor_errors import failure_by_status, family_of

_BY_TYPE: dict[str, ErrorCode] = {
    "FatalAuthenticationError": "auth",
    "FatalTurnLimitedError": "turn_limit",
    "FatalInputError": "bad_config",
    "FatalConfigError": "bad_config",
    "FatalSandboxError": "bad_config",
    "FatalUntrustedWorkspaceError": "permission",
    "FatalCancellationError": "cancelled",
    "no_space_left": "disk_full",
}
_BY_EXIT: dict[int, ErrorCode] = {
    41: "auth",
    42: "bad_config",
    44: "bad_config",
    52: "bad_config",
    53: "turn_limit",
    55: "permission",
    130: "cancelled",
}
# API errors leave with their HTTP status modulo 256.
_STATUS_BY_EXIT = {
    status % 256: status for status in (400, 401, 403, 404, 408, 429, 500, 502, 503, 504)
}
_BLOCKED = "The model response was blocked due to"
_BROKEN_OFF = ("Model stream ended", "The model returned an empty response")
_API_ERROR = "[API Error: "


def told(error: dict[str, Any], last_words: str, at: str) -> Failure | None:
    """What the final event says; None where only the exit code can tell more."""
    message = as_string(error.get("message")) or last_words
    code = _BY_TYPE.get(as_string(error.get("type")))
    if code is not None:
        return Failure(code, message, family_of(code))
    if message.startswith(_BLOCKED):
        return Failure("refusal", message, "model_refusal")
    if message.startswith(_BROKEN_OFF):
        return Failure("upstream", message, "transient_upstream")
    return _api_failure(message, at)


def by_exit(code: int | None, message: str) -> Failure | None:
    """What the exit code says about a run that ended with these words."""
    if not code:
        return None
    if code in _BY_EXIT:
        found = _BY_EXIT[code]
        return Failure(found, message or f"Gemini CLI exited with code {code}.", family_of(found))
    if message.startswith("Unknown argument"):
        return Failure("bad_config", message)
    status = _STATUS_BY_EXIT.get(code)
    return failure_by_status(status, message or f"The API answered {status}.") if status else None


def _api_failure(message: str, at: str) -> Failure | None:
    """An API error holds the vendor's own answer as JSON, or only its words."""
    if not message.startswith(_API_ERROR):
        return failure_by_status(None, message)
    inside = message[len(_API_ERROR) : message.rfind("]")]
    answer = parse_object((parse_json(inside) or {}).get("error"))
    if not answer:
        return failure_by_status(None, message)
    status = int(as_number(answer.get("code")))
    words = as_string(answer.get("message")) or message
    return failure_by_status(status or None, words, _retry_at(answer.get("details"), at))


def _retry_at(details: object, at: str) -> str | None:
    """When to try again, from Google's RetryInfo (`retryDelay` such as "34s")."""
    for detail in details if isinstance(details, list) else []:
        delay = as_string(parse_object(detail).get("retryDelay")).removesuffix("s")
        try:
            moment = datetime.fromisoformat(at) + timedelta(seconds=float(delay))
        except (ValueError, OverflowError):
            continue
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return None
