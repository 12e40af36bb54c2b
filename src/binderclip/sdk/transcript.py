"""Building a transcript: lines in, records out (T3, T4). Chunks and timing never matter.

A parser that raises loses that one line to the generic rule; nothing a parser does can stop a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Coverage,
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
    Stream,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    Truncated,
    User,
)
from binderclip.contract.usage import Usage
from binderclip.sdk.lines import Line
from binderclip.sdk.parser import (
    FINAL_LINE_CHARACTERS,
    HOST_NOTICES,
    GenericParser,
    Parsed,
    Parser,
    generic_stderr,
    generic_stdout,
)

_ID = (str, type(None))


def _is_text(entry: Any) -> bool:
    return type(entry.text) is str and type(entry.parent_tool_use_id) in _ID


_SHAPES: dict[type, Callable[[Any], bool]] = {
    **dict.fromkeys((Assistant, Thinking, User, Stderr, System, Stdout), _is_text),
    Init: lambda entry: type(entry.model) is str and type(entry.session_id) is str,
    ToolCall: lambda entry: (
        type(entry.name) is str
        and type(entry.tool_use_id) in _ID
        and type(entry.parent_tool_use_id) in _ID
    ),
    ToolResult: lambda entry: (
        type(entry.tool_use_id) is str
        and type(entry.content) is str
        and type(entry.is_error) is bool
        and type(entry.parent_tool_use_id) in _ID
    ),
    Result: lambda entry: (
        _is_text(entry) and type(entry.subtype) is str and type(entry.is_error) is bool
    ),
    Diff: lambda entry: _is_text(entry) and type(entry.change_type) is str,
}
"""What every viewer relies on; checked by hand, since a parser is called for each line (T4)."""
_GROWING = (Assistant, Thinking)
_set = msgspec.structs.force_setattr
_filled = msgspec.structs.replace
_OpenKey: TypeAlias = tuple[type, str | None]


class TranscriptBuilder:
    """Turns the lines of one attempt into records and counts what was understood."""

    def __init__(self, parser: Parser, attempt: int = 1, seq: int = 0) -> None:
        self.parser = parser
        self.attempt = attempt
        self.lines = 0
        self.understood = 0
        self.dropped = 0
        """Things a parser returned that are no entries."""
        self.failures: list[str] = []
        """The first few exceptions of the parser, in words."""
        self._heads = {"stdout": f"{attempt}o", "stderr": f"{attempt}e"}
        self._seq = seq
        self._open: dict[_OpenKey, str] = {}
        self._calls: dict[str, tuple[str, str]] = {}
        self._todo: dict[str, tuple[str, int]] = {}
        self._last_ts = ""

    @property
    def only_texts(self) -> bool:
        """Whether every record will be a whole text."""
        return type(self.parser) is GenericParser

    @property
    def coverage(self) -> Coverage:
        return Coverage(
            lines=self.lines, understood=self.understood, unknown=self.lines - self.understood
        )

    @property
    def seq(self) -> int:
        """The position that the next entry will have."""
        return self._seq

    def take_seq(self) -> int:
        """Give the next position to an entry that the host itself adds."""
        self._seq += 1
        return self._seq - 1

    def feed(self, stream: Stream, line: Line, ts: str) -> list[Record]:
        """The records of one line."""
        return self.feed_all(((stream, line, ts),))

    def feed_all(self, lines: Iterable[tuple[Stream, Line, str]]) -> list[Record]:
        """The records of many lines."""
        if type(self.parser) is GenericParser:
            return self._feed_plain(self.parser, lines)
        return self._feed_parsed(lines)

    def _feed_plain(
        self, parser: GenericParser, lines: Iterable[tuple[Stream, Line, str]]
    ) -> list[Record]:
        """The same for a parser that takes every line as it is: no call and no check for each."""
        records: list[Record] = []
        attempt, seq, before = self.attempt, self._seq, self._seq
        add, keep = records.append, parser.last_lines.append
        for one in lines:
            stream, (offset, text, _, cut), ts = one
            if stream == "stdout" and text and not cut and text[0] != "[":
                keep(text[:FINAL_LINE_CHARACTERS])
                said = Assistant(
                    ts=ts,
                    id=f"{attempt}o{offset}.0",
                    seq=seq,
                    attempt=attempt,
                    stream="stdout",
                    offset=offset,
                    text=text,
                )
                add(EntryRecord(entry=said))
                seq += 1
                self._last_ts = ts
            else:
                self._count(seq - before)
                records += self._feed_parsed((one,))
                seq = before = self._seq
        self._count(seq - before)
        return records

    def _count(self, understood: int) -> None:
        self.lines += understood
        self.understood += understood
        self._seq += understood

    def _feed_parsed(self, lines: Iterable[tuple[Stream, Line, str]]) -> list[Record]:
        records: list[Record] = []
        if self.parser.batched:
            lines = self._prepared(lines)
        parse, ts = self.parser.parse_line, self._last_ts
        read = unknown = 0
        entries: Sequence[Parsed] | None
        for stream, line, ts in lines:
            offset, text, _, cut = line
            if not text:
                continue
            if stream != "stdout":
                entries = self._stderr(text, ts)
            elif cut or text[0] == "[":
                entries = self._odd(line, ts)
            else:
                read += 1
                try:
                    entries = parse(text, ts)
                except Exception as problem:
                    self._note(problem)
                    entries = None
                if entries is None:
                    unknown += 1
                    entries = (generic_stdout(text, ts, self.parser.structured),)
            if entries != ():
                self._add(entries, stream, offset, records)
        self.lines += read
        self.understood += read - unknown
        self._last_ts = ts
        return records

    def _prepared(
        self, lines: Iterable[tuple[Stream, Line, str]]
    ) -> list[tuple[Stream, Line, str]]:
        """The same lines, after a parser in another process was asked for all of them at once."""
        known = list(lines)
        told = [(stream, line[1], ts) for stream, line, ts in known if _is_parsed(stream, line)]
        self.parser.prepare(told)
        return known

    def finish(self, offset: int) -> list[Record]:
        """The records of what the parser still held when the output ended at this offset."""
        try:
            entries = self.parser.finish(self._last_ts)
        except Exception as problem:
            self._note(problem)
            return []
        records: list[Record] = []
        self._add(entries, "stdout", offset, records)
        return records

    def _odd(self, line: Line, ts: str) -> Sequence[Parsed]:
        """A line that is too long for a parser, or begins like a notice of the host."""
        self.lines += 1
        text = line.text
        if line.cut:
            return (Stdout(ts=ts, text=text, truncated=Truncated(bytes=line.size)),)
        if text.startswith(HOST_NOTICES):
            self.understood += 1
            return (System(ts=ts, text=text),)
        try:
            entries = self.parser.parse_line(text, ts)
        except Exception as problem:
            self._note(problem)
            entries = None
        if entries is None:
            return (generic_stdout(text, ts, self.parser.structured),)
        self.understood += 1
        return entries

    def _stderr(self, text: str, ts: str) -> Sequence[Parsed]:
        try:
            entries = self.parser.parse_stderr(text, ts)
        except Exception as problem:
            self._note(problem)
            entries = None
        return (generic_stderr(text, ts),) if entries is None else entries

    def _note(self, problem: Exception) -> None:
        if len(self.failures) < 10:
            self.failures.append(f"{type(problem).__name__}: {problem}"[:500])

    def _add(
        self, entries: Sequence[Any], stream: Stream, offset: int, records: list[Record]
    ) -> None:
        if type(entries) is not tuple and not isinstance(entries, (tuple, list)):
            self.dropped += 1
            return
        attempt = self.attempt
        line = f"{self._heads[stream]}{offset}."
        for k, entry in enumerate(entries):
            kind = type(entry)
            shape = _SHAPES.get(kind)
            if shape is None or not shape(entry):
                self._other(entry, records)
                continue
            if self._open and stream == "stdout" and self._grow(entry, records):
                continue
            own = _filled(
                entry,
                id=f"{line}{k}" if k else line + "0",
                seq=self._seq,
                attempt=attempt,
                stream=stream,
                offset=offset,
            )
            if kind is ToolResult:
                self._pair(own)
            elif kind is ToolCall:
                if replaced := self._call(own):
                    records.append(replaced)
                    continue
            elif (kind is Assistant or kind is Thinking) and own.delta:
                self._open[(kind, own.parent_tool_use_id)] = own.id
            self._seq += 1
            records.append(EntryRecord(entry=own))

    def _other(self, thing: object, records: list[Record]) -> None:
        """What is no entry: usage of a model call, or nothing that anybody could show."""
        if type(thing) is SpentRecord and type(thing.usage) is Usage:
            records.append(thing)
        else:
            self.dropped += 1

    def _grow(self, entry: Entry, records: list[Record]) -> bool:
        """Add a delta to the text that is open for its kind and sub-agent; close other texts."""
        if isinstance(entry, _GROWING) and entry.delta:
            grown = self._open.get((type(entry), entry.parent_tool_use_id))
            if grown is not None:
                records.append(AppendRecord(id=grown, text=entry.text))
                return True
        for other in (Assistant, Thinking):
            self._open.pop((other, entry.parent_tool_use_id), None)
        return False

    def _call(self, call: ToolCall) -> ReplaceRecord | None:
        """Remember an open call; a second state of the same plan replaces the first."""
        if call.tool_use_id is None:
            return None
        self._calls[call.tool_use_id] = (call.ts, call.name)
        if call.tool_kind != "todo":
            return None
        if call.tool_use_id in self._todo:
            first, seq = self._todo[call.tool_use_id]
            _set(call, "id", first)
            _set(call, "seq", seq)
            return ReplaceRecord(id=first, entry=call)
        self._todo[call.tool_use_id] = (call.id, self._seq)
        return None

    def _pair(self, result: ToolResult) -> None:
        """Give a result its call's name and the time it took, where the parser did not."""
        call = self._calls.pop(result.tool_use_id, None)
        if call is None:
            return
        if result.tool_name is None:
            _set(result, "tool_name", call[1])
        if result.duration_ms is None:
            _set(result, "duration_ms", _milliseconds_between(call[0], result.ts))


def _is_parsed(stream: Stream, line: Line) -> bool:
    """Whether a line reaches the parser at all."""
    if not line[1]:
        return False
    return stream == "stderr" or not (line[3] or line[1].startswith(HOST_NOTICES))


def _milliseconds_between(begin: str, end: str) -> int | None:
    if begin == end:
        return 0
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    except ValueError:
        return None
    return max(0, round(took.total_seconds() * 1000))
