"""Columns, colours and wrapping; text that comes in pieces is laid out as if it were whole."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

import msgspec

Colour = Literal[
    "red", "green", "yellow", "blue", "magenta", "cyan", "gray", "dim", "bold", "plain", "italic"
]
_CODES: dict[str, str] = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "gray": "90",
    "dim": "2",
    "bold": "1",
    "italic": "3",
}
RESET = "\x1b[0m"
NARROWEST = 20
_WORDS = re.compile(r"\n|[ \t]+|[^ \t\n]+")
_TAB = 4


class Look(msgspec.Struct):
    """How a surface draws: `width` None is a pipe or file, where nothing is wrapped."""

    colour: bool = False
    width: int | None = None
    debug: bool = False
    full: bool = False
    run: str = ""
    """The short id that hints name; empty where there is no run to name."""

    def paint(self, text: str, *colours: Colour) -> str:
        """The text in colours, or as it is where there are none."""
        codes = ";".join(_CODES[colour] for colour in colours if colour != "plain")
        if not self.colour or not codes or not text:
            return text
        return f"\x1b[{codes}m{text}{RESET}"


@lru_cache(maxsize=4096)
def _wide(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cells(text: str) -> int:
    """How many columns a text without control characters takes."""
    return len(text) if text.isascii() else sum(map(_wide, text))


def clipped(text: str, width: int) -> str:
    """The text in at most `width` columns, with an ellipsis where it was cut."""
    if cells(text) <= width:
        return text
    return _head(text, max(0, width - 1)) + "…" if width > 0 else ""


def padded(text: str, width: int) -> str:
    """The text filled up to `width` columns."""
    return text + " " * (width - cells(text))


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    used = 0
    for at, character in enumerate(text):
        used += _wide(character)
        if used > width:
            return text[:at]
    return text


class Flow:
    """Lays out text that comes in pieces: wraps at words, indents every line but the first.

    The last word of a piece waits until it is known to be whole; `flush` lets it go.
    """

    def __init__(self, width: int | None, indent: str = "") -> None:
        self.width = max(NARROWEST, width) if width is not None else None
        self.indent = indent
        self.column = cells(indent)
        self._waiting = ""
        self._space = ""

    def feed(self, text: str) -> str:
        """The part of the text that can be printed now."""
        if self.width is None:
            return text.replace("\n", "\n" + self.indent) if self.indent else text
        pieces = _WORDS.findall(self._waiting + text)
        self._waiting = ""
        if pieces and not pieces[-1].isspace() and cells(pieces[-1]) < NARROWEST:
            self._waiting = pieces.pop()
        return "".join(map(self._place, pieces))

    def flush(self) -> str:
        """What still waited, now that the text has paused or ended."""
        word, self._waiting = self._waiting, ""
        return self._place(word) if word else ""

    def _place(self, piece: str) -> str:
        if piece == "\n":
            self._space = ""
            return self._break()
        if piece.isspace():
            self._space += piece.replace("\t", " " * _TAB)
            return ""
        return self._word(piece)

    def _word(self, word: str) -> str:
        assert self.width is not None
        out, space = "", self._space
        self._space = ""
        size = cells(word)
        if self.column + len(space) + size > self.width and self.column > len(self.indent):
            out = self._break()
            space = ""
        room = self.width - self.column - len(space)
        while size > room > 0:
            head = _head(word, room) or word[0]
            out += space + head + self._break()
            word, space = word[len(head) :], ""
            size, room = cells(word), self.width - self.column
        self.column += len(space) + size
        return out + space + word

    def _break(self) -> str:
        self.column = len(self.indent)
        return "\n" + self.indent


def wrapped(text: str, width: int | None, indent: str = "") -> str:
    """A whole text laid out; its first line starts after the indent that the caller wrote."""
    if width is None:
        return text.replace("\n", "\n" + indent) if indent else text
    room = max(NARROWEST, width) - cells(indent)
    return f"\n{indent}".join(
        line if cells(line) <= room and "\t" not in line else _laid(line, width, indent)
        for line in text.split("\n")
    )


def _laid(line: str, width: int, indent: str) -> str:
    flow = Flow(width, indent)
    return flow.feed(line) + flow.flush()


GAP = 2
_LEAST_LAST = 10


def fitting(rows: list[tuple[str, ...]], width: int | None) -> list[int]:
    """The columns that fit beside the last one; the two at the left stay, however narrow it is."""
    columns = list(range(len(rows[0])))
    sizes = _sizes(rows)
    while width is not None and len(columns) > 3:
        taken = sum(sizes[at] + GAP for at in columns[:-1])
        if taken + min(NARROWEST, sizes[-1]) <= width:
            break
        del columns[-2]
    return columns


def table(rows: list[tuple[str, ...]], width: int | None) -> list[list[str]]:
    """Cells padded into columns; the last column takes what is left and is cut there."""
    if not rows:
        return []
    sizes = _sizes(rows)
    left = (
        None if width is None else max(_LEAST_LAST, width - sum(sizes[:-1]) - GAP * len(sizes[1:]))
    )
    laid = []
    for row in rows:
        last = row[-1] if left is None else clipped(row[-1], left)
        laid.append([padded(cell, size) for cell, size in zip(row, sizes, strict=False)][:-1])
        laid[-1].append(last)
    return laid


def _sizes(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(cells, column)) for column in zip(*rows, strict=True)]
