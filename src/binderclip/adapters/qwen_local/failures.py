"""Why a Qwen Code run failed: its result's message, its exit code, its last words (A9)."""

from __future__ import annotations

from binderclip.sdk import ErrorCode, Failure
from binderclip.sdk.vendor_errors import failure_by_status, family_of

API_ERROR = "[API Error: "
_SIGN_IN_WORDS = ("Missing API key", "No auth type is selected", "Missing credentials")
_BY_EXIT: dict[int, ErrorCode] = {
    42: "bad_config",
    44: "bad_config",
    52: "bad_config",
    53: "turn_limit",
    55: "budget",
    130: "cancelled",
}


def told(message: str) -> Failure | None:
    """What a result's error message says; None where only the exit code can tell more."""
    if message.startswith(_SIGN_IN_WORDS):
        return Failure("auth", message, "auth")
    words = message.removeprefix(API_ERROR)
    if words == message:
        return failure_by_status(None, message)
    status = words[:3]
    known = status.isdecimal() and words[3:4] in (" ", "]")
    return failure_by_status(int(status) if known else None, message)


def by_exit(code: int | None, message: str) -> Failure | None:
    """What the exit code says about a run that ended with these words."""
    if code in _BY_EXIT:
        found = _BY_EXIT[code]
        return Failure(found, message or f"Qwen Code exited with code {code}.", family_of(found))
    if code and message.startswith(("Unknown argument", "Invalid values")):
        return Failure("bad_config", message)
    return told(message) if code and message else None
