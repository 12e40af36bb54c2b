"""The server: its start and its idling, and how fast a printed line reaches those who watch.

A line carries the time it was printed at; latency is until a viewer has read the event.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from _measure import BINDERCLIP, finish, report, scratch

WATCHED_SECONDS = 10
LINES = 200
STREAMING_RUNS = 100
LOG_LINES = 200_000
_TEXT = re.compile(rb'"text":"([0-9.]+)"')
PRINTER = (
    "import sys,time\n"
    "if len(sys.argv) > 3: open(sys.argv[3]).read()\n"
    "for _ in range(int(sys.argv[1])):\n"
    "    print(time.time(), flush=True)\n"
    "    time.sleep(float(sys.argv[2]))\n"
)


class Up:
    """A server that runs."""

    def __init__(self, home: Path) -> None:
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            [BINDERCLIP, "up", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.address = json.loads((home / "server.json").read_text())["address"]
        httpx.get(f"{self.address}/api/health").raise_for_status()
        self.started = time.perf_counter() - begin
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def memory(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, lines: int, pause: float, gate: Path | None = None) -> str:
        args = ["-c", PRINTER, str(lines), str(pause), *([str(gate)] if gate else [])]
        config = {"command": sys.executable, "args": args, "cwd": "/tmp"}
        body = {"name": str(time.time_ns()), "adapterType": "process", "adapterConfig": config}
        agent = self.client.post("/api/agents", json=body).json()["id"]
        run: str = self.client.post(f"/api/agents/{agent}/wakeup", json={}).json()["runId"]
        return run

    def watch(self, run_id: str) -> None:
        """Read a run's stream to its end."""
        with httpx.stream("GET", f"{self.address}/api/runs/{run_id}/stream", timeout=60) as stream:
            for _ in stream.iter_raw():
                continue


@contextmanager
def up(home: Path) -> Iterator[Up]:
    server = Up(home)
    try:
        yield server
    finally:
        server.client.close()
        server.process.terminate()
        server.process.communicate(timeout=30)


def together(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def latency(server: Up, viewers: int, gate: Path, limit: float | None = None) -> None:
    """Viewers are plain sockets in one thread, so that what is measured is not their parsing."""
    os.mkfifo(gate)
    run_id = server.run(LINES, 0.02, gate)
    host, port = server.address.removeprefix("http://").split(":")
    asked = f"GET /api/runs/{run_id}/stream HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    chosen = selectors.DefaultSelector()
    for _ in range(viewers):
        viewer = socket.create_connection((host, int(port)))
        viewer.sendall(asked)
        chosen.register(viewer, selectors.EVENT_READ)
    gate.write_text("go\n")
    ordered = sorted(_read(chosen, viewers * LINES))
    middle, worst = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    detail = f"p99 {worst * 1000:.1f} ms, {len(ordered)} events"
    report(f"line to viewer, {viewers} viewers, p50 ms", middle * 1000, detail, limit)


def _read(chosen: selectors.BaseSelector, wanted: int) -> list[float]:
    late: list[float] = []
    while len(late) < wanted:
        for key, _ in chosen.select(30):
            assert isinstance(key.fileobj, socket.socket)
            data = key.fileobj.recv(65536)
            now = time.time()
            late += [now - float(text) for text in _TEXT.findall(data)]
    for key in list(chosen.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    return late


def streaming(server: Up) -> None:
    """What the server grows by while many runs print and each is watched."""
    before = server.memory()
    runs = [server.run(80, 0.1) for _ in range(STREAMING_RUNS)]
    together(len(runs), lambda n: server.watch(runs[n]))
    grown = server.memory() - before
    detail = f"while {STREAMING_RUNS} runs stream, each watched; {server.memory():.0f} MB in all"
    report("memory, MB more", grown, detail, limit=100)


def whole_log(server: Up, home: Path) -> None:
    """The log of a long run in one request, against reading its file."""
    run_id = server.run(LOG_LINES, 0)
    server.watch(run_id)
    (log,) = home.glob(f"runs/*/{run_id}/attempt-1/stdout.log")
    begin = time.perf_counter()
    kept = log.read_bytes()
    bare = time.perf_counter() - begin
    begin = time.perf_counter()
    told = server.client.get(f"/api/runs/{run_id}/log")
    taken = time.perf_counter() - begin
    assert told.content == kept, "the log by HTTP is not the file"
    detail = f"{len(kept) / 1e6:.1f} MB, {taken / bare:.0f} times reading the file"
    report("whole log by HTTP, s", taken, detail, limit=0.2)


def main() -> None:
    with scratch() as directory:
        home = directory / "home"
        bare = min(_seconds([sys.executable, "-c", "pass"]) for _ in range(3))
        with up(home) as server:
            _started("first start", server.started, bare, limit=2.0)
        with up(home) as server:
            _started("warm start", server.started, bare, limit=1.0)
            time.sleep(1)
            report("idle memory, MB", server.memory(), "resident", limit=100)
            begin = server.cpu()
            time.sleep(WATCHED_SECONDS)
            percent = 100 * (server.cpu() - begin) / WATCHED_SECONDS
            report("idle CPU, percent of a core", percent, f"over {WATCHED_SECONDS} s", limit=1)
            latency(server, 1, directory / "one", limit=1.5)
            latency(server, 50, directory / "fifty")
            streaming(server)
            whole_log(server, home)
    finish()


def _seconds(words: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(words, check=True)
    return time.perf_counter() - begin


def _started(what: str, seconds: float, bare: float, limit: float) -> None:
    detail = f"{seconds / bare:.0f} times `python -c pass`"
    report(f"{what}, s", seconds, detail, limit)


main()
