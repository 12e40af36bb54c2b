"""Watching a run from anywhere on this machine, by reading its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from binderclip.contract.entry import Record
from binderclip.contract.errors import RunBusy
from binderclip.contract.run import StateChange
from binderclip.runs.driver import Listener, is_driven
from binderclip.runs.recover import LoadAdapter, take_over
from binderclip.runs.transcript import TRANSCRIPT
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, read_outcome
from binderclip.store.transcripts import TranscriptReader
from binderclip.store.watch import shared

SAFETY_SECONDS = 1.0


def watch(home: Home, run_id: str, load: LoadAdapter, listener: Listener) -> RunOutcome:
    """Show a run until it is over; drives it if nobody else does."""
    shown = _Shown(listener)
    while True:
        outcome = _read_along(home, run_id, shown)
        if outcome is not None:
            return outcome
        try:
            return take_over(home, run_id, load, _Rest(shown))
        except RunBusy:
            continue


class _Shown:
    """Counts what a listener has seen, since records come again in the same order."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.count = 0

    def records(self, records: Sequence[Record]) -> None:
        self.count += len(records)
        self.listener.records(records)


class _Rest(Listener):
    """Hands on only what the listener has not seen yet."""

    def __init__(self, shown: _Shown) -> None:
        self._shown = shown
        self._skip = shown.count

    def state(self, change: StateChange) -> None:
        self._shown.listener.state(change)

    def attempt(self, directory: Path) -> None:
        self._shown.listener.attempt(directory)

    def notice(self, text: str) -> None:
        self._shown.listener.notice(text)

    def records(self, records: Sequence[Record]) -> None:
        skipped = min(self._skip, len(records))
        self._skip -= skipped
        if skipped < len(records):
            self._shown.records(records[skipped:])


def _read_along(home: Home, run_id: str, shown: _Shown) -> RunOutcome | None:
    """Follow the driver's transcript; None when the driver is gone before the run is over."""
    rest = _Rest(shown)
    readers: list[TranscriptReader] = []
    with shared().watch(home.run_dir(run_id)) as watch:
        while True:
            # Asked in this order: what is over has its whole transcript on disk already.
            outcome = read_outcome(home, run_id)
            driven = is_driven(home, run_id)
            for number in home.attempts(run_id)[len(readers) :]:
                directory = home.attempt_dir(run_id, number)
                shown.listener.attempt(directory)
                readers.append(TranscriptReader(directory / TRANSCRIPT))
                watch.add(directory / TRANSCRIPT, directory)
            rest = _hand_on(readers, rest, shown)
            if outcome is not None:
                return outcome
            if not driven:
                return None
            watch.wait(SAFETY_SECONDS)


def _hand_on(readers: list[TranscriptReader], rest: _Rest, shown: _Shown) -> _Rest:
    for reader in readers:
        while True:
            replaced, records = reader.poll()
            if replaced:
                rest = _Rest(shown)
            if not records:
                break
            rest.records(records)
    return rest
