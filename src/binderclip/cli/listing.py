"""Tables and JSON of the listing commands: one look for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from binderclip.cli.layout import GAP, Colour, Look, fitting, table
from binderclip.cli.safe import safe_json
from binderclip.cli.terminal import Terminal

Painter = Callable[[int, int], tuple[Colour, ...]]
"""The colours of a cell, by its row and column."""


def print_table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], painter: Painter | None = None
) -> None:
    """Columns with a dim head; on a narrow terminal some give way, and the last one is cut."""
    terminal = Terminal()
    look = Look(colour=terminal.colour, width=terminal.width)
    shown = fitting([head, *rows], look.width)
    laid = table([tuple(row[at] for at in shown) for row in (head, *rows)], look.width)
    between = " " * GAP
    lines = [between.join(look.paint(cell, "dim") for cell in laid[0]).rstrip()]
    for at, cells in enumerate(laid[1:]):
        colours = [painter(at, column) if painter else ("plain",) for column in shown]
        line = between.join(
            look.paint(cell, *chosen) for cell, chosen in zip(cells, colours, strict=True)
        )
        lines.append(line.rstrip())
    terminal.write("\n".join(lines) + "\n")


def print_json(value: Any) -> None:
    """One JSON document, readable by people too."""
    terminal = Terminal()
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    terminal.write(safe_json(text) if terminal.tty else text)
