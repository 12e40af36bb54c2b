"""The pieces of a transcript as text: tool headers, results, plans, folded output. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from binderclip.cli.layout import NARROWEST, Colour, Look, cells, clipped, wrapped
from binderclip.cli.safe import safe, safe_line
from binderclip.cli.words import counted, duration
from binderclip.contract.entry import ChangeType, Diff, ToolCall, ToolResult

INDENT = "  "
_TELLING = (
    "command",
    "cmd",
    "script",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
    "name",
)
_DONE = "☑"
_MARKS = {"completed": _DONE, "done": _DONE, "in_progress": "▸", "cancelled": "☒"}
_ITEM_COLOURS: dict[str, tuple[Colour, ...]] = {_DONE: ("dim",), "▸": ("bold",)}
_DIFF_COLOURS: dict[ChangeType, tuple[Colour, ...]] = {
    "add": ("green",),
    "remove": ("red",),
    "context": ("dim",),
    "hunk": ("cyan",),
    "file_header": ("bold",),
    "truncation": ("dim",),
}
_DIFF_SIGNS = {"add": "+", "remove": "-", "context": " "}
_LONGEST_LINE = 400
_ROWS_OF_A_LINE = 3


def label(call: ToolCall) -> str:
    """What a tool is asked to do, on one line; by its title, else by its input."""
    if call.title:
        return safe_line(call.title)
    if call.tool_kind == "todo" and (items := _items(call.input)):
        done = sum(_mark(item) == _DONE for item in items)
        return f"{done} of {len(items)} done"
    return safe_line(_telling(call.input))


def _telling(given: Any) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        return "" if given is None else _compact(given)
    for key in _TELLING:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return " ".join(value)
    return _compact(given) if given else ""


def _compact(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text[:_LONGEST_LINE]


def header(call: ToolCall, look: Look, indent: str) -> str:
    """`● Bash  npm test`: one line, cut to the width."""
    name = safe_line(call.name) or "tool"
    told = label(call)
    if look.width is not None:
        room = max(NARROWEST, look.width - cells(indent)) - 2
        name = clipped(name, room)
        told = clipped(told, max(0, room - cells(name) - 2))
    tail = f"  {told}" if told else ""
    return f"{indent}{look.paint('●', 'yellow')} {look.paint(name, 'yellow', 'bold')}{tail}\n"


def continuation(name: str, told: str, look: Look, indent: str) -> str:
    """The line above a result whose call stands further up."""
    text = f"↳ {name}  {told}".rstrip()
    if look.width is not None:
        text = clipped(text, max(NARROWEST, look.width - cells(indent)))
    return f"{indent}{look.paint(text, 'yellow')}\n"


def plan(call: ToolCall, look: Look, indent: str) -> str:
    """A todo list with its boxes."""
    out = []
    for item in _items(call.input):
        text, mark = safe_line(str(item.get("text", ""))), _mark(item)
        colours = _ITEM_COLOURS.get(mark, ("plain",))
        body = painted_lines(wrapped(text, look.width, indent + INDENT * 2), look, *colours)
        out.append(f"{indent}{INDENT}{mark} {body}\n")
    return "".join(out)


def _mark(item: Mapping[str, Any]) -> str:
    return _MARKS.get(str(item.get("status", "")), "☐")


def _items(given: Any) -> list[Mapping[str, Any]]:
    items = given.get("items") if isinstance(given, Mapping) else None
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def result(entry: ToolResult, look: Look, indent: str, *, shell: bool) -> str:
    """A tool's output, folded, and how it ended."""
    colour: Colour = "red" if entry.is_error else "dim"
    lines = safe(entry.content).rstrip().split("\n") if entry.content.strip() else []
    head, tail = _fold(entry.is_error, shell)
    body = folded(lines, look, indent + INDENT, (colour,), head, tail)
    if entry.truncated is not None and not look.full:
        note = f"cut; the whole has {entry.truncated.bytes:,} bytes"
        body += f"{indent}{INDENT}{look.paint(note, 'dim')}\n"
    return body + verdict(entry, look, indent)


def _fold(is_error: bool, shell: bool) -> tuple[int, int]:
    if is_error:
        return 4, 8
    return (3, 4) if shell else (5, 0)


def verdict(entry: ToolResult, look: Look, indent: str) -> str:
    """`✓ 1.3 s`, or `✗ exit 3 · 0.4 s` in red."""
    facts = []
    if entry.is_error or entry.exit_code:
        facts.append(f"exit {entry.exit_code}" if entry.exit_code is not None else "failed")
    if entry.duration_ms:
        facts.append(duration(entry.duration_ms / 1000))
    if entry.paired_by_guess:
        facts.append("paired by guess")
    failed = entry.is_error or bool(entry.exit_code)
    mark = look.paint("✗", "red") if failed else look.paint("✓", "green")
    told = look.paint(" · ".join(facts), "red" if failed else "dim")
    return f"{indent}{INDENT}{mark} {told}".rstrip() + "\n"


def folded(
    lines: Sequence[str],
    look: Look,
    indent: str,
    colours: tuple[Colour, ...],
    head: int,
    tail: int,
) -> str:
    """The first and last lines, and how many stand between them."""
    hidden = len(lines) - head - tail
    # A note that stands for a single line would save nothing.
    if look.full or hidden <= 1:
        return "".join(_body_line(line, look, indent, colours) for line in lines)
    top = "".join(_body_line(line, look, indent, colours) for line in lines[:head])
    end = lines[len(lines) - tail :] if tail else ()
    bottom = "".join(_body_line(line, look, indent, colours) for line in end)
    return top + more(hidden, look, indent) + bottom


def more(hidden: int, look: Look, indent: str) -> str:
    """The note that stands for hidden lines, and how to see them."""
    note = f"… {counted(hidden, 'more line')}"
    hint = f" (runs transcript {look.run} --full)" if look.run else ""
    if look.width is None or cells(indent + note + hint) <= look.width:
        note += hint
    return f"{indent}{look.paint(note, 'dim')}\n"


def _body_line(line: str, look: Look, indent: str, colours: tuple[Colour, ...]) -> str:
    if not look.full:
        limit = _LONGEST_LINE if look.width is None else look.width * _ROWS_OF_A_LINE
        line = clipped(line, min(limit, _LONGEST_LINE))
    text = painted_lines(wrapped(line, look.width, indent), look, *colours)
    return f"{indent}{text}".rstrip() + "\n"


def diff_line(entry: Diff, look: Look, indent: str) -> str:
    """One line of a diff in its colour, never wrapped: columns matter there."""
    sign = _DIFF_SIGNS.get(entry.change_type, "")
    out = []
    for line in safe(entry.text).replace("\t", "    ").split("\n"):
        text = line if sign and line.startswith(sign) else sign + line
        if look.width is not None:
            text = clipped(text, max(NARROWEST, look.width - cells(indent)))
        out.append(f"{indent}{look.paint(text, *_DIFF_COLOURS[entry.change_type])}\n")
    return "".join(out)


def painted_lines(text: str, look: Look, *colours: Colour) -> str:
    """Each line painted by itself, so that no colour reaches over a line's end."""
    if not look.colour or colours == ("plain",):
        return text
    return "\n".join(look.paint(line, *colours) for line in text.split("\n"))
