"""`binderclip worker`: a worker without a server, one for each home (design 6)."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import Cli
from tests.faults.conftest import until
from tests.server.conftest import serving


@contextmanager
def working(cli: Cli) -> Iterator[subprocess.Popen[bytes]]:
    process = cli.start("worker")
    try:
        assert process.stdout is not None
        assert b"Working on" in process.stdout.readline()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_a_worker_runs_what_is_woken_and_needs_no_server(cli: Cli) -> None:
    cli("agents", "create", "Ada", "--adapter", "process", "--config", "command=true")
    with working(cli):
        woken = cli("agents", "wake", "Ada").stdout
        assert "next `binderclip up`" not in woken
        until(lambda: bool(list(cli.home.path.glob("runs/*/*/run.json"))), "the run starts")
        assert cli("watch", woken.split()[1]).returncode == 0
    (run,) = json.loads(cli("runs", "--json").stdout)
    assert run["status"] == "succeeded"


def test_a_home_has_one_worker(cli: Cli) -> None:
    with working(cli):
        assert "works on" in cli("worker", code=1).stderr
        assert "works on" in cli("up", "--port", "0", code=1).stderr
    with serving(cli.home.path):
        assert "works on" in cli("worker", code=1).stderr


def test_a_worker_that_ends_leaves_its_agents_working(cli: Cli) -> None:
    words = ("--config", "command=sleep", "--config", 'args=["600"]')
    cli("agents", "create", "Ada", "--adapter", "process", *words)
    with working(cli) as process:
        short = json.loads(cli("agents", "wake", "Ada", "--json").stdout)["runId"][-8:]
        assert process.stdout is not None
        meta = f"runs/*/*{short}/attempt-1/meta.json"
        until(lambda: bool(list(cli.home.path.glob(meta))), "the agent works")
        process.send_signal(signal.SIGINT)
        told = process.stdout.read().decode()
    assert f"Agents work on: {short}" in told
    assert process.returncode == 0


def test_a_signal_ends_a_worker_whichever_thread_the_kernel_hands_it_to(cli: Cli) -> None:
    with working(cli) as process:
        threads = sorted(int(entry.name) for entry in Path(f"/proc/{process.pid}/task").iterdir())
        other = next(thread for thread in threads if thread != process.pid)
        assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGINT) == 0
        assert process.wait(60) == 0
