"""Terminal output as HTML: colours become spans, every other control sequence vanishes."""

from __future__ import annotations

import re
from html import escape

from binderclip.jobs.prose import printable

_SEQUENCE = re.compile(
    r"\x1b\[([0-9;:]{0,64})m"
    r"|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]{0,4}[0-~]?"
)
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def terminal(text: str) -> str:
    """The text, escaped, with its colours."""
    if "\x1b" not in text:
        return escape(printable(text))
    out: list[str] = []
    style: tuple[str, ...] = ()
    at = 0
    for match in _SEQUENCE.finditer(text):
        out.append(_painted(text[at : match.start()], style))
        if match[1] is not None:
            style = _after(style, match[1])
        at = match.end()
    out.append(_painted(text[at:], style))
    return "".join(out)


def uncoloured(text: str) -> str:
    """The text without any control sequence."""
    return printable(_SEQUENCE.sub("", text) if "\x1b" in text else text)


def _painted(text: str, style: tuple[str, ...]) -> str:
    shown = escape(printable(text))
    return f'<span class="{" ".join(style)}">{shown}</span>' if style and shown else shown


def _after(style: tuple[str, ...], codes: str) -> tuple[str, ...]:
    numbers = [int(code) if code.isdigit() else 0 for code in re.split("[;:]", codes)][:16]
    at = 0
    while at < len(numbers):
        code = numbers[at]
        if code in (38, 48):
            # A colour of 256 or of 16 million: its numbers are no codes of their own.
            at += 3 if numbers[at + 1 : at + 2] == [5] else 5
            continue
        style = _with_code(style, code)
        at += 1
    return style


def _with_code(style: tuple[str, ...], code: int) -> tuple[str, ...]:
    if code == 0:
        return ()
    if code in (1, 2, 3):
        added = ("bold", "dim", "italic")[code - 1]
        return style if added in style else (*style, added)
    if code == 22:
        return tuple(name for name in style if name not in ("bold", "dim"))
    kept = tuple(name for name in style if not name.startswith("t-"))
    if 30 <= code <= 37 or 90 <= code <= 97:
        return (*kept, f"t-{_COLOURS[code % 10]}")
    return kept if code == 39 else style
