"""Stands for an agent that runs on another machine: prints what it prints, ends as it ends.

The supervisor here treats it like the agent itself. It holds no state but how much it has printed:
when the connection is lost it comes back and goes on there.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from binderclip.workspaces.far import Refusal, Unreachable
from binderclip.workspaces.remote_runs import BEAT_SEC
from binderclip.workspaces.ssh import Ssh

SILENCE_SEC = 30.0
GRACE_SEC = 20.0
"""What the supervisor here waits longer than the one over there."""
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
UNREACHABLE = 255


@dataclass(frozen=True)
class RemoteRun:
    """An attempt that runs elsewhere: everything the relay is told, on its standard input."""

    ssh: Ssh
    attempt_dir: str
    launch: dict[str, Any]
    scratch: str | None = None
    """A directory here that the agent needs there."""
    api_port: int | None = None
    """The port of the guarded listener that the agent may reach (W6)."""
    patience_sec: float = 600.0

    def to_json(self) -> bytes:
        fields = {**vars(self), "ssh": self.ssh.to_json()}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, data: bytes) -> RemoteRun:
        fields = json.loads(data)
        return cls(**{**fields, "ssh": Ssh.from_json(fields["ssh"])})


class Relay:
    """One attempt, seen from here."""

    def __init__(self, run: RemoteRun) -> None:
        self._run = run
        self._offsets = {"o": 0, "e": 0}
        self._port = 0
        self._stop: str | None = None
        self._told_stop = False
        self._seen = time.monotonic()

    def work(self) -> int:
        """Start the agent there and stay until it ends; tells our exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        failures = 0
        while True:
            try:
                self._start()
                exit = self._follow()
            except Unreachable as problem:
                exit = None
                self._notice(f"{problem.message} Trying again.") if not failures else None
            except Refusal as problem:
                self._notice(problem.message)
                return 127
            if exit is not None:
                return self._end(exit)
            if time.monotonic() - self._seen > self._run.patience_sec:
                self._notice(f"The connection to {self._run.ssh.name} stayed lost; giving up.")
                return UNREACHABLE
            if self._stop and failures > len(_PAUSES):
                return UNREACHABLE
            time.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1

    def _start(self) -> None:
        far = self._run.ssh.far()
        asked = dict(self._run.launch)
        if self._run.api_port is not None:
            self._port = self._run.ssh.reverse(self._run.api_port, self._port)
            url = f"http://127.0.0.1:{self._port}"
            asked["env"] = {**asked["env"], "PAPERCLIP_API_URL": url}
        with TemporaryDirectory(prefix="binderclip-") as folder:
            body = _packed(self._run.scratch, Path(folder) / "scratch.tar")
            told = far.ask("launch", body, attemptDir=self._run.attempt_dir, **asked)
        self._seen = time.monotonic()
        if "problem" in told:
            raise Refusal(f"The agent was not started: {told['problem']}.", "Refused")

    def _follow(self) -> dict[str, Any] | None:
        """Print what comes; the agent's end, or None if the connection ended before."""
        process = subprocess.Popen(
            self._run.ssh.follower(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            return self._read(process)
        finally:
            process.kill()
            process.communicate()

    def _read(self, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        assert process.stdin and process.stdout
        asked = {"verb": "follow", "attemptDir": self._run.attempt_dir}
        offsets = {"stdout": self._offsets["o"], "stderr": self._offsets["e"]}
        buffer, beat, heard = b"", 0.0, time.monotonic()
        if not _say(process, json.dumps({**asked, **offsets}).encode() + b"\n"):
            return None
        while time.monotonic() - heard < SILENCE_SEC:
            if time.monotonic() - beat > BEAT_SEC:
                beat = time.monotonic()
                if not _say(process, b"."):
                    return None
            self._pass_on_stop()
            if not select.select([process.stdout], [], [], 0.5)[0]:
                continue
            data = os.read(process.stdout.fileno(), 1 << 18)
            if not data:
                return None
            heard = self._seen = time.monotonic()
            buffer, exit = self._print(buffer + data)
            if exit is not None:
                return exit
        return None

    def _print(self, buffer: bytes) -> tuple[bytes, dict[str, Any] | None]:
        """Print all whole frames; what is left, and the agent's end if it was among them."""
        while True:
            line, newline, rest = buffer.partition(b"\n")
            if not newline:
                return buffer, None
            head = json.loads(line)
            if "exit" in head:
                return rest, head["exit"]
            size = head.get("bytes", 0)
            if len(rest) < size:
                return buffer, None
            if size:
                _write(1 if head["stream"] == "o" else 2, rest[:size])
                self._offsets[head["stream"]] += size
            buffer = rest[size:]

    def _asked_to_stop(self, number: int, _frame: object) -> None:
        self._stop = signal.Signals(number).name

    def _pass_on_stop(self) -> None:
        if self._stop and not self._told_stop:
            self._run.ssh.far().ask(
                "cancel",
                attemptDir=self._run.attempt_dir,
                by="binderclip",
                reason=f"asked to end by {self._stop}",
                kill=False,
            )
            # Only now: a wish that did not arrive is told again over the next connection.
            self._told_stop = True

    def _end(self, exit: dict[str, Any]) -> int:
        error = exit.get("error")
        if error:
            self._notice(str(error.get("message")))
        if exit["reason"] == "cancelled" and not self._stop:
            self._notice(f"The run was ended over there: {(exit['cancel'] or {}).get('reason')}.")
        if exit["signal"]:
            number = getattr(signal.Signals, exit["signal"], signal.SIGKILL)
            signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
            os.kill(os.getpid(), number)
        return 127 if exit["exitCode"] is None else int(exit["exitCode"])

    def _notice(self, text: str) -> None:
        _write(2, f"[binderclip] {text}\n".encode())


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _say(process: subprocess.Popen[bytes], data: bytes) -> bool:
    assert process.stdin
    try:
        process.stdin.write(data)
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return True


def _packed(scratch: str | None, path: Path) -> Path | None:
    if scratch is None or not any(Path(scratch).iterdir()):
        return None
    # Links lead to files of this machine, so their targets travel.
    with tarfile.open(path, mode="w", dereference=True) as archive:
        archive.add(scratch, arcname=".")
    return path


def command() -> tuple[str, ...]:
    """The command line of a relay; what it needs to know is on its standard input."""
    return (sys.executable, "-P", "-m", "binderclip.workspaces.relay")


def encoded(stdin: bytes | None) -> str | None:
    """Standard input of the agent, as the outpost takes it."""
    return None if stdin is None else base64.b64encode(stdin).decode()


if __name__ == "__main__":
    sys.exit(Relay(RemoteRun.from_json(sys.stdin.buffer.read())).work())
