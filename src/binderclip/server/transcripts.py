"""The transcripts of runs as the API shows them: pages, outline, search, single entries.

A run's attempts are one list of entries; positions count through all of them.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from binderclip.contract.entry import Entry
from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.wire import Wire
from binderclip.server.pages import AttemptIndex
from binderclip.server.survey import Outline, attempt_outline, slowest, tool_totals
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME

MOST_OPEN = 32
_log = logging.getLogger(__name__)
SEARCHED_AT_ONCE = 500
MOST_SEARCHED = 200_000
"""Entries that one request looks at; the next one goes on from there."""
_ENTRY_ID = re.compile(r"([1-9]\d{0,5})([oe])(\d{1,18})\.\w{1,20}")
_STREAMS = {"o": "stdout", "e": "stderr"}


class Match(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """An entry that holds what was looked for, and the words around it."""

    seq: int
    id: str
    kind: str
    excerpt: str


class Matches(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Matches in order; `next` is where a further search begins, null when all was searched."""

    matches: tuple[Match, ...]
    next: int | None
    total: int


class RunTranscript:
    """The entries of one run, whatever its attempts; used under its lock."""

    def __init__(self, home: Home, run_id: str) -> None:
        self.home = home
        self.run_id = run_id
        self.lock = threading.Lock()
        self.attempts: list[AttemptIndex] = []
        self.complete = False
        self.retold = False
        self.readers = 0

    def update(self) -> None:
        """Take in what was written since."""
        # Asked before reading: what is over has its whole transcript on disk already.
        over = (self.home.run_dir(self.run_id) / OUTCOME).exists()
        for number in self.home.attempts(self.run_id)[len(self.attempts) :]:
            directory = self.home.attempt_dir(self.run_id, number)
            self.attempts.append(AttemptIndex(directory, number))
        for index in self.attempts:
            index.update()
            if over:
                index.keep()
        self.complete = over

    def close(self) -> None:
        for index in self.attempts:
            index.close()

    @property
    def total(self) -> int:
        return sum(len(index.starts) for index in self.attempts)

    @property
    def cursor(self) -> str:
        """The id of the last record known, from which a stream goes on."""
        known = [index for index in self.attempts if index.head is not None]
        if not known:
            return "0.0.0"
        return f"{known[-1].attempt}.{known[-1].records}.{known[-1].version}"

    def page(self, first: int, limit: int, *, whole: bool = False) -> list[bytes]:
        """Entries of these positions as JSON."""
        found: list[bytes] = []
        for base, index in self._based():
            begin = max(0, first + len(found) - base)
            end = min(len(index.starts), begin + limit - len(found))
            if begin < end:
                found.extend(index.entries(begin, end, whole=whole))
        return found

    def entry(self, entry_id: str) -> Entry:
        """One entry by its id, with its whole text."""
        match = _ENTRY_ID.fullmatch(entry_id)
        for index in self.attempts if match else ():
            assert match is not None
            if index.attempt == int(match[1]):
                position = index.position(entry_id, _STREAMS[match[2]], int(match[3]))
                if position is not None:
                    return index.entry(position)
        raise RunNotFound(f"Run {self.run_id} has no entry {entry_id}.")

    def outline(self) -> Outline:
        based = [(base, index) for base, index in self._based() if index.head is not None]
        surveys = [(base, index.survey) for base, index in based]
        kinds: dict[str, int] = {}
        for _, survey in surveys:
            for kind, count in survey.kinds.items():
                kinds[kind] = kinds.get(kind, 0) + count
        return Outline(
            total=self.total,
            records=sum(index.records for _, index in based),
            cursor=self.cursor,
            complete=self.complete,
            kinds=kinds,
            error_count=sum(survey.error_count for _, survey in surveys),
            errors=tuple(seq + base for base, survey in surveys for seq in survey.errors),
            attempts=tuple(
                attempt_outline(index.survey, index.attempt, base, index.head.parser, index.version)
                for base, index in based
                if index.head
            ),
            slowest_tools=slowest(surveys),
            tools=tool_totals([survey for _, survey in surveys]),
        )

    def search(self, wanted: str, first: int, limit: int, kinds: frozenset[str]) -> Matches:
        """Entries that hold these words, whatever their case, from a position on."""
        look = _Look(wanted, kinds)
        found: list[Match] = []
        at, total = first, self.total
        while at < min(total, first + MOST_SEARCHED) and len(found) < limit:
            for data in self.page(at, SEARCHED_AT_ONCE, whole=True):
                match = look.match(data, at)
                at += 1
                if match is not None:
                    found.append(match)
                    if len(found) == limit:
                        break
        return Matches(matches=tuple(found), next=at if at < total else None, total=total)

    def _based(self) -> Iterator[tuple[int, AttemptIndex]]:
        base = 0
        for index in self.attempts:
            yield base, index
            base += len(index.starts)


class TranscriptShelf:
    """The transcripts that were asked for last, kept open."""

    def __init__(self, home: Home, retell: Callable[[str], object], most: int = MOST_OPEN) -> None:
        self.home = home
        self._retell = retell
        self._most = most
        self._lock = threading.Lock()
        self._open: OrderedDict[str, RunTranscript] = OrderedDict()

    @contextmanager
    def reading(self, run_id: str) -> Iterator[RunTranscript]:
        """The run's transcript, current, for as long as the block lasts."""
        with self._lock:
            transcript = self._open.pop(run_id, None) or RunTranscript(self.home, run_id)
            self._open[run_id] = transcript
            transcript.readers += 1
            self._shrink()
        try:
            with transcript.lock:
                transcript.update()
                self._mend(transcript)
                yield transcript
        finally:
            with self._lock:
                transcript.readers -= 1

    def close(self) -> None:
        with self._lock:
            for transcript in self._open.values():
                transcript.close()
            self._open.clear()

    def _mend(self, transcript: RunTranscript) -> None:
        """Have a lost transcript made again from the log, once."""
        lost = any(index.head is None for index in transcript.attempts)
        if not lost or not transcript.complete or transcript.retold:
            return
        transcript.retold = True
        try:
            self._retell(transcript.run_id)
        except BinderclipError as problem:
            _log.warning("the transcript of %s stays lost: %s", transcript.run_id, problem.message)
        transcript.update()

    def _shrink(self) -> None:
        """Close what was not asked for lately; one that is being read is left for later."""
        for run_id in list(self._open)[: max(0, len(self._open) - self._most)]:
            if not self._open[run_id].readers:
                self._open.pop(run_id).close()


class _Look:
    """One search: words, whatever their case, in entries of some kinds or of all."""

    def __init__(self, wanted: str, kinds: frozenset[str]) -> None:
        self._pattern = re.compile(re.escape(wanted), re.IGNORECASE)
        self._kinds = kinds
        # What JSON writes as it is can be looked for before anything is decoded.
        plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set('"\\')
        self._raw = re.compile(re.escape(wanted.encode()), re.IGNORECASE) if plain else None

    def match(self, data: bytes, seq: int) -> Match | None:
        if self._raw is not None and not self._raw.search(data):
            return None
        entry = msgspec.json.decode(data)
        kind = entry["kind"]
        if self._kinds and kind not in self._kinds:
            return None
        for text in _texts(entry):
            found = self._pattern.search(text)
            if found:
                excerpt = text[max(0, found.start() - 60) : found.end() + 100]
                return Match(seq=seq, id=entry.get("id", ""), kind=kind, excerpt=excerpt)
        return None


def _texts(value: object) -> Iterator[str]:
    """Every text that an entry holds: what was said, called and answered."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("id", "ts", "kind", "stream"):
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
