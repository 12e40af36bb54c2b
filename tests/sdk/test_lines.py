"""T4: lines end at LF and nowhere else, whatever the chunks, in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.entry import SHOWN_TEXT_BYTES
from binderclip.sdk.lines import HEAD_BYTES, MAX_LINE_BYTES, TAIL_BYTES, Line, LineSplitter

TRICKY = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text(max_size=8).map(str.encode),
        st.sampled_from(
            [b"\n", b"\r", b"\r\n", b"\0", b"\xff", "\u2028\u0085".encode(), "🦆".encode(), b"\x0b"]
        ),
    )
).map(b"".join)


def split(chunks: Iterable[bytes], limit: int = MAX_LINE_BYTES) -> list[Line]:
    splitter = LineSplitter(limit=limit)
    return [line for chunk in chunks for line in splitter.push(chunk)] + splitter.finish()


def expected(data: bytes) -> list[Line]:
    """The rule in its plainest form: split the whole at LF, drop one CR, decode."""
    lines, offset = [], 0
    pieces = data.split(b"\n")
    for at, piece in enumerate(pieces):
        if piece or at < len(pieces) - 1:
            text = piece.removesuffix(b"\r").decode("utf-8", "replace")
            lines.append(Line(offset, text, len(piece)))
        offset += len(piece) + 1
    return lines


@given(TRICKY, st.lists(st.integers(0, 200)))
def test_any_chunking_gives_the_lines_of_the_whole(data: bytes, cuts: list[int]) -> None:
    """T4: chunks and timing never matter."""
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[begin:end] for begin, end in pairwise(places)]
    assert split(chunks) == split([data]) == expected(data)


@given(TRICKY)
def test_single_bytes_give_the_lines_of_the_whole(data: bytes) -> None:
    """T4: incremental decoding, also in the middle of a character."""
    assert split(bytes((byte,)) for byte in data) == expected(data)


@given(TRICKY)
def test_offsets_lead_back_to_the_bytes(data: bytes) -> None:
    """D2: an entry's id is the byte offset of its line."""
    for line in split([data]):
        piece = data[line.offset : line.offset + line.size]
        assert piece.removesuffix(b"\r").decode("utf-8", "replace") == line.text
        assert line.offset == 0 or data[line.offset - 1 : line.offset] == b"\n"


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"a\xe2\x80\xa8b\xc2\x85c\x0bd\x0ce\n", ["a\u2028b\u0085c\x0bd\x0ce"]),
        (b"one\rtwo\r\n", ["one\rtwo"]),
        (b"crcr\r\r\n", ["crcr\r"]),
        (b"\r\n\n", ["", ""]),
        (b"nul\0here\n", ["nul\0here"]),
        (b"\xff\xc3(\n", ["\ufffd\ufffd("]),
        (b"  spaces stay \t\n", ["  spaces stay \t"]),
        (b"no newline", ["no newline"]),
        (b"", []),
    ],
)
def test_nothing_else_ends_a_line_and_nothing_else_is_trimmed(
    data: bytes, texts: list[str]
) -> None:
    """T4: one trailing CR is removed, nothing else."""
    assert [line.text for line in split([data])] == texts


def test_a_splitter_goes_on_at_an_offset() -> None:
    splitter = LineSplitter(offset=100)
    assert splitter.push(b"ab\ncd") == [Line(100, "ab", 2)]
    assert splitter.finish() == [Line(103, "cd", 2)]


@pytest.mark.parametrize("size", [1, 7, 4096, 65536, 10**9])
@pytest.mark.parametrize("length", [99_999, 100_000, 100_001, 250_000])
def test_a_line_over_the_limit_is_cut_the_same_in_any_chunks(length: int, size: int) -> None:
    """T4: a longer line has head, tail and size, and the next line is whole."""
    whole = bytes(97 + at % 26 for at in range(length))
    data = whole + b"\nnext\n"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    first, second = split(chunks, limit=100_000)
    assert second == Line(length + 1, "next", 4)
    assert (first.offset, first.size, first.cut) == (0, length, length > 100_000)
    if first.cut:
        left_out = length - HEAD_BYTES - TAIL_BYTES
        assert first.text.startswith(whole[:HEAD_BYTES].decode())
        assert first.text.endswith(whole[-TAIL_BYTES:].decode())
        assert f" {left_out} bytes left out of a line of {length} bytes " in first.text
        assert len(first.text.encode()) <= SHOWN_TEXT_BYTES
    else:
        assert first.text == whole.decode()


def test_a_character_at_the_cut_is_left_out_not_broken() -> None:
    data = "🦆".encode() * 50_000
    (line,) = split([data], limit=100_000)
    assert line.cut
    assert "\ufffd" not in line.text


def test_a_huge_line_needs_little_memory() -> None:
    """T4: a line of 200 MB in bounded memory."""
    splitter = LineSplitter()
    chunk = b"x" * (256 * 1024)
    tracemalloc.start()
    try:
        for _ in range(800):
            assert splitter.push(chunk) == []
        (line,) = splitter.push(b"\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (line.size, line.cut) == (800 * len(chunk), True)
    assert peak < 3 * MAX_LINE_BYTES


def test_tiny_chunks_of_a_long_line_need_no_more_memory_than_the_line() -> None:
    """T4: a runtime that writes single bytes costs no more than one that writes blocks."""
    splitter = LineSplitter()
    tracemalloc.start()
    try:
        for _ in range(200_000):
            splitter.push(b"x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
