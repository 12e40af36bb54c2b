"""Watching a run from anywhere on this machine, by reading its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from binderclip.contract.entry import Record
from binderclip.contract.errors import RunBusy
from binderclip.contract.run import StateChange
from binderclip.runs.driver import Listener
from binderclip.runs.recover import LoadAdapter, take_over
from binderclip.store.fileview import is_driven
from binderclip.store.home import Home
from binderclip.store.runfile import OUTCOME, RunOutcome, read_outcome
from binderclip.store.transcripts import NAME, TranscriptReader
from binderclip.store.watch import shared

SAFETY_SECONDS = 1.0


def watch(home: Home, run_id: str, load: LoadAdapter, listener: Listener) -> RunOutcome:
    """Show a run until it is over; drives it if nobody else does."""
    once = _Once(listener)
    while True:
        outcome = _read_along(home, run_id, once)
        if outcome is not None:
            return outcome
        try:
            return take_over(home, run_id, load, once)
        except RunBusy:
            continue


class _Once(Listener):
    """Hands each record on once, however often an attempt is read from its beginning."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._handed_on: Counter[Path] = Counter()
        self._directory = Path()
        self._place = 0

    def state(self, change: StateChange) -> None:
        self._listener.state(change)

    def notice(self, text: str) -> None:
        self._listener.notice(text)

    def finalized(self, home: Home, run_id: str) -> None:
        self._listener.finalized(home, run_id)

    def attempt(self, directory: Path) -> None:
        self._directory = directory
        self._place = 0
        if directory not in self._handed_on:
            self._handed_on[directory] = 0
            self._listener.attempt(directory)

    def records(self, records: Sequence[Record]) -> None:
        known = self._handed_on[self._directory]
        fresh = records[max(0, known - self._place) :]
        self._place += len(records)
        if fresh:
            self._handed_on[self._directory] = self._place
            self._listener.records(fresh)


def _read_along(home: Home, run_id: str, once: _Once) -> RunOutcome | None:
    """Follow the driver's transcripts; None when the driver is gone before the run is over."""
    number = 1
    while _read_attempt(home, run_id, number, once):
        number += 1
    return read_outcome(home, run_id)


def _read_attempt(home: Home, run_id: str, number: int, once: _Once) -> bool:
    """Hand on one attempt's records; true if another follows, false if the reading is over."""
    directory = home.attempt_dir(run_id, number)
    path, following = directory / NAME, home.attempt_dir(run_id, number + 1)
    over = home.run_dir(run_id) / OUTCOME
    with TranscriptReader(path) as reader, shared().watch(path, over, following) as watch:
        while True:
            # Asked before reading: what is over has its whole transcript on disk already.
            ended = over.exists() or not is_driven(home, run_id)
            another = following.is_dir()
            if directory.is_dir():
                _hand_on(reader, directory, once)
            if another or ended:
                return another
            watch.wait(SAFETY_SECONDS)


def _hand_on(reader: TranscriptReader, directory: Path, once: _Once) -> None:
    if not reader.count:
        once.attempt(directory)
    while True:
        reset, records = reader.poll()
        if reset:
            once.attempt(directory)
        if not records:
            return
        once.records(records)
