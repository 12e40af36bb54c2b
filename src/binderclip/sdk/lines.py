"""Splitting a stream of bytes into lines, whatever the chunks, in bounded memory (T4).

Lines end at LF and nowhere else; one trailing CR is dropped; offsets are those of the bytes.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_LINE_BYTES = 16 * 1024 * 1024
"""What a parser gets at most; a longer line is kept on disk and shown by head and tail."""
HEAD_BYTES = 31 * 1024
TAIL_BYTES = 31 * 1024
"""Head and tail together stay below what streams and lists show of a text."""


class Line(NamedTuple):
    """One line: where it began, its text, its size in bytes, and whether the text was cut."""

    offset: int
    text: str
    size: int
    cut: bool = False


class LineSplitter:
    """Feed chunks, get whole lines; `finish` gives the last one without a newline."""

    __slots__ = ("_head", "_limit", "_offset", "_parts", "_size", "_tail")

    def __init__(self, offset: int = 0, limit: int = MAX_LINE_BYTES) -> None:
        self._offset = offset
        self._limit = limit
        self._clear()

    def push(self, chunk: bytes) -> list[Line]:
        """The lines that this chunk completes."""
        last = chunk.rfind(b"\n") + 1
        if not last:
            self._keep(chunk)
            return []
        first = chunk.find(b"\n") + 1 if self._size else 0
        lines: list[Line] = []
        if first:
            self._keep(chunk[: first - 1])
            lines.append(self._take(newline=1))
        if first < last:
            self._split(chunk[first : last - 1], lines)
        self._keep(chunk[last:])
        return lines

    def _split(self, block: bytes, lines: list[Line]) -> None:
        """Whole lines, without the last newline."""
        offset = self._offset
        if len(block) <= self._limit and block.isascii() and b"\r" not in block:
            for text in block.decode("ascii").split("\n"):
                size = len(text)
                lines.append(_new(Line, (offset, text, size, False)))
                offset += size + 1
            self._offset = offset
            return
        decode = _text if b"\r" in block else _utf8
        for piece in block.split(b"\n"):
            size = len(piece)
            if size > self._limit:
                self._offset = offset
                self._keep(piece)
                lines.append(self._take(newline=1))
            else:
                lines.append(_new(Line, (offset, decode(piece, "utf-8", "replace"), size, False)))
            offset += size + 1
        self._offset = offset

    def finish(self) -> list[Line]:
        """The last line, if it has no newline."""
        return [self._take(newline=0)] if self._size else []

    def _clear(self) -> None:
        self._parts = bytearray()
        self._size = 0
        self._head = b""
        self._tail = b""

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._head or self._size > self._limit:
            self._overflow(piece)
        else:
            self._parts += piece

    def _overflow(self, piece: bytes) -> None:
        if not self._head:
            self._head = bytes(self._parts[:HEAD_BYTES] + piece[:HEAD_BYTES])[:HEAD_BYTES]
            self._tail = bytes(self._parts[-TAIL_BYTES:])
            self._parts = bytearray()
        self._tail = (self._tail + piece[-TAIL_BYTES:])[-TAIL_BYTES:]

    def _take(self, newline: int) -> Line:
        size = self._size
        if self._head:
            line = Line(self._offset, _shortened(self._head, self._tail, size), size, cut=True)
        else:
            line = Line(self._offset, _text(self._parts), size)
        self._offset += size + newline
        self._clear()
        return line


_new = tuple.__new__
"""Makes a Line without the checks of its constructor: this runs once a line."""


_utf8 = str


def _text(piece: bytes | bytearray, encoding: str = "utf-8", errors: str = "replace") -> str:
    if piece.endswith(b"\r"):
        piece = piece[:-1]
    return piece.decode(encoding, errors)


def _shortened(head: bytes, tail: bytes, size: int) -> str:
    left_out = size - len(head) - len(tail)
    middle = f" … {left_out} bytes left out of a line of {size} bytes … "
    return head.decode("utf-8", "ignore") + middle + tail.decode("utf-8", "ignore")
