"""Ids are UUIDv7: they sort by time and tell their month."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.ids import FULL_ID, month_of, new_id, short, time_of


@given(st.integers(0, 2**43))
def test_an_id_tells_the_time_it_was_made_at(milliseconds: int) -> None:
    made = new_id(milliseconds / 1000)
    assert FULL_ID.fullmatch(made)
    assert (UUID(made).version, UUID(made).variant) == (7, "specified in RFC 4122")
    assert abs(round(time_of(made) * 1000) - milliseconds) <= 1


def test_ids_sort_by_time_and_do_not_repeat() -> None:
    made = [new_id(1_000_000 + at) for at in range(1000)]
    assert made == sorted(set(made))


@pytest.mark.parametrize(
    ("seconds", "month"), [(0, "1970-01"), (1767225599.9, "2025-12"), (1767225600, "2026-01")]
)
def test_the_month_is_that_of_utc(seconds: float, month: str) -> None:
    assert month_of(new_id(seconds)) == month


def test_people_see_the_last_eight_characters() -> None:
    assert short("0190c0de-0000-7000-8000-0000deadbeef") == "deadbeef"
