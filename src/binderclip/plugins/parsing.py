"""Parsers that live in a process of their own: a plugin's Python parser, or a `ui-parser.js`.

Whatever such a parser does, the run goes on: from its failure on, lines are generic.
"""

from __future__ import annotations

import json
import re
import sys
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from binderclip.contract.entry import Assistant, Entry, Result, SpentRecord
from binderclip.contract.errors import AdapterError, ParserError
from binderclip.plugins.repair import Repair
from binderclip.plugins.rpc import PluginProcess
from binderclip.sdk.env import clean_env
from binderclip.sdk.parser import Facts, Failure, Parsed, Parser

LINES_AT_ONCE = 500
CHARACTERS_AT_ONCE = 1024 * 1024
BATCH_SECONDS = 20.0
LOAD_SECONDS = 20.0
Waiting = tuple[str, str, str]
"""Stream, line, time."""
_HALF = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a surrogate pair: engines write whole ones as the character itself."""


class DistantParser(Parser):
    """Hands lines to a process in batches and keeps its answers until they are asked for."""

    batched = True
    takes_stderr = False

    def __init__(self, process: PluginProcess, *, structured: bool = True) -> None:
        super().__init__()
        self.process = process
        self.broken: str | None = None
        self.structured = structured  # type: ignore[misc]
        self._answers: deque[tuple[Waiting, Any]] = deque()
        self._opened = False
        weakref.finalize(self, process.close)

    def prepare(self, lines: Sequence[Waiting]) -> None:
        """Ask for many lines at once; the same lines are parsed next, one by one."""
        self._answers.clear()
        wanted = [line for line in lines if self.takes_stderr or line[0] == "stdout"]
        for part in _parts(wanted):
            self._answers.extend(zip(part, self._ask(part), strict=False))

    def parse_line(self, line: str, ts: str) -> Sequence[Parsed] | None:
        return self._read(("stdout", line, ts))

    def parse_stderr(self, line: str, ts: str) -> Sequence[Parsed] | None:
        return self._read(("stderr", line, ts)) if self.takes_stderr else None

    def finish(self, ts: str) -> Sequence[Parsed]:
        self.process.close()
        return ()

    def reset(self) -> None:
        self.facts = Facts()
        self.broken = None
        self._opened = False
        self._answers.clear()

    def _read(self, line: Waiting) -> Sequence[Parsed] | None:
        if not self._answers or self._answers[0][0] != line:
            self.prepare([line])
        if not self._answers:
            return None
        _, answer = self._answers.popleft()
        if isinstance(answer, _Broke):
            raise ParserError(answer.reason)
        if isinstance(answer, dict) and set(answer) == {"error"}:
            raise ParserError(str(answer["error"]))
        return self._entries(answer, line[2])

    def _ask(self, lines: list[Waiting]) -> list[Any]:
        if self.broken is not None:
            return []
        try:
            if not self._opened:
                self._open()
                self._opened = True
            answers = self._parse(lines)
            if not isinstance(answers, list) or len(answers) != len(lines):
                raise AdapterError("the parser gave another number of answers than lines")
            return answers
        except AdapterError as problem:
            self._break(problem.message)
            return [_Broke(problem.message)]

    def _break(self, reason: str) -> None:
        self.broken = f"The parser is no longer used in this run: {reason}"
        self.structured = False  # type: ignore[misc]
        self.process.close()

    def _open(self) -> None:
        """Make the process ready for the first line."""

    def _parse(self, lines: list[Waiting]) -> Any:
        raise NotImplementedError

    def _entries(self, answer: Any, ts: str) -> Sequence[Parsed] | None:
        raise NotImplementedError


class JsParser(DistantParser):
    """A `ui-parser.js` in QuickJS; its answers are repaired like those in the browser."""

    def __init__(self, source: str, *, renumber: bool = False, structured: bool = True) -> None:
        super().__init__(js_process(), structured=structured)
        self._source = source
        self._renumber = renumber
        self._repair = Repair(renumber=renumber)
        self.silent = 0
        """Lines for which the parser returned nothing."""

    @property
    def dropped(self) -> int:
        return self._repair.dropped

    def reset(self) -> None:
        super().reset()
        self._repair = Repair(renumber=self._renumber)

    def load(self) -> dict[str, Any]:
        """Load the file into a fresh engine; its exports, or `AdapterError` with the reason."""
        told: dict[str, Any] = self.process.call(
            "load", {"source": self._source}, seconds=LOAD_SECONDS
        )
        return told

    def _open(self) -> None:
        self.load()

    def _parse(self, lines: list[Waiting]) -> Any:
        given = [[line, ts] for _, line, ts in lines]
        answers: list[Any] = []
        # Long answers come in several parts, as in the browser.
        while len(answers) < len(given):
            part = self._part(given[len(answers) :])
            if not part:
                break
            answers += part
        return answers

    def _part(self, given: list[list[str]]) -> list[Any]:
        text = self.process.call("parse", {"lines": given}, seconds=BATCH_SECONDS)
        try:
            whole = _HALF.sub("\\1\ufffd", text) if "\\ud" in text else text
            part = json.loads(whole)
        except (ValueError, TypeError, RecursionError) as problem:
            raise AdapterError("the parser's answers are no JSON") from problem
        return part if isinstance(part, list) else []

    def _entries(self, answer: Any, ts: str) -> Sequence[Entry] | None:
        before = self._repair.dropped
        entries = self._repair.entries(answer, ts)
        self.silent += not entries
        for entry in entries:
            self._note(entry)
        # Whoever builds the transcript counts what is no entry.
        return [*entries, *[None] * (self._repair.dropped - before)]  # type: ignore[list-item]

    def _note(self, entry: Entry) -> None:
        if not isinstance(entry, Result | Assistant) or entry.parent_tool_use_id:
            return
        self.facts.final_text = entry.text or self.facts.final_text


class PythonParser(DistantParser):
    """A Python plugin's own parser, in the plugin's environment."""

    takes_stderr = True

    def reset(self) -> None:
        super().reset()
        self._fresh = True

    def __init__(self, process: PluginProcess, *, structured: bool = True) -> None:
        super().__init__(process, structured=structured)
        self._fresh = True

    def finish(self, ts: str) -> Sequence[Parsed]:
        if self.broken is not None or not self._opened:
            self.process.close()
            return ()
        try:
            told = self.process.call("finish", {"ts": ts}, seconds=BATCH_SECONDS)
        except AdapterError as problem:
            self._break(problem.message)
            return ()
        self.process.close()
        self.facts = _facts(told.get("facts") if isinstance(told, dict) else None)
        return self._entries(told.get("entries"), ts) or ()

    def _parse(self, lines: list[Waiting]) -> Any:
        given = {"lines": [list(line) for line in lines], "fresh": self._fresh}
        self._fresh = False
        return self.process.call("parse", given, seconds=BATCH_SECONDS)

    def _entries(self, answer: Any, ts: str) -> Sequence[Parsed] | None:
        if answer is None:
            return None
        try:
            if isinstance(answer, list) and any(map(_is_spent, answer)):
                return [_parsed(each) for each in answer]
            return msgspec.convert(answer, list[Entry])
        except msgspec.ValidationError as problem:
            raise ParserError(f"the parser gave something that is no entry: {problem}") from problem


def _is_spent(each: Any) -> bool:
    return isinstance(each, dict) and each.get("type") == "spent"


def _parsed(each: Any) -> Parsed:
    return msgspec.convert(each, SpentRecord if _is_spent(each) else Entry)


class _Broke:
    """The answer to the line at which a parser's process failed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _parts(lines: Sequence[Waiting]) -> Iterator[list[Waiting]]:
    """Lines in batches that an engine has room for; a longer line is a batch of its own."""
    part: list[Waiting] = []
    size = 0
    for line in lines:
        if part and (len(part) >= LINES_AT_ONCE or size + len(line[1]) > CHARACTERS_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line[1])
    if part:
        yield part


def js_process() -> PluginProcess:
    argv = [sys.executable, "-P", "-m", "binderclip.plugins.js_host"]
    return PluginProcess("ui-parser", argv, clean_env({}))


def _facts(told: Any) -> Facts:
    if not isinstance(told, dict):
        return Facts()
    failure = told.pop("failure", None)
    try:
        facts = msgspec.convert(told, Facts)
        facts.failure = msgspec.convert(failure, Failure) if failure else None
    except msgspec.ValidationError:
        return Facts()
    return facts
