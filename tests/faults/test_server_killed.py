"""kill -9 of the server at random moments: viewers come back by their last id and miss nothing."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.conftest import Served, started

RUNS = 16
KILLS = 20
PACE = 0.25
"""Seconds between two lines: sixteen agents print at every moment, and leave the machine room."""
MOST_UPTIME = 0.8
SCRIPT = 'i=0; while [ ! -e "{go}" ]; do i=$((i+1)); echo $i; sleep {pace}; done; echo last'


class Viewer(threading.Thread):
    """Follows a run to its end, through every death of the server."""

    def __init__(self, address: str, run_id: str) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.run_id = run_id
        self.records: list[tuple[int, str]] = []
        self.last_id: str | None = None
        self.resets = 0
        self.end: Any = None

    def run(self) -> None:
        with httpx.Client(base_url=self.address, timeout=20) as client:
            while self.end is None:
                try:
                    self._follow(client)
                except httpx.HTTPError:
                    time.sleep(0.1)

    def _follow(self, client: httpx.Client) -> None:
        headers = {"last-event-id": self.last_id} if self.last_id else {}
        path = f"/api/runs/{self.run_id}/stream"
        fields: dict[str, str] = {}
        with client.stream("GET", path, headers=headers) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "data" in fields:
                    self._hear(fields["id"], fields["event"], json.loads(fields["data"]))
                    fields = {}

    def _hear(self, id: str, event: str, data: Any) -> None:
        self.last_id = id
        if event == "reset":
            self.resets += 1
            self.records.clear()
        elif event == "entry" and data["kind"] == "assistant":
            self.records.append((int(id.split(".")[1]), data["text"]))
        elif event == "end":
            self.end = data


def restarted(served: Served) -> Served:
    served.process.kill()
    served.stop()
    port = served.address.rpartition(":")[2]
    return started(served.home.path, "--port", port)


def assert_whole(log: str, viewer: Viewer) -> None:
    """Every line once, in the log as in what the viewer heard."""
    printed = log.splitlines()
    assert len(printed) > KILLS, "it did not print steadily"
    assert printed == [*(str(n) for n in range(1, len(printed))), "last"]
    numbers = [number for number, _ in viewer.records]
    assert numbers == sorted(set(numbers)), "a record number came twice"
    assert [text for _, text in viewer.records] == printed


@pytest.mark.slow
def test_no_line_and_no_run_is_lost_or_doubled_when_the_server_dies(tmp_path: Path) -> None:
    """D1, D9: kill -9, restart, resume by the last id, again and again."""
    dice = random.Random(7)
    served = started(tmp_path / "home")
    try:
        script = SCRIPT.format(go=tmp_path / "go", pace=PACE)
        agents = [served.agent(f"agent {n}", script) for n in range(RUNS)]
        woken = [served.post(f"/api/agents/{agent}/wakeup", {}, 202) for agent in agents]
        run_ids = [receipt["runId"] for receipt in woken]
        viewers = [Viewer(served.address, run_id) for run_id in run_ids]
        for viewer in viewers:
            viewer.start()
        for _ in range(KILLS):
            time.sleep(dice.uniform(0.0, MOST_UPTIME))
            served = restarted(served)
        (tmp_path / "go").touch()
        for viewer in viewers:
            viewer.join(90)
        assert [viewer.end and viewer.end["status"] for viewer in viewers] == ["succeeded"] * RUNS
        for viewer in viewers:
            log = served.client.get(f"/api/runs/{viewer.run_id}/log").text
            assert_whole(log, viewer)
        listed = [run["id"] for run in served.get("/api/runs?limit=200")["items"]]
        assert sorted(listed) == sorted(run_ids)
    finally:
        served.stop()
