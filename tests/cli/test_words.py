"""Times, counts and money as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.cli import words
from binderclip.contract.run import Usage


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.04, "0.0 s"),
        (1.26, "1.3 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (125, "2 min 05 s"),
        (4020, "1 h 07 min"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1, "just now"), (30, "30 s ago"), (150, "2 min ago"), (7200, "2 h ago"), (2e8, "6 y ago")],
)
def test_ages(seconds: float, said: str) -> None:
    assert words.age(seconds) == said


def test_unknown_cost_is_not_zero() -> None:
    """D10: money is exact or unknown."""
    assert words.money(None) == "cost unknown"
    assert words.money(0) == "$0.00"
    assert words.money(0.0123) == "$0.0123"
    assert words.money(1234.5) == "$1,234.50"


def test_only_told_buckets_are_said() -> None:
    """D10: a bucket that the runtime did not tell is left out."""
    usage = Usage(input_tokens=1234, cached_input_tokens=10_000, output_tokens=567)
    assert words.tokens(usage) == "in 1,234 (cached 10,000) out 567"
    assert words.tokens(Usage(output_tokens=5)) == "out 5"
    assert words.tokens(None) == ""


def test_reasoning_is_part_of_the_output() -> None:
    assert words.all_tokens(Usage(input_tokens=1, output_tokens=5, reasoning_tokens=3)) == 6
    assert words.all_tokens(Usage()) is None


def test_counts_for_columns() -> None:
    assert [words.brief_count(n) for n in (None, 940, 12_340, 4_100_000)] == [
        "",
        "940",
        "12.3k",
        "4.1M",
    ]


@pytest.mark.parametrize(
    ("count", "told"),
    [(1, "1 byte"), (940, "940 bytes"), (999_960, "1.0 MB"), (2e8, "200.0 MB"), (4e9, "4.0 GB")],
)
def test_sizes_are_told_in_powers_of_ten(count: float, told: str) -> None:
    assert words.size(int(count)) == told


def test_a_damaged_time_is_no_time() -> None:
    assert words.between("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:02.500Z") == 2.5
    assert words.between("yesterday", "2026-01-01T00:00:02.500Z") is None


def test_the_home_directory_is_a_tilde() -> None:
    assert words.homely(str(Path.home() / "x")) == "~/x"
    assert words.homely("/elsewhere") == "/elsewhere"
