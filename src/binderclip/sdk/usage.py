"""Token counts in disjoint buckets, and what they cost (D10): exact or unknown, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from binderclip.contract.run import Usage

BUCKETS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
)


def add(left: Usage | None, right: Usage | None) -> Usage | None:
    """The sum by bucket; a bucket that neither side told stays unknown."""
    if left is None or right is None:
        return left or right
    return Usage(
        input_tokens=_plus(left.input_tokens, right.input_tokens),
        cached_input_tokens=_plus(left.cached_input_tokens, right.cached_input_tokens),
        cache_write_tokens=_plus(left.cache_write_tokens, right.cache_write_tokens),
        output_tokens=_plus(left.output_tokens, right.output_tokens),
        reasoning_tokens=_plus(left.reasoning_tokens, right.reasoning_tokens),
        source=left.source if left.source == right.source else "derived",
    )


def subtract(total: Usage, earlier: Usage) -> Usage | None:
    """What this run used, from a session's totals now and before; None if they contradict."""
    run = _without(total, earlier)
    counts = [getattr(run, bucket) for bucket in BUCKETS]
    return None if any(count is not None and count < 0 for count in counts) else run


def from_inclusive(
    *,
    input_tokens: int | None,
    cached: int | None = None,
    cache_write: int | None = None,
    output: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Buckets from a runtime whose input count includes the cached tokens."""
    fresh = input_tokens
    if fresh is not None:
        fresh = max(0, fresh - (cached or 0) - (cache_write or 0))
    return Usage(
        input_tokens=fresh,
        cached_input_tokens=cached,
        cache_write_tokens=cache_write,
        output_tokens=output,
        reasoning_tokens=reasoning,
    )


def total_tokens(usage: Usage | None) -> int:
    """All tokens that are known; reasoning is part of the output."""
    if usage is None:
        return 0
    counts = (getattr(usage, bucket) for bucket in BUCKETS if bucket != "reasoning_tokens")
    return sum(count or 0 for count in counts)


def count(value: object) -> int | None:
    """A token count from untrusted output: a whole number that is not negative, or None."""
    if type(value) is int:
        return value if 0 <= value < 2**53 else None
    if not isinstance(value, float):
        return None
    return int(value) if 0 <= value < 2**53 and value == int(value) else None


def usage_from_plain(data: object) -> Usage | None:
    """Usage that was stored among session parameters."""
    if not isinstance(data, Mapping):
        return None
    try:
        return msgspec.convert(dict(data), Usage)
    except msgspec.ValidationError:
        return None


def _plus(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _without(total: Usage, earlier: Usage) -> Usage:
    counts: dict[str, Any] = {}
    for bucket in BUCKETS:
        one, other = getattr(total, bucket), getattr(earlier, bucket)
        known = one is not None or other is not None
        counts[bucket] = (one or 0) - (other or 0) if known else None
    return Usage(**counts, source="derived")
