"""A real agent CLI under the real `binderclip run`, in a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.entry import Entry, Record, apply
from binderclip.sdk.testing.scripted_model import ScriptedModel, Turn
from tests.live.install import known, search_path
from tests.live.runtimes import Runtime

PROGRAM = (sys.executable, "-c", "from binderclip.cli import main; main()")
SECONDS = 100


class Ran:
    """A run that is over: what `run --json` printed, and its exit code."""

    def __init__(self, code: int, lines: list[dict[str, Any]], stderr: str) -> None:
        self.code = code
        self.stderr = stderr
        told = [line for line in lines if line["type"] in ("entry", "append", "replace")]
        records = [msgspec.convert(line, Record) for line in told]
        self.entries: list[Entry] = apply([], records)
        self.notices = [line["text"] for line in lines if line["type"] == "notice"]
        self.states = [line["status"] for line in lines if line["type"] == "status"]
        self.run_id = next((line["runId"] for line in lines if line["type"] == "status"), "")
        last = lines[-1] if lines else {}
        self.result: dict[str, Any] = last.get("result") or {}
        self.coverage: dict[str, int] = last.get("coverage") or {}

    def of(self, kind: type) -> list[Any]:
        """The entries of one kind."""
        return [entry for entry in self.entries if isinstance(entry, kind)]

    @property
    def usage(self) -> dict[str, int | None] | None:
        told = self.result.get("usage")
        return {key: value for key, value in told.items() if key != "source"} if told else None

    @property
    def error(self) -> tuple[str | None, str | None]:
        return self.result.get("errorCode"), self.result.get("errorFamily")

    def __repr__(self) -> str:
        return f"exit {self.code}, {self.states}, {self.result}, {self.coverage}, {self.stderr}"


class Agent:
    """One CLI with a scratch HOME, workspace and data directory."""

    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime = runtime
        self.folder = folder
        self.work = folder / "work"
        self.home = folder / "home"
        self.work.mkdir(parents=True)
        self._running: list[subprocess.Popen[bytes]] = []

    def model(self, *turns: Turn) -> ScriptedModel:
        """A model that says these turns; `{cwd}` in them is the workspace."""
        return ScriptedModel(list(turns), values={"cwd": str(self.work)})

    def run(self, model: ScriptedModel, *words: str, **options: Any) -> Ran:
        """Run it to its end."""
        return self.end(self.start(model, *words, **options))

    def start(
        self, model: ScriptedModel, *words: str, env: dict[str, str | None] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start `binderclip run`; its output goes to files."""
        self.home.mkdir(exist_ok=True)
        self.runtime.prepare(self.home, model.url)
        number = len(self._running)
        argv = [*PROGRAM, "run", "--json", "--adapter", self.runtime.adapter]
        with self._file(number, "out").open("wb") as out, self._file(number, "err").open("wb") as e:
            process = subprocess.Popen(
                [*argv, *self._config(), *words],
                cwd=self.work,
                env=self._env(model.url, env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=e,
            )
        self._running.append(process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> Ran:
        """Wait for a run that was started."""
        code = process.wait(SECONDS)
        number = self._running.index(process)
        lines = self._file(number, "out").read_bytes().split(b"\n")
        told = [json.loads(line) for line in lines if line]
        return Ran(code, told, self._file(number, "err").read_text("utf-8", "replace"))

    def interrupt(self, process: subprocess.Popen[bytes]) -> Ran:
        """What Ctrl-C does, and the run that comes of it."""
        process.send_signal(signal.SIGINT)
        return self.end(process)

    def lose_home(self) -> None:
        """From now on the CLI has an empty home: it knows no session any more."""
        self.home = self.folder / f"home-{len(self._running)}"

    def stop(self) -> None:
        """End what a failed test left behind."""
        for process in self._running:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(30)

    def _file(self, number: int, name: str) -> Path:
        return self.folder / f"{number}.{name}"

    def _config(self) -> list[str]:
        words: list[str] = []
        for key, value in self.runtime.config.items():
            words += ["--config", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        return words

    def _env(self, url: str, other: dict[str, str | None]) -> dict[str, str]:
        """Nothing of the machine but its programs: no key or setting of a person gets in."""
        env: dict[str, str | None] = {
            "PATH": search_path(self.runtime.name),
            "HOME": str(self.home),
            "BINDERCLIP_HOME": str(self.folder / "data"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **self.runtime.env(url),
            **other,
        }
        return {name: value for name, value in env.items() if value is not None}


def alive(run_id: str) -> list[str]:
    """Processes of a run, found by the run id in their environment."""
    mark = f"PAPERCLIP_RUN_ID={run_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def missing(runtime: Runtime) -> str | None:
    """What `script/clis` has to install before this runtime can be tested."""
    clis = known()
    absent = [name for name in (runtime.name, "node") if not clis[name].is_there()]
    return f"{', '.join(absent)} not installed: run script/clis" if absent else None
