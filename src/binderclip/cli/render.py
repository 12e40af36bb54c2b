"""A transcript for the terminal: records in, text out, the same for live and replayed runs.

Pure: it knows neither clock nor terminal. Nothing an agent wrote leaves it unless made safe (T6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

from binderclip.cli import cards
from binderclip.cli.layout import Colour, Flow, Look, wrapped
from binderclip.cli.safe import safe, safe_line
from binderclip.cli.words import size
from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Diff,
    Entry,
    EntryRecord,
    Init,
    Record,
    ReplaceRecord,
    Result,
    SpentRecord,
    Stderr,
    Stdout,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from binderclip.sdk.parser import HOST_NOTICES

Block = Literal["said", "thought", "asked", "card", "diff", "stderr", "system", "raw", ""]
_MARKS: dict[Block, tuple[str, Colour]] = {
    "said": ("◆", "green"),
    "thought": ("◇", "dim"),
    "asked": ("❯", "cyan"),
    "stderr": ("┊", "dim"),
    "system": ("·", "blue"),
    "raw": ("?", "gray"),
}
_BODIES: dict[Block, tuple[Colour, ...]] = {
    "thought": ("dim", "italic"),
    "stderr": ("dim",),
    "system": ("blue",),
    "raw": ("gray",),
}
_SPACIOUS: frozenset[Block] = frozenset({"card", "diff", "thought", "asked"})
_THOUGHT_CHARACTERS = 320
_DIFF_LINES = 40
_CUT_CHARACTERS = 120
_DEEPEST = 4


class _Growing(msgspec.Struct):
    """A text whose end is not known yet."""

    id: str
    block: Block
    flow: Flow
    depth: int
    left: int | None
    """Characters of it that may still be shown; None where all are."""


class Renderer:
    """Draws records one after the other; what is drawn is never touched again."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.unknown = 0
        """Lines that no parser understood and that are shown only in debug."""
        self.running: dict[str, tuple[str, str]] = {}
        """Tool calls without a result: what runs, and since when."""
        self.model = ""
        self._block: Block = ""
        self.started = False
        """Whether anything was drawn yet."""
        self._growing: _Growing | None = None
        self._kinds: dict[str, tuple[Block, int]] = {}
        self._calls: dict[str, ToolCall] = {}
        self._depths: dict[str, int] = {}
        self._last_call = ""
        self._last_said = ""
        self._diff_lines = 0

    @property
    def column(self) -> int:
        """Where the cursor stands: above 0 while a growing text has its line open."""
        return self._growing.flow.column if self._growing else 0

    def render(self, records: Sequence[Record]) -> str:
        """The text of these records, to be printed after everything before."""
        out: list[str] = []
        lines: list[str] = []
        for record in records:
            if type(record) is EntryRecord:
                entry = record.entry
                if type(entry) is Assistant and not entry.delta and self._continues(entry):
                    lines.append(entry.text)
                    continue
            if lines:
                out.append(self._said(lines))
                lines = []
            out.append(self._record(record))
        if lines:
            out.append(self._said(lines))
        return "".join(out)

    def pause(self) -> str:
        """The last word of a growing text, which waited to be whole."""
        return self._shown(self._growing, self._growing.flow.flush()) if self._growing else ""

    def finish(self) -> str:
        """Close what is open; the next text starts on a line of its own."""
        return self._close()

    def notice(self, text: str) -> str:
        """Something that binderclip itself says in between."""
        return self._enter("system") + self._body("system", 0, safe(text))

    def _record(self, record: Record) -> str:
        match record:
            case EntryRecord() | ReplaceRecord():
                return self._entry(record.entry)
            case AppendRecord():
                return self._append(record)
            case SpentRecord():
                return ""
            case _:
                assert_never(record)

    def _entry(self, entry: Entry) -> str:
        match entry:
            case Assistant():
                return self._assistant(entry)
            case ToolCall():
                return self._call(entry)
            case ToolResult():
                return self._result(entry)
            case Thinking():
                return self._thinking(entry)
            case Stderr():
                return self._paragraph("stderr", entry, entry.text)
            case Stdout():
                return self._raw(entry)
            case Diff():
                return self._diff(entry)
            case System():
                return self._system(entry)
            case User():
                return self._paragraph("asked", entry, entry.text)
            case Init():
                return self._init(entry)
            case Result():
                return self._final(entry)
            case _:
                assert_never(entry)

    def _continues(self, entry: Assistant) -> bool:
        """Whether a whole text only adds lines to what was said just before."""
        return self._block == "said" and not self._growing and not entry.parent_tool_use_id

    def _said(self, lines: list[str]) -> str:
        self._last_said = lines[-1]
        text = safe("\n".join(lines))
        if self.look.width is None:
            return text + "\n"
        return cards.INDENT + wrapped(text, self.look.width, cards.INDENT) + "\n"

    def _enter(self, block: Block, *, tight: bool = False) -> str:
        """End the block before, with a blank line where either of the two is a card."""
        closing = self._close()
        spaced = not tight and (block != self._block or block in ("card", "thought"))
        between = self.started and spaced and bool({block, self._block} & _SPACIOUS)
        self._block = block
        self.started = True
        return closing + ("\n" if between else "")

    def _close(self) -> str:
        out = ""
        if self._growing:
            out = self.pause()
            note = " …" if self._growing.left is not None and self._growing.left <= 0 else ""
            out += self.look.paint(note, "dim") + "\n"
            self._growing = None
        if self._diff_lines > _DIFF_LINES and not self.look.full:
            out += cards.more(self._diff_lines - _DIFF_LINES, self.look, cards.INDENT)
        self._diff_lines = 0
        return out

    def _indent(self, depth: int) -> str:
        return cards.INDENT * depth

    def _depth(self, entry: Entry) -> int:
        parent = entry.parent_tool_use_id
        return min(_DEEPEST, self._depths.get(parent, 0) + 1) if parent else 0

    def _mark(self, block: Block, depth: int) -> str:
        mark, colour = _MARKS[block]
        # In a pipe what the agent said stands as it is, for other programs to read.
        if block == "said" and self.look.width is None and not depth:
            return ""
        return f"{self._indent(depth)}{self.look.paint(mark, colour)} "

    def _hanging(self, block: Block, depth: int) -> str:
        if block == "said" and self.look.width is None and not depth:
            return ""
        return self._indent(depth) + cards.INDENT

    def _body(self, block: Block, depth: int, text: str) -> str:
        laid = wrapped(text, self.look.width, self._hanging(block, depth))
        colours = _BODIES.get(block, ("plain",))
        return self._mark(block, depth) + cards.painted_lines(laid, self.look, *colours) + "\n"

    def _paragraph(self, block: Block, entry: Entry, text: str) -> str:
        return self._enter(block) + self._body(block, self._depth(entry), safe(text))

    def _assistant(self, entry: Assistant) -> str:
        self._last_said = entry.text
        if entry.delta:
            return self._grow("said", entry)
        return self._paragraph("said", entry, entry.text)

    def _thinking(self, entry: Thinking) -> str:
        if entry.delta:
            return self._grow("thought", entry)
        text = entry.text.strip()
        if not self.look.full and len(text) > _THOUGHT_CHARACTERS:
            text = text[:_THOUGHT_CHARACTERS] + " …"
        return self._paragraph("thought", entry, text)

    def _grow(self, block: Block, entry: Assistant | Thinking) -> str:
        depth = self._depth(entry)
        self._kinds[entry.id] = (block, depth)
        return self._begin(entry.id, block, depth) + self._shown(
            self._growing, self._feed(entry.text)
        )

    def _begin(self, id: str, block: Block, depth: int) -> str:
        opening = self._enter(block) + self._mark(block, depth)
        left = _THOUGHT_CHARACTERS if block == "thought" and not self.look.full else None
        flow = Flow(self.look.width, self._hanging(block, depth))
        self._growing = _Growing(id, block, flow, depth, left)
        return opening

    def _append(self, record: AppendRecord) -> str:
        opening = ""
        if self._growing is None or self._growing.id != record.id:
            block, depth = self._kinds.get(record.id, ("said", 0))
            opening = self._begin(record.id, block, depth)
        elif self._growing.block == "said":
            self._last_said += record.text
        return opening + self._shown(self._growing, self._feed(record.text))

    def _feed(self, text: str) -> str:
        growing = self._growing
        assert growing is not None
        if growing.left is not None:
            text, growing.left = text[: max(0, growing.left)], growing.left - len(text)
        return growing.flow.feed(safe(text))

    def _shown(self, growing: _Growing | None, text: str) -> str:
        colours = _BODIES.get(growing.block, ("plain",)) if growing else ("plain",)
        return cards.painted_lines(text, self.look, *colours)

    def _init(self, entry: Init) -> str:
        self.model = safe_line(entry.model)
        session = f"session {safe_line(entry.session_id)[:8]}" if entry.session_id else ""
        told = " · ".join(part for part in (self.model, session) if part)
        return self._paragraph("system", entry, told) if told else ""

    def _system(self, entry: System) -> str:
        text = entry.text
        for notice in HOST_NOTICES:
            text = text.removeprefix(notice)
        return self._paragraph("system", entry, text)

    def _raw(self, entry: Stdout) -> str:
        if self.look.debug:
            return self._paragraph("raw", entry, entry.text)
        self.unknown += 1
        if entry.truncated is None:
            return ""
        # Too long for any parser, so nobody can say that it does not matter.
        beginning = entry.text[:_CUT_CHARACTERS]
        told = f"{beginning} … a line of {size(entry.truncated.bytes)}; the log has all of it"
        return self._paragraph("raw", entry, told)

    def _call(self, entry: ToolCall) -> str:
        depth = self._depth(entry)
        indent = self._indent(depth)
        # Calls that are made at once stand together; their results come below.
        waiting = self._block == "card" and self._last_call in self.running
        if entry.tool_use_id:
            self._depths[entry.tool_use_id] = depth
            self._calls[entry.tool_use_id] = entry
            # A plan is a statement, nothing that runs.
            if entry.tool_kind != "todo":
                self.running[entry.tool_use_id] = (safe_line(entry.name), entry.ts)
        self._last_call = entry.tool_use_id or ""
        out = self._enter("card", tight=waiting) + cards.header(entry, self.look, indent)
        if entry.tool_kind == "todo":
            out += cards.plan(entry, self.look, indent)
        return out

    def _result(self, entry: ToolResult) -> str:
        call = self._calls.pop(entry.tool_use_id, None)
        self.running.pop(entry.tool_use_id, None)
        depth = self._depths.get(entry.tool_use_id, self._depth(entry))
        indent = self._indent(depth)
        out = self._close()
        if self._block not in ("card", "diff") or self._last_call != entry.tool_use_id:
            name = safe_line((call.name if call else entry.tool_name) or "tool")
            out += self._enter("card")
            out += cards.continuation(name, cards.label(call) if call else "", self.look, indent)
        self._block, self._last_call = "card", ""
        if call is not None and call.tool_kind == "todo" and not entry.is_error:
            return out
        shell = call is not None and call.tool_kind == "shell"
        return out + cards.result(entry, self.look, indent, shell=shell)

    def _diff(self, entry: Diff) -> str:
        opening = ""
        if self._block not in ("card", "diff"):
            opening = self._enter("diff")
        elif self._block == "card":
            self._block = "diff"
        self._diff_lines += 1
        if self._diff_lines > _DIFF_LINES and not self.look.full:
            return opening
        indent = self._indent(self._depth(entry)) + cards.INDENT
        return opening + cards.diff_line(entry, self.look, indent)

    def _final(self, entry: Result) -> str:
        """The runtime's closing words, unless the agent just said them."""
        if entry.is_error:
            told = "\n".join([*entry.errors] or [entry.text or entry.subtype])
            red = cards.painted_lines(
                wrapped(safe(told), self.look.width, cards.INDENT), self.look, "red"
            )
            return self._enter("system") + f"{self.look.paint('✗', 'red')} {red}\n"
        if not entry.text.strip() or entry.text.strip() == self._last_said.strip():
            return ""
        return self._paragraph("said", entry, entry.text)
