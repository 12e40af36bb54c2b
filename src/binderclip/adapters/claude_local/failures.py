"""Why a run of Claude Code failed, told from its result line or its refusal to start (A9).

API errors have `subtype: success` and an interrupt exits 0: `is_error` decides, not these.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from binderclip.sdk import ErrorCode, ErrorFamily, Failure, as_string, as_string_array

_Class = tuple[ErrorCode, ErrorFamily | None]

_BY_SUBTYPE: dict[str, _Class] = {
    "error_max_turns": ("turn_limit", None),
    "error_max_budget_usd": ("budget", None),
}
_BY_ERROR: dict[str, _Class] = {
    "authentication_failed": ("auth", "auth"),
    "oauth_org_not_allowed": ("auth", "auth"),
    "billing_error": ("quota", "provider_quota"),
    "usage_limit_reached": ("quota", "provider_quota"),
    "rate_limit": ("rate_limit", "transient_upstream"),
    "model_not_found": ("bad_config", None),
    "server_error": ("upstream", "transient_upstream"),
    "overloaded": ("upstream", "transient_upstream"),
    "connection_failed": ("upstream", "transient_upstream"),
    "prompt_too_long": ("context_overflow", None),
    "refusal": ("refusal", "model_refusal"),
    "max_output_tokens": ("upstream", None),
}
_BY_STATUS: dict[int, _Class] = {
    401: ("auth", "auth"),
    402: ("quota", "provider_quota"),
    403: ("auth", "auth"),
    404: ("bad_config", None),
    413: ("context_overflow", None),
    429: ("rate_limit", "transient_upstream"),
}
_REFUSALS: tuple[tuple[str, ErrorCode], ...] = (
    ("--dangerously-skip-permissions cannot be used with root", "permission"),
    ("error: ", "bad_config"),
    ("Error: ", "bad_config"),
)


def failure_of_result(event: dict[str, Any], api_error: str, resets_at: float) -> Failure | None:
    """The failure that a result line tells, or None for success."""
    refused = event.get("stop_reason") == "refusal" or api_error == "refusal"
    if event.get("is_error") is not True and not refused:
        return None
    code, family = ("refusal", "model_refusal") if refused else _class_of(event, api_error)
    message = _message(event)
    until = None
    if resets_at and code in ("quota", "rate_limit"):
        code, family = "quota", "provider_quota"
        until = _iso(resets_at)
    return Failure(code, message, family, until)


def refusal_to_start(line: str) -> Failure | None:
    """What stderr says when the CLI does not even begin: bad flags, root with bypass."""
    for words, code in _REFUSALS:
        if line.startswith(words):
            return Failure(code, line)
    return None


def _class_of(event: dict[str, Any], api_error: str) -> _Class:
    by_subtype = _BY_SUBTYPE.get(as_string(event.get("subtype")))
    if by_subtype:
        return by_subtype
    reason = as_string(event.get("terminal_reason"))
    if reason == "prompt_too_long":
        return "context_overflow", None
    if reason.startswith("aborted"):
        return "killed", None
    own = as_string(event.get("api_error"))
    found = _BY_ERROR.get(own) or _BY_ERROR.get(api_error)
    return found or _by_status(event)


def _by_status(event: dict[str, Any]) -> _Class:
    status = event.get("api_error_status")
    if not isinstance(status, int):
        return "process_failed", None
    if status >= 500:
        return "upstream", "transient_upstream"
    return _BY_STATUS.get(status, ("upstream", None))


def _message(event: dict[str, Any]) -> str:
    if as_string(event.get("terminal_reason")).startswith("aborted"):
        return "The agent was interrupted by a signal."
    words = as_string_array(event.get("errors"))
    text = as_string(event.get("result")) or (words[0] if words else "")
    return text.strip() or "Claude Code reported a failure without words."


def _iso(seconds: float) -> str | None:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
