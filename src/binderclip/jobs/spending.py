"""What the steps of an attempt used, and what its total says beyond them: shown, never spread."""

from __future__ import annotations

import msgspec

from binderclip.contract.usage import Usage
from binderclip.sdk.usage import BUCKETS


def filled(told: Usage | None, whole: Usage | None) -> Usage | None:
    """The usage of an only step: what no call told of it stands in the attempt's total."""
    if told is None or whole is None:
        return told or whole
    missing = {name: getattr(whole, name) for name in BUCKETS if getattr(told, name) is None}
    return msgspec.structs.replace(told, **missing)


def beyond(whole: Usage | None, steps: Usage | None) -> Usage | None:
    """What the total has and the steps have not, by bucket; None where they add up.

    Requests beside the steps make it positive, requests that were given up may make it negative.
    """
    if whole is None:
        return None
    counts = {name: _rest(getattr(whole, name), getattr(steps, name, None)) for name in BUCKETS}
    return Usage(**counts, source="derived") if any(counts.values()) else None


def _rest(total: int | None, told: int | None) -> int | None:
    return None if total is None else total - (told or 0)
