"""A server on a data directory of its own, and runs told by the teller."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import httpx

from tests.browser.stories import Line, write_story

TELLER = Path(__file__).with_name("teller.py")
_PROGRAM = [sys.executable, "-c", "from binderclip.cli import main; main()"]
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class Stage:
    """Where runs happen and are looked at."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.cwd = folder / "orders"
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.env = os.environ | {"BINDERCLIP_HOME": str(self.home), "NO_COLOR": "1"}
        self.address = ""
        self._server: subprocess.Popen[str] | None = None
        self._stories = 0

    def open(self, port: int = 0) -> None:
        """Start the server; returns once it listens."""
        self._server = subprocess.Popen(
            [*_PROGRAM, "up", "--port", str(port)],
            stdout=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.cwd,
        )
        assert self._server.stdout is not None
        told = self._server.stdout.readline()
        found = re.search(r"http://[^\s/]+", told)
        assert found, told
        self.address = found[0]

    def close(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            self._server.wait(20)
            assert self._server.stdout is not None
            self._server.stdout.close()
            self._server = None

    def tell(
        self, story: Iterable[Line], prompt: str = "Tell a story", *, live: bool = False
    ) -> str:
        """Run a story to its end, or only start it; the id of its run."""
        self._stories += 1
        file = write_story(self.folder / f"story-{self._stories}.jsonl", story)
        words = [
            "run",
            "--adapter",
            str(TELLER),
            "--config",
            f"file={file}",
            "--cwd",
            str(self.cwd),
        ]
        words += ["--detach"] if live else ["--json"]
        return self.call(*words, prompt)

    def call(self, *words: str) -> str:
        """Call the program and find the id of the run that it tells of."""
        before = self._known()
        subprocess.run(
            [*_PROGRAM, *words], env=self.env, cwd=self.cwd, capture_output=True, timeout=110
        )
        (fresh,) = self._known() - before
        return fresh

    def listed(self, run: str) -> str:
        """Wait until the server's list holds a run that somebody else drove."""
        deadline = time.monotonic() + 20
        while run not in httpx.get(f"{self.address}/api/runs?limit=200").text:
            assert time.monotonic() < deadline, f"run {run} is not listed"
            time.sleep(0.05)
        return run

    def _known(self) -> set[str]:
        return {path.name for path in (self.home / "runs").glob("*/*") if _ID.fullmatch(path.name)}
