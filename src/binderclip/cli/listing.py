"""Tables and JSON of the listing commands: one look for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from binderclip.cli.layout import Colour, Look, table
from binderclip.cli.safe import safe_json
from binderclip.cli.terminal import Terminal

Painter = Callable[[int, int], tuple[Colour, ...]]
"""The colours of a cell, by its row and column."""


def print_table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], painter: Painter | None = None
) -> None:
    """Columns with a dim head; the last one is cut at the edge of the terminal."""
    terminal = Terminal()
    look = Look(colour=terminal.colour, width=terminal.width)
    laid = table([head, *rows], look.width)
    lines = ["  ".join(look.paint(cell, "dim") for cell in laid[0]).rstrip()]
    for at, cells in enumerate(laid[1:]):
        colours = [painter(at, column) if painter else ("plain",) for column in range(len(cells))]
        line = "  ".join(
            look.paint(cell, *chosen) for cell, chosen in zip(cells, colours, strict=True)
        )
        lines.append(line.rstrip())
    terminal.write("\n".join(lines) + "\n")


def print_json(value: Any) -> None:
    """One JSON document, readable by people too."""
    terminal = Terminal()
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    terminal.write(safe_json(text) if terminal.tty else text)
