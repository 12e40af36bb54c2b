"""A run whose agent keeps an account of itself, and what a test can ask and do about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BINDERCLIP = str(Path(sys.executable).with_name("binderclip"))
ADAPTER = str(Path(__file__).with_name("counting_adapter.py"))
PATIENCE = 60


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for a fact; the limit is only there so that a broken test ends."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)


class Account:
    """One run through `binderclip`, with the agent's own record beside it."""

    def __init__(self, tmp_path: Path) -> None:
        self.place = tmp_path / "account"
        self.place.mkdir()
        self.home = tmp_path / "home"
        self.env = {**os.environ, "BINDERCLIP_HOME": str(self.home), "NO_COLOR": "1"}
        self.started: list[subprocess.Popen[bytes]] = []

    def cli(self, *words: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start `binderclip` with these words, in a session of its own."""
        process = subprocess.Popen(
            [*prefix, BINDERCLIP, *words] if not prefix else [*prefix, *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, lines: int = 200, gates: int = 1, prefix: tuple[str, ...] = (), **extra: str):
        settings = {"place": str(self.place), "lines": lines, "gates": gates, **extra}
        config = [part for key in settings for part in ("--config", f"{key}={settings[key]}")]
        return self.cli("run", "--adapter", ADAPTER, *config, "count", prefix=prefix)

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            [BINDERCLIP, *words], env=self.env, capture_output=True, timeout=PATIENCE, check=False
        )
        assert done.returncode in (0, 1), done.stderr.decode()
        return done.stdout.decode()

    def at_gate(self, gate: int = 1) -> None:
        """Wait until the agent waits, and the supervisor has caught up with it."""
        until((self.place / f"at{gate}").exists, f"the agent reaches gate {gate}")
        until(lambda: self.log() == self.witness(), "the log holds what the agent wrote")

    def open_gate(self, gate: int = 1) -> None:
        (self.place / f"go{gate}").touch()

    def finished(self) -> None:
        until((self.place / "finished").exists, "the agent finishes")

    @property
    def directory(self) -> Path:
        (found,) = self.home.glob("runs/*/*")
        return found

    @property
    def run_id(self) -> str:
        return self.directory.name

    @property
    def attempt(self) -> Path:
        return self.directory / "attempt-1"

    def meta(self) -> dict:
        return json.loads((self.attempt / "meta.json").read_text())

    def outcome(self) -> dict:
        return json.loads((self.directory / "outcome.json").read_text())

    def log(self) -> bytes:
        path = self.attempt / "stdout.log"
        return path.read_bytes() if path.exists() else b""

    def witness(self) -> bytes:
        path = self.place / "witness"
        return path.read_bytes() if path.exists() else b""

    def starts(self) -> int:
        path = self.place / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def transcript(self) -> list[str]:
        lines = (self.attempt / "transcript.jsonl").read_text().splitlines()[1:]
        entries = [json.loads(line)["entry"] for line in lines]
        return [entry["text"] for entry in entries if entry["kind"] == "assistant"]

    def living(self) -> list[int]:
        """Processes that carry the run's id in their environment."""
        marker = f"PAPERCLIP_RUN_ID={self.run_id}".encode()
        return [pid for pid in pids() if marker in environment(pid).split(b"\0")]

    def supervisor_alive(self) -> bool:
        return Path(f"/proc/{self.meta()['supervisor']['pid']}").exists()

    def list_until_over(self) -> str:
        """`runs`, until the run's record is finished; the run's state."""
        until(
            lambda: bool(self.ask("runs")) and (self.directory / "outcome.json").exists(),
            "runs finishes the record",
        )
        return self.outcome()["state"]

    def assert_whole(self, count: int) -> None:
        """Nothing lost, nothing doubled, nothing left alive."""
        assert self.log() == self.witness()
        assert self.transcript() == [str(n) for n in range(1, count + 1)]
        assert self.starts() == 1
        until(lambda: self.living() == [], "no process of the run is left")
        until(lambda: not self.supervisor_alive(), "the supervisor has ended")


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def kill_pid(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: not _running(pid), f"{pid} is dead")


def _running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    account = Account(tmp_path)
    yield account
    for process in account.started:
        if process.poll() is None:
            process.kill()
        if process.stdout and not process.stdout.closed:
            process.communicate()
    for directory in account.home.glob("runs/*/*"):
        marker = f"PAPERCLIP_RUN_ID={directory.name}".encode()
        for pid in pids():
            if marker in environment(pid).split(b"\0"):
                os.kill(pid, signal.SIGKILL)
