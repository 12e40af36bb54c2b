"""D10: tokens in disjoint buckets, exact or unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.run import Usage
from binderclip.contract.wire import to_plain
from binderclip.sdk.usage import (
    BUCKETS,
    add,
    count,
    from_inclusive,
    subtract,
    total_tokens,
    usage_from_plain,
)

COUNTS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(Usage, **dict.fromkeys(BUCKETS, COUNTS))
KNOWN = st.builds(Usage, **dict.fromkeys(BUCKETS, st.integers(0, 10**9)))


def counts(usage: Usage) -> list[int | None]:
    return [getattr(usage, bucket) for bucket in BUCKETS]


@given(USAGES, USAGES)
def test_a_bucket_that_nobody_told_stays_unknown(one: Usage, other: Usage) -> None:
    """D10: unknown is not 0."""
    total = add(one, other)
    assert total is not None
    for left, right, both in zip(counts(one), counts(other), counts(total), strict=True):
        told = [value for value in (left, right) if value is not None]
        assert both == (sum(told) if told else None)


@given(KNOWN, KNOWN)
def test_what_was_added_can_be_taken_away(one: Usage, other: Usage) -> None:
    """D10: a run's share of a session's totals is exact, and marked as derived."""
    total = add(one, other)
    assert total is not None
    run = subtract(total, other)
    assert run is not None
    assert (counts(run), run.source) == (counts(one), "derived")


def test_nothing_is_added_to_nothing() -> None:
    usage = Usage(input_tokens=1)
    assert (add(None, None), add(usage, None), add(None, usage)) == (None, usage, usage)


def test_sums_of_different_sources_are_derived() -> None:
    assert add(Usage(source="reported"), Usage(source="unknown")) == Usage(source="derived")
    assert add(Usage(), Usage()) == Usage(source="reported")


def test_totals_that_shrink_are_no_usage() -> None:
    """D10: unknown rather than negative."""
    assert subtract(Usage(input_tokens=5), Usage(input_tokens=6)) is None
    assert subtract(Usage(), Usage(output_tokens=1)) is None


@pytest.mark.parametrize(
    ("told", "fresh"),
    [
        ({"input_tokens": 100, "cached": 60, "cache_write": 30}, 10),
        ({"input_tokens": 100}, 100),
        ({"input_tokens": 50, "cached": 60}, 0),
        ({"input_tokens": None, "cached": 60}, None),
    ],
)
def test_inclusive_counts_are_taken_apart(told: dict[str, Any], fresh: int | None) -> None:
    """D10: buckets are disjoint."""
    usage = from_inclusive(**told, output=7, reasoning=3)
    assert usage.input_tokens == fresh
    assert (usage.output_tokens, usage.reasoning_tokens) == (7, 3)


def test_reasoning_is_part_of_the_output() -> None:
    usage = Usage(input_tokens=1, cached_input_tokens=2, output_tokens=4, reasoning_tokens=3)
    assert total_tokens(usage) == 7
    assert total_tokens(None) == 0


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, 0), (7, 7), (7.0, 7), (2**53 - 1, 2**53 - 1)]
    + [(bad, None) for bad in (-1, 2**53, 1.5, True, "7", None, [], float("nan"), float("inf"))],
)
def test_a_count_is_whole_and_not_negative(value: object, told: int | None) -> None:
    """A8: counts come from untrusted output."""
    assert count(value) == told


@given(USAGES)
def test_usage_survives_being_stored(usage: Usage) -> None:
    """S2: totals travel among the session's parameters."""
    assert usage_from_plain(to_plain(usage)) == usage


@pytest.mark.parametrize("data", [None, 5, "x", [], {"inputTokens": "many"}, {"source": "god"}])
def test_stored_garbage_is_no_usage(data: object) -> None:
    assert usage_from_plain(data) is None
