"""A real server on a home of its own, and ways to ask it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from binderclip.contract.run import TERMINAL_STATES
from binderclip.server.tokens import Tokens
from binderclip.store.database import Database
from binderclip.store.home import Home

UP = "from binderclip.cli import main; main()"


class Served:
    """One server process and its home."""

    def __init__(self, home: Home, process: subprocess.Popen[str], address: str) -> None:
        self.home = home
        self.process = process
        self.address = address
        self.client = httpx.Client(base_url=address, timeout=30)
        self.tokens = Tokens(home)
        self.person = {"authorization": f"Bearer {self.tokens.person}"}

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return self.ask("GET", path, status, **options)

    def post(self, path: str, body: Any = None, status: int | None = None, **options: Any) -> Any:
        return self.ask("POST", path, status, json=body, **options)

    def ask(self, method: str, path: str, status: int | None = 200, **options: Any) -> Any:
        response = self.client.request(method, path, **options)
        if status is None:
            assert response.status_code < 300, response.text
        else:
            assert response.status_code == status, response.text
        return response.json() if response.content else None

    def agent(self, name: str, script: str, **more: Any) -> str:
        """An agent that runs a shell script."""
        config = {"command": "sh", "args": ["-c", script], "cwd": str(self.home.path.parent)}
        body = {"name": name, "adapterType": "process", "adapterConfig": config, **more}
        made: str = self.post("/api/agents", body, 201)["id"]
        return made

    def ended(self, run_id: str, seconds: float = 60) -> Any:
        """The run once it is over."""
        deadline = time.monotonic() + seconds
        with self.client.stream("GET", f"/api/runs/{run_id}/stream") as stream:
            for line in stream.iter_lines():
                assert time.monotonic() < deadline, "the run did not end"
                if line == "event: end":
                    break
        view = self.get(f"/api/runs/{run_id}")
        assert view["status"] in TERMINAL_STATES
        return view

    def ran(self, script: str) -> Any:
        """A finished run of a shell script, started by a wake."""
        agent = self.agent(f"agent {time.monotonic_ns()}", script)
        return self.ended(self.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"])

    def stop(self) -> str:
        """End the server as Ctrl-C does; what it said."""
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.communicate(timeout=30)[0]
        finally:
            self.process.kill()


def started(home: Path, *options: str, env: dict[str, str] | None = None) -> Served:
    """Start a server and wait until it listens."""
    env = {**(os.environ if env is None else env), "BINDERCLIP_HOME": str(home)}
    process = subprocess.Popen(
        [sys.executable, "-c", UP, "up", "--port", "0", *options],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if " is up at " not in line:
        process.kill()
        raise AssertionError(line + process.communicate()[0])
    address = json.loads((home / "server.json").read_text())["address"]
    return Served(Home(home), process, address)


@contextmanager
def serving(home: Path, *options: str, env: dict[str, str] | None = None) -> Iterator[Served]:
    served = started(home, *options, env=env)
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the tests of a module."""
    with serving(tmp_path_factory.mktemp("served") / "home") as server:
        yield server


@pytest.fixture
def database(served: Served) -> Iterator[Database]:
    """The server's database, for what no route does."""
    with Database.open(served.home) as opened:
        yield opened


@pytest.fixture
def waiting() -> Callable[[Callable[[], Any]], Any]:
    """Ask until there is an answer."""

    def wait(ask: Callable[[], Any], seconds: float = 30) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := ask()):
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.02)
        return found

    return wait
