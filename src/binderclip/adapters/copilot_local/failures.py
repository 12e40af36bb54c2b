"""Why a Copilot run failed: its error events, the vendor's answer before, its last words (A9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from binderclip.sdk import ErrorCode, Failure, RetryNote, as_string, parse_json, parse_object
from binderclip.sdk.usage import count
from binderclip.sdk.vendor_errors import failure_by_status, family_of

_BY_TYPE: dict[str, ErrorCode] = {
    "authentication": "auth",
    "authorization": "auth",
    "policy": "permission",
    "quota": "quota",
    "rate_limit": "rate_limit",
    "context_limit": "context_overflow",
}
_SIGN_IN = "No authentication information found"
_BAD_CONFIG = ("error: ", "BYOK providers require", "No prompt provided", "Invalid ")


def vendor_words(failed: dict[str, Any]) -> str:
    """What the vendor answered to one call, without its JSON envelope."""
    words = as_string(failed.get("errorMessage"))
    inner = parse_json(words) or {}
    return as_string(inner.get("message")) or words


def retry_note(failed: dict[str, Any], notice: str) -> RetryNote:
    """What is known of a call that Copilot makes again; its own count begins with 0."""
    before = count(failed.get("retryAttempt"))
    return RetryNote(
        cause=vendor_words(failed)[:500] or notice,
        attempt=None if before is None else before + 1,
        status_code=count(failed.get("statusCode")),
    )


def failure_of_error(error: dict[str, Any], failed: dict[str, Any]) -> Failure:
    """The class of a `session.error`, with the last failed call where the error says little."""
    message = as_string(error.get("message")) or "Copilot reported an error without words."
    code = _BY_TYPE.get(as_string(error.get("errorType")))
    if code is None:
        told = failure_by_status(count(error.get("statusCode")), message)
        told = told or failure_by_status(count(failed.get("statusCode")), vendor_words(failed))
        code = told.code if told else "process_failed"
    until = _quota_reset(failed) if code == "quota" else None
    return Failure(code, message, family_of(code), until)


def failure_of_stderr(line: str) -> Failure | None:
    """What the CLI says instead of events."""
    words = line.removeprefix("Error: ")
    if words.startswith(_SIGN_IN):
        return Failure("auth", words, "auth")
    if line.startswith(_BAD_CONFIG):
        return Failure("bad_config", line.removeprefix("error: "))
    return Failure("process_failed", words) if words != line else None


def _quota_reset(failed: dict[str, Any]) -> str | None:
    """When the first used-up quota is filled again, if the vendor told."""
    quotas = [parse_object(quota) for quota in parse_object(failed.get("quotaSnapshots")).values()]
    dates = [quota.get("resetDate") for quota in quotas if quota.get("hasQuota") is False]
    found = sorted(date for date in map(_instant, dates) if date is not None)
    return f"{found[0]:%Y-%m-%dT%H:%M:%S}.000Z" if found else None


def _instant(value: object) -> datetime | None:
    try:
        date = datetime.fromisoformat(as_string(value))
    except ValueError:
        return None
    return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)
