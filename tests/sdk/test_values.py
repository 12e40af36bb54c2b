"""H1: reading untrusted values never raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.sdk import (
    as_boolean,
    as_number,
    as_string,
    as_string_array,
    parse_json,
    parse_object,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("read", "value", "fallback"),
    [
        (as_string, "x", ""),
        (as_number, 1.5, 0),
        (as_number, -3, 0),
        (as_boolean, True, False),
        (as_string_array, ["a", "b"], []),
        (parse_object, {"a": 1}, {}),
    ],
)
def test_the_right_type_passes_and_anything_else_is_the_default(
    read: Callable[[object], Any], value: object, fallback: object
) -> None:
    """H1: defaults are '', 0, False, [], {}."""
    assert read(value) == value
    assert read(object()) == fallback == read(None)


@given(ANYTHING)
def test_whatever_comes_in_the_right_type_comes_out(value: object) -> None:
    """H1: never raise."""
    assert isinstance(as_string(value), str)
    assert isinstance(as_number(value), int | float)
    assert isinstance(as_boolean(value), bool)
    assert all(isinstance(item, str) for item in as_string_array(value))
    assert isinstance(parse_object(value), dict)
    assert parse_json(value) is None or isinstance(value, str | bytes)


@pytest.mark.parametrize("value", [True, False, float("nan"), float("inf"), -float("inf"), "5"])
def test_what_only_looks_like_a_number_is_none(value: object) -> None:
    assert as_number(value, 7) == 7


def test_fallbacks_are_the_callers() -> None:
    assert (as_string(5, "f"), as_number("x", 2.5), as_boolean("true", True)) == ("f", 2.5, True)


def test_a_mixed_list_keeps_its_strings() -> None:
    assert as_string_array(["a", 1, None, "b", ["c"]]) == ["a", "b"]
    assert as_string_array("ab") == as_string_array(("a", "b")) == []


@pytest.mark.parametrize(
    "text", ["", "[1]", '"x"', "5", "null", "{", "{'a': 1}", "[" * 100_000, b"\xff", "\ud800"]
)
def test_only_an_object_comes_out_of_json(text: str | bytes) -> None:
    """H1: parse_json gives a dict or None."""
    assert parse_json(text) is None


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(-(2**53), 2**53)))
def test_objects_come_out_of_json_whole(value: dict[str, object]) -> None:
    assert parse_json(json.dumps(value)) == value == parse_json(json.dumps(value).encode())
