"""A data directory of its own for each test, and ways to call the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.runs.execute import cancel
from binderclip.store.home import Home
from binderclip.supervisor.launch import attempt_state, read_exit

SPEAKER = str(Path(__file__).with_name("speaker.py"))


class Cli:
    """The real program on a data directory of its own."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = Home(home)
        self.cwd = cwd
        self.env = {
            name: value
            for name, value in os.environ.items()
            if name not in ("NO_COLOR", "COLUMNS", "TERM")
        }
        self.env |= {"BINDERCLIP_HOME": str(home), "TERM": "xterm-256color"}

    def argv(self, *words: str) -> list[str]:
        code = "from binderclip.cli import main; main()"
        return [sys.executable, "-c", code, *words]

    def __call__(
        self, *words: str, code: int | None = 0, given: bytes = b"", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Call it to its end; `code` is the exit code that is expected."""
        done = subprocess.run(
            self.argv(*words),
            input=given,
            capture_output=True,
            env=self.env | env,
            cwd=self.cwd,
            timeout=100,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert code is None or done.returncode == code, f"{done.returncode}: {out}\n{err}"
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
            cwd=self.cwd,
        )

    def json_lines(self, *words: str, code: int | None = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*words, code=code).stdout.splitlines()]

    def newest(self) -> str:
        return next(self.home.run_ids())


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    work = tmp_path / "work"
    work.mkdir()
    made = Cli(tmp_path / "home", work)
    yield made
    # An agent that a failed test left behind must not outlive it.
    for run_id in made.home.run_ids():
        for number in made.home.attempts(run_id):
            directory = made.home.attempt_dir(run_id, number)
            if attempt_state(str(directory)) != "finished":
                cancel(directory, by="test", reason="the test is over", kill=True)


@pytest.fixture
def said(tmp_path: Path) -> Callable[..., str]:
    """Write entries to a file for the speaker to print."""

    def write(*entries: dict[str, Any]) -> str:
        path = tmp_path / "entries.jsonl"
        lines = [json.dumps({"ts": "2026-01-01T00:00:00.000Z", **entry}) for entry in entries]
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return write


def ended(cli: Cli, run_id: str) -> bool:
    """Whether the run's agent has ended."""
    return read_exit(str(cli.home.attempt_dir(run_id, 1))) is not None
