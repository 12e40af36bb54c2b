"""A transcript as people read it: a tool with its result, lines of one kind as one block.

Every export draws these pieces; only what waits for a result is held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from binderclip.contract.entry import (
    Assistant,
    Diff,
    Entry,
    Init,
    Result,
    Stderr,
    Stdout,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)

TextKind = Literal["said", "thought", "asked", "stderr", "system", "raw"]
_KINDS: dict[type, TextKind] = {
    Assistant: "said",
    Thinking: "thought",
    User: "asked",
    Stderr: "stderr",
    System: "system",
    Stdout: "raw",
}
_ONE_BLOCK: frozenset[TextKind] = frozenset({"stderr", "system", "raw"})


@dataclass(slots=True)
class Text:
    """Words of one kind."""

    kind: TextKind
    id: str
    ts: str
    lane: str | None
    parts: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.parts)


@dataclass(slots=True)
class Tool:
    """A tool, what it gave back and what it changed."""

    id: str
    ts: str
    lane: str | None
    call: ToolCall | None
    result: ToolResult | None = None
    diffs: list[Diff] = field(default_factory=list)


@dataclass(slots=True)
class Changes:
    """Lines of a diff that belong to no tool in sight."""

    id: str
    ts: str
    lane: str | None
    lines: list[Diff]


@dataclass(slots=True)
class Begin:
    """A runtime said that it begins."""

    id: str
    ts: str
    lane: str | None
    entry: Init


@dataclass(slots=True)
class End:
    """A runtime said how it ended."""

    id: str
    ts: str
    lane: str | None
    entry: Result


Piece = Text | Tool | Changes | Begin | End


def pieces(entries: Iterable[Entry], *, structured: bool = True) -> Iterator[Piece]:
    """The pieces of a transcript; of an unstructured runtime all that it says is one block."""
    waiting: deque[Piece] = deque()
    unanswered: dict[str, Tool] = {}
    tools: dict[str, Tool] = {}
    for entry in entries:
        if isinstance(entry, ToolResult) and entry.tool_use_id in unanswered:
            unanswered.pop(entry.tool_use_id).result = entry
        elif isinstance(entry, Diff) and entry.tool_use_id in tools:
            tools[entry.tool_use_id].diffs.append(entry)
        elif not (waiting and _joined(waiting[-1], entry, structured)):
            piece = _piece(entry)
            waiting.append(piece)
            if isinstance(piece, Tool) and piece.call and piece.call.tool_use_id:
                tools[piece.call.tool_use_id] = piece
                if piece.call.tool_kind != "todo":
                    unanswered[piece.call.tool_use_id] = piece
        # The last piece may still be joined by what follows.
        while len(waiting) > 1 and not _waits(waiting[0], unanswered):
            yield _let_go(waiting.popleft(), tools)
    yield from waiting


def _waits(piece: Piece, unanswered: dict[str, Tool]) -> bool:
    called = isinstance(piece, Tool) and piece.call and piece.call.tool_use_id
    return bool(called) and called in unanswered


def _let_go(piece: Piece, tools: dict[str, Tool]) -> Piece:
    if isinstance(piece, Tool) and piece.call and piece.call.tool_use_id:
        tools.pop(piece.call.tool_use_id, None)
    return piece


def _joined(last: Piece, entry: Entry, structured: bool) -> bool:
    """Add an entry to the piece before it, where both are lines of the same block."""
    if last.lane != entry.parent_tool_use_id:
        return False
    if isinstance(last, Changes) and isinstance(entry, Diff):
        last.lines.append(entry)
        return True
    kind = _KINDS.get(type(entry))
    if not isinstance(last, Text) or last.kind != kind:
        return False
    if kind in _ONE_BLOCK or (kind == "said" and not structured):
        last.parts.append(getattr(entry, "text", ""))
        return True
    return False


def _piece(entry: Entry) -> Piece:
    id, ts, lane = entry.id, entry.ts, entry.parent_tool_use_id
    if isinstance(entry, ToolCall):
        return Tool(id, ts, lane, entry)
    if isinstance(entry, ToolResult):
        return Tool(id, ts, lane, None, entry)
    if isinstance(entry, Diff):
        return Changes(id, ts, lane, [entry])
    if isinstance(entry, Init):
        return Begin(id, ts, lane, entry)
    if isinstance(entry, Result):
        return End(id, ts, lane, entry)
    return Text(_KINDS[type(entry)], id, ts, lane, [entry.text])
