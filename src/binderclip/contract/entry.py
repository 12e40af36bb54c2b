"""Transcript entries (contract T1, T1b), one structure per kind, and the records that carry them.

Parsers fill the fields of a kind; `id`, `seq`, `attempt`, `stream` and `offset` are the host's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from binderclip.contract.usage import Usage
from binderclip.contract.wire import Wire

Stream = Literal["stdout", "stderr"]
ToolKind = Literal[
    "shell", "read", "write", "edit", "search", "web", "todo", "agent", "mcp", "other"
]
ChangeType = Literal["add", "remove", "context", "hunk", "file_header", "truncation"]

SHOWN_TEXT_BYTES = 64 * 1024


class Truncated(Wire, frozen=True, kw_only=True):
    """How large a text was before it was cut for a stream or a list."""

    bytes: int


class EntryFields(Wire, frozen=True, kw_only=True, tag_field="kind", gc=False):
    """What every entry may carry besides the fields of its kind."""

    ts: str
    id: str = ""
    seq: int | None = None
    attempt: int | None = None
    stream: Stream | None = None
    offset: int | None = None
    parent_tool_use_id: str | None = None
    truncated: Truncated | None = None


class Init(EntryFields, frozen=True, kw_only=True, tag="init", gc=False):
    model: str
    session_id: str


class Assistant(EntryFields, frozen=True, kw_only=True, tag="assistant", gc=False):
    text: str
    delta: bool = False


class Thinking(EntryFields, frozen=True, kw_only=True, tag="thinking", gc=False):
    text: str
    delta: bool = False


class User(EntryFields, frozen=True, kw_only=True, tag="user", gc=False):
    text: str


class ToolCall(EntryFields, frozen=True, kw_only=True, tag="tool_call", gc=False):
    name: str
    input: Any
    tool_use_id: str | None = None
    tool_kind: ToolKind | None = None
    title: str | None = None


class Attachment(Wire, frozen=True, kw_only=True):
    media_type: str
    ref: str


class ToolResult(EntryFields, frozen=True, kw_only=True, tag="tool_result", gc=False):
    tool_use_id: str
    content: str
    is_error: bool
    tool_name: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    attachments: tuple[Attachment, ...] = ()
    paired_by_guess: bool = False


class Result(EntryFields, frozen=True, kw_only=True, tag="result", gc=False):
    text: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    subtype: str
    is_error: bool
    errors: tuple[str, ...]


class Stderr(EntryFields, frozen=True, kw_only=True, tag="stderr", gc=False):
    text: str


class RetryNote(Wire, frozen=True, kw_only=True):
    """A request that failed and that the runtime makes again by itself."""

    cause: str
    attempt: int | None = None
    max_attempts: int | None = None
    delay_ms: int | None = None
    status_code: int | None = None
    """The vendor's HTTP status, where it was told."""


class System(EntryFields, frozen=True, kw_only=True, tag="system", gc=False):
    text: str
    retry: RetryNote | None = None


class Stdout(EntryFields, frozen=True, kw_only=True, tag="stdout", gc=False):
    text: str


class Diff(EntryFields, frozen=True, kw_only=True, tag="diff", gc=False):
    change_type: ChangeType
    text: str
    tool_use_id: str | None = None
    path: str | None = None


Entry: TypeAlias = (
    Init
    | Assistant
    | Thinking
    | User
    | ToolCall
    | ToolResult
    | Result
    | Stderr
    | System
    | Stdout
    | Diff
)
ENTRY_KINDS = (
    "init",
    "assistant",
    "thinking",
    "user",
    "tool_call",
    "tool_result",
    "result",
    "stderr",
    "system",
    "stdout",
    "diff",
)


class EntryRecord(Wire, frozen=True, kw_only=True, tag="entry", tag_field="type", gc=False):
    """A new entry at the end of the transcript."""

    entry: Entry


class AppendRecord(Wire, frozen=True, kw_only=True, tag="append", tag_field="type", gc=False):
    """More text for an entry that is still growing."""

    id: str
    text: str


class ReplaceRecord(Wire, frozen=True, kw_only=True, tag="replace", tag_field="type", gc=False):
    """A new state of an entry that changes as a whole: plans and todo lists."""

    id: str
    entry: Entry


class SpentRecord(Wire, frozen=True, kw_only=True, tag="spent", tag_field="type", gc=False):
    """What the runtime told of one model call, behind the entries that came of it (D10).

    A call may be told in parts: a bucket that a part leaves out is null in it.
    """

    usage: Usage


Record: TypeAlias = EntryRecord | AppendRecord | ReplaceRecord | SpentRecord


class TranscriptHead(Wire, frozen=True, kw_only=True):
    """The first line of `transcript.jsonl`: which parser wrote it."""

    parser: str
    version: str
    only_texts: bool = False
    """Every record is a whole text, so the end can be understood without the rest."""


class Coverage(Wire, frozen=True, kw_only=True):
    """How much of a run's stdout was understood: non-empty lines, known shapes, the rest."""

    lines: int
    understood: int
    unknown: int


def clip(entry: Entry, limit: int = SHOWN_TEXT_BYTES) -> Entry:
    """Cut the entry's long text for a stream or list, noting the size it had (T1b)."""
    field = "content" if isinstance(entry, ToolResult) else "text"
    text = getattr(entry, field, None)
    if not isinstance(text, str) or len(text) <= limit // 4:
        return entry
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return entry
    changes: dict[str, Any] = {
        field: data[:limit].decode("utf-8", "ignore"),
        "truncated": entry.truncated or Truncated(bytes=len(data)),
    }
    return msgspec.structs.replace(entry, **changes)


def apply(entries: list[Entry], records: Sequence[Record]) -> list[Entry]:
    """Play records onto a list of entries, as every viewer does."""
    place = {entry.id: at for at, entry in enumerate(entries)}
    for record in records:
        if isinstance(record, EntryRecord):
            place[record.entry.id] = len(entries)
            entries.append(record.entry)
        elif isinstance(record, AppendRecord):
            at = place[record.id]
            old = entries[at]
            assert isinstance(old, Assistant | Thinking)
            entries[at] = msgspec.structs.replace(old, text=old.text + record.text)
        elif isinstance(record, ReplaceRecord):
            entries[place[record.id]] = record.entry
    return entries
