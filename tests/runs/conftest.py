"""Runs driven in this process, with everything that happened kept for the test."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import Entry, Record, apply
from binderclip.contract.run import StateChange
from binderclip.contract.session import ResumeDecision
from binderclip.runs import lifecycle
from binderclip.runs.driver import Drive, Listener
from binderclip.runs.wake import local_order
from binderclip.sdk.adapter import Adapter
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome
from binderclip.store.transcripts import read_transcript
from tests.runs.company import Scene

FRESH = ResumeDecision(action="fresh", reason="a test")


class Heard(Listener):
    """A listener that keeps everything."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.attempts: list[Path] = []
        self.seen: list[Record] = []
        self.notices: list[str] = []

    def state(self, change: StateChange) -> None:
        self.states.append(change.state)

    def attempt(self, directory: Path) -> None:
        self.attempts.append(directory)

    def records(self, records: Sequence[Record]) -> None:
        self.seen.extend(records)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    @property
    def entries(self) -> list[Entry]:
        return apply([], self.seen)

    def texts(self, kind: str = "Assistant") -> list[str]:
        return [
            getattr(entry, "text", "") for entry in self.entries if type(entry).__name__ == kind
        ]


class Ran:
    """A finished run: its outcome, what its listener heard, its files."""

    def __init__(self, drive: Drive, outcome: RunOutcome) -> None:
        self.drive = drive
        self.outcome = outcome
        assert isinstance(drive.listener, Heard)
        self.heard = drive.listener
        self.directory = drive.home.run_dir(drive.run_id)

    @property
    def result(self) -> Any:
        return self.outcome.result

    def log(self, stream: str = "stdout", attempt: int = 1) -> bytes:
        return (self.directory / f"attempt-{attempt}" / f"{stream}.log").read_bytes()

    def stored(self, attempt: int = 1) -> list[Record]:
        return list(read_transcript(self.directory / f"attempt-{attempt}" / "transcript.jsonl"))


class Runs:
    """Starts runs in a home of their own."""

    def __init__(self, home: Home, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd

    def drive(
        self,
        adapter: Adapter,
        prompt: str | None = None,
        session: ResumeDecision = FRESH,
        env: dict[str, str] | None = None,
        **config: Any,
    ) -> Drive:
        order, request = local_order(
            adapter,
            cwd=str(self.cwd),
            prompt=prompt,
            config=config,
            session=session,
            now=time.time(),
        )
        host_env = {"PATH": os.environ["PATH"], **(env or {})}
        return Drive(self.home, order, adapter, request, listener=Heard(), host_env=host_env)

    def run(self, adapter: Adapter, prompt: str | None = None, **options: Any) -> Ran:
        drive = self.drive(adapter, prompt, **options)
        return Ran(drive, lifecycle.run(drive))


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Runs(Home(tmp_path / "home").ensure(), cwd)


@pytest.fixture
def scene(any_home: Home) -> Iterator[Scene]:
    """The control plane on either database."""
    with Database.open(any_home) as database:
        yield Scene(database)
