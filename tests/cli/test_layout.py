"""Columns and wrapping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.cli.layout import Flow, Look, cells, clipped, fitting, padded, table, wrapped

WORDS = st.text(alphabet="ab 日é\n\t-", max_size=200)


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert (cells("abc"), cells("日本"), cells("e\u0301")) == (3, 4, 1)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("short", 10, "short"), ("a long text", 7, "a long…"), ("日本語", 4, "日…"), ("x", 0, "")],
)
def test_clipped_text_fits_its_width(text: str, width: int, shown: str) -> None:
    assert clipped(text, width) == shown
    assert cells(clipped(text, width)) <= width or width == 0


def test_padding_counts_columns_not_characters() -> None:
    assert padded("日", 4) == "日  "


def test_text_wraps_at_words_and_keeps_its_indent() -> None:
    text = "the quick brown fox jumps over the dog"
    assert wrapped(text, 22, "  ") == "the quick brown fox\n  jumps over the dog"


def test_a_word_longer_than_the_line_is_broken() -> None:
    lines = wrapped("x" * 50, 20, "  ").split("\n")
    assert [line.strip() for line in lines] == ["x" * 18, "x" * 18, "x" * 14]


def test_nothing_is_wrapped_in_a_pipe() -> None:
    assert wrapped("word " * 100 + "\nnext", None, "  ") == "word " * 100 + "\n  next"


def test_indentation_inside_a_line_survives() -> None:
    assert wrapped("if x:\n    return", 40, "  ") == "if x:\n      return"


@given(WORDS, st.lists(st.integers(1, 9), min_size=1))
def test_pieces_are_laid_out_like_the_whole(text: str, sizes: list[int]) -> None:
    """Streaming: where the deltas are cut changes nothing once the last one has come."""
    whole, pieces = Flow(30, "  "), Flow(30, "  ")
    out, at, turn = "", 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        out += pieces.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    assert out + pieces.flush() == whole.feed(text) + whole.flush()


@given(WORDS, st.integers(20, 60))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    lines = ("  " + wrapped(text, width, "  ")).split("\n")
    assert all(cells(line) <= width for line in lines)


def test_a_flow_knows_its_column() -> None:
    flow = Flow(40, "  ")
    flow.feed("hello wor")
    flow.flush()
    assert flow.column == len("  hello wor")


def test_a_table_cuts_only_its_last_column() -> None:
    rows = table([("ID", "TEXT"), ("1234", "a very long text that does not fit")], 30)
    assert rows == [["ID  ", "TEXT"], ["1234", "a very long text that d…"]]


@pytest.mark.parametrize(
    ("width", "kept"), [(None, [0, 1, 2, 3, 4]), (60, [0, 1, 2, 3, 4]), (50, [0, 1, 2, 4])]
)
def test_columns_give_way_on_a_narrow_terminal(width: int | None, kept: list[int]) -> None:
    """T6: narrow terminals behave as people expect."""
    row = ("12345678", "succeeded", "process", "just now", "a long text of some words")
    assert fitting([row], width) == kept


def test_the_first_two_columns_and_the_last_never_give_way() -> None:
    row = ("12345678", "succeeded", "process", "just now", "a long text of some words")
    shown = tuple(row[at] for at in fitting([row], 40))
    assert shown == (row[0], row[1], row[4])
    (cells_of_row,) = table([shown], 40)
    assert cells("  ".join(cells_of_row)) == 40


def test_paint_without_colour_changes_nothing() -> None:
    assert Look(colour=False).paint("x", "red") == "x"
    assert Look(colour=True).paint("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
