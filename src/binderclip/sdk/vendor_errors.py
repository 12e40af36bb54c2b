"""Error classes from what model vendors answer: an HTTP status and a message (A9).

The status decides where there is one; words decide only what a status leaves open.
"""

from __future__ import annotations

from binderclip.contract.run import ErrorCode, ErrorFamily
from binderclip.sdk.parser import Failure

_FAMILIES: dict[ErrorCode, ErrorFamily] = {
    "auth": "auth",
    "quota": "provider_quota",
    "rate_limit": "transient_upstream",
    "upstream": "transient_upstream",
    "refusal": "model_refusal",
}
_OVERFLOW_WORDS = (
    "prompt is too long",
    "context length",
    "context window",
    "context_length_exceeded",
    "maximum number of tokens",
    "range of input length",
)
_KEY_WORDS = ("api key not valid", "api_key_invalid", "invalid api key", "incorrect api key")
_QUOTA_WORDS = (
    "exceeded your current quota",
    "insufficient_quota",
    "insufficient balance",
    "exhausted your",
    "quota exceeded",
    "out of credits",
)
_NETWORK_WORDS = (
    "fetch failed",
    "terminated",
    "connection error",
    "econnrefused",
    "econnreset",
    "enotfound",
    "etimedout",
    "socket hang up",
    "other side closed",
    "overloaded",
)


def failure_by_status(
    status: int | None, message: str, retry_not_before: str | None = None
) -> Failure | None:
    """What a vendor's answer means; None if neither status nor words tell."""
    words = message.lower()
    code = _by_status(status, words) if status else _by_words(words)
    if code is None:
        return None
    return Failure(code, message, _FAMILIES.get(code), retry_not_before)


def family_of(code: ErrorCode) -> ErrorFamily | None:
    """The family that an error code belongs to, if any."""
    return _FAMILIES.get(code)


def _by_status(status: int, words: str) -> ErrorCode | None:
    if status in (401, 403):
        return "auth"
    if status in (400, 413, 422):
        return _by_request_words(words)
    if status == 402:
        return "quota"
    if status == 404:
        return "bad_config"
    if status == 429:
        return "quota" if _has(words, _QUOTA_WORDS) else "rate_limit"
    return "upstream" if status >= 500 or status == 408 else None


def _by_request_words(words: str) -> ErrorCode | None:
    if _has(words, _OVERFLOW_WORDS):
        return "context_overflow"
    return "auth" if _has(words, _KEY_WORDS) else None


def _by_words(words: str) -> ErrorCode | None:
    found = _by_request_words(words)
    if found is not None:
        return found
    if _has(words, _QUOTA_WORDS):
        return "quota"
    if "rate limit" in words:
        return "rate_limit"
    return "upstream" if _has(words, _NETWORK_WORDS) else None


def _has(words: str, some: tuple[str, ...]) -> bool:
    return any(word in words for word in some)
