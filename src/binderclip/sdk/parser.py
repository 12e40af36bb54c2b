"""Parsers turn the lines of one run into entries, and gather what the runtime told about it.

State belongs to one run; the same lines always give the same entries and facts (T2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from binderclip.contract.entry import Assistant, Entry, SpentRecord, Stderr, Stdout, System
from binderclip.contract.run import ErrorCode, ErrorFamily, Usage, UsageBasis

Parsed: TypeAlias = Entry | SpentRecord
"""What a line may become: entries, and behind them what a model call used."""
HOST_NOTICES = ("[binderclip] ", "[paperclip] ")
_FINAL_LINES = 200
FINAL_LINE_CHARACTERS = 2000
_MOST_SHAPES = 1000


class Failure(msgspec.Struct, frozen=True):
    """Why a run failed, in the runtime's own words."""

    code: ErrorCode
    message: str
    family: ErrorFamily | None = None
    retry_not_before: str | None = None


class Facts(msgspec.Struct):
    """What a runtime told about its run, line by line; the result is computed from it."""

    session_id: str | None = None
    model: str | None = None
    provider: str | None = None
    version: str | None = None
    final_text: str | None = None
    usage: Usage | None = None
    usage_basis: UsageBasis = "per_run"
    cost_usd: float | None = None
    cost_basis: UsageBasis = "per_run"
    ended: Literal["success", "failure"] | None = None
    """The runtime's own end marker; None when it never came."""
    failure: Failure | None = None
    unknown_session: bool = False
    """The runtime itself said that it does not know the session it was asked to resume."""
    result_json: dict[str, Any] = msgspec.field(default_factory=dict)


class Parser:
    """Base of all parsers: understands nothing, so every line becomes generic."""

    structured: ClassVar[bool] = True
    batched: ClassVar[bool] = False
    """Whether `prepare` wants many lines at once, before they are parsed one by one."""

    def __init__(self) -> None:
        self.facts = Facts()

    def prepare(self, lines: Sequence[tuple[str, str, str]]) -> None:
        """Lines that come next, as stream, text and time; for parsers in another process."""

    def parse_line(self, line: str, ts: str) -> Sequence[Parsed] | None:
        """The entries of one stdout line; an empty list if it has none to show.

        None means that the line has no known shape: it is kept, counted and shown raw.
        """
        return None

    def parse_stderr(self, line: str, ts: str) -> Sequence[Parsed] | None:
        """The entries of one stderr line; None leaves it to the generic rule."""
        return None

    def finish(self, ts: str) -> Sequence[Parsed]:
        """Entries for what was still open when the output ended."""
        return ()

    def reset(self) -> None:
        """Forget everything, as before the first line."""
        self.__init__()  # type: ignore[misc]


class GenericParser(Parser):
    """For runtimes without structure: every line is what the agent said (T3)."""

    structured = False

    def __init__(self) -> None:
        super().__init__()
        self.last_lines: deque[str] = deque(maxlen=_FINAL_LINES)

    def parse_line(self, line: str, ts: str) -> Sequence[Entry]:
        self.last_lines.append(line[:FINAL_LINE_CHARACTERS])
        return (Assistant(ts=ts, text=line),)

    def finish(self, ts: str) -> Sequence[Entry]:
        self.facts.final_text = "\n".join(self.last_lines).strip() or None
        return ()


class JsonParser(Parser):
    """For runtimes that print one JSON object a line: override `parse_event`."""

    inner: ClassVar[str] = ""
    """The field whose object tells what an event really is, where the events are envelopes."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[str, ...]] = set()
        """Each shape seen: type, subtype or the inner type, then the keys (for drift alarms)."""
        self._seen: set[tuple[Any, ...]] = set()

    def parse_line(self, line: str, ts: str) -> Sequence[Parsed] | None:
        try:
            event = _decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return self.parse_text(line, ts)
        if type(event) is not dict:
            return self.parse_text(line, ts)
        field = self.inner
        if field and type(inner := event.get(field)) is dict:
            shape = (event.get("type"), inner.get("type"), *event, *inner)
        else:
            shape = (event.get("type"), event.get("subtype"), *event)
        try:
            if shape not in self._seen:
                self._note(shape)
        except TypeError:
            self._note(tuple(map(str, shape)))
        return self.parse_event(event, ts)

    def _note(self, shape: tuple[Any, ...]) -> None:
        if len(self._seen) < _MOST_SHAPES:
            self._seen.add(shape)
            self.shapes.add(tuple(map(str, shape)))

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Parsed] | None:
        """The entries of one event; None if its type is unknown."""
        return None

    def parse_text(self, line: str, ts: str) -> Sequence[Entry] | None:
        """A line that is no JSON object; None keeps it as raw output."""
        return None


def generic_stdout(line: str, ts: str, structured: bool) -> Entry:
    """A stdout line that no parser took (T3)."""
    if line.startswith(HOST_NOTICES):
        return System(ts=ts, text=line)
    return Stdout(ts=ts, text=line) if structured else Assistant(ts=ts, text=line)


def generic_stderr(line: str, ts: str) -> Entry:
    """A stderr line as it is, or a host's notice (T3)."""
    return System(ts=ts, text=line) if line.startswith(HOST_NOTICES) else Stderr(ts=ts, text=line)


_decode = msgspec.json.Decoder().decode
