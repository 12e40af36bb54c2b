"""D9: the stream of a run: replay from any id, reset, slow viewers, and lists that stay current."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, RunOrder
from binderclip.store import runs
from binderclip.store.database import Database
from binderclip.store.rows import order_row
from binderclip.store.runfile import RunOutcome, write_order, write_outcome
from tests.server.conftest import Served, serving


class Event(NamedTuple):
    id: str
    name: str
    data: Any


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def events(
    served: Served, path: str, last_id: str | None = None, headers: dict[str, str] | None = None
) -> Iterator[Iterator[Event]]:
    headers = {**(headers or {}), **({"last-event-id": last_id} if last_id else {})}
    with served.client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield parsed(response.iter_lines())


def all_of(served: Served, run_id: str, last_id: str | None = None) -> list[Event]:
    with events(served, f"/api/runs/{run_id}/stream", last_id) as found:
        return list(found)


@pytest.fixture(scope="module")
def run_id(served: Served) -> str:
    ended = served.ran("seq 1 3000")
    return str(ended["id"])


def test_a_finished_run_is_replayed_whole_and_ends(served: Served, run_id: str) -> None:
    seen = all_of(served, run_id)
    assert seen[0].name == "status"
    assert [e.data["text"] for e in seen if e.name == "entry"] == [str(n) for n in range(1, 3001)]
    assert [e.name for e in seen[-2:]] == ["usage", "end"]
    assert seen[-1].data["result"]["exitCode"] == 0
    assert all(event.id for event in seen)


@pytest.mark.parametrize("place", [0, 1, 1023, 1024, 1025, 2999, 3000])
def test_a_viewer_goes_on_behind_the_last_id_it_knows(
    served: Served, run_id: str, place: int
) -> None:
    seen = [e for e in all_of(served, run_id, f"1.{place}.1") if e.name == "entry"]
    assert [int(e.data["text"]) for e in seen] == list(range(place + 1, 3001))


def test_the_query_may_name_the_last_id_as_well(served: Served, run_id: str) -> None:
    with events(served, f"/api/runs/{run_id}/stream?after=1.2998.1") as found:
        assert [e.data["text"] for e in found if e.name == "entry"] == ["2999", "3000"]


@pytest.mark.parametrize("last_id", ["1.5.other", "7.1.1", "1.99999.1"])
def test_an_id_of_another_transcript_is_answered_by_reset_and_all(
    served: Served, run_id: str, last_id: str
) -> None:
    seen = all_of(served, run_id, last_id)
    assert seen[0].name == "reset"
    assert sum(e.name == "entry" for e in seen) == 3000


@pytest.mark.parametrize("last_id", ["nonsense", "1.2", "-1.2.3", "0.0.0", "9" * 40 + ".1.1"])
def test_an_id_that_says_nothing_starts_from_the_beginning(
    served: Served, run_id: str, last_id: str
) -> None:
    seen = all_of(served, run_id, last_id)
    assert sum(e.name == "entry" for e in seen) == 3000
    assert seen[0].name == "status"


def test_another_parsers_transcript_resets_a_viewer_who_watches(
    served: Served, waiting: Any
) -> None:
    agent = served.agent("resetting", "echo one; sleep 600")
    run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    path = served.home.attempt_dir(run_id, 1) / "transcript.jsonl"
    with events(served, f"/api/runs/{run_id}/stream") as found:
        next(e for e in found if e.name == "entry")
        lines = path.read_text().splitlines()
        head = json.loads(lines[0]) | {"version": "99"}
        fresh = path.with_name("fresh")
        fresh.write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
        fresh.rename(path)
        seen = [next(found), next(found)]
        while seen[-1].name != "entry":
            seen.append(next(found))
    assert "reset" in [e.name for e in seen]
    assert seen[-1].id == "1.1.99"
    served.post(f"/api/runs/{run_id}/cancel", {"kill": True}, 202)
    served.ended(run_id)


def test_entries_arrive_while_the_agent_works(served: Served, tmp_path: Path) -> None:
    """A line is seen before the agent prints the next one: each waits for the viewer."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    agent = served.agent("gated", f"for i in 1 2 3; do echo $i; read x <&3; done 3< {gate}")
    seen: list[str] = []
    # Open on both sides from the first line to the last: whoever comes or goes is no end of file.
    with os.fdopen(os.open(gate, os.O_RDWR), "wb", buffering=0) as opened:
        run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
        with events(served, f"/api/runs/{run_id}/stream") as found:
            for event in found:
                # The host may add a note of its own, for which the agent does not wait.
                if event.name == "entry" and event.data["kind"] == "assistant":
                    seen.append(event.data["text"])
                    opened.write(b"go\n")
    assert seen == ["1", "2", "3"]
    assert served.ended(run_id)["status"] == "succeeded"


def test_a_viewer_that_waits_for_a_queued_run_sees_it_start(served: Served) -> None:
    agent = served.agent("busy", "echo here; sleep 1")
    first = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    task = served.post("/api/issues", {"title": "t", "assigneeAgentId": agent}, 201)["id"]
    (second,) = served.get(f"/api/runs?issueId={task}")["items"]
    assert second["status"] == "queued"
    seen = all_of(served, second["id"])
    states = [e.data["status"] for e in seen if e.name == "status"]
    assert states[0] == "queued"
    assert states[-1] == "succeeded"
    assert [e.data["text"] for e in seen if e.name == "entry"] == ["here"]
    assert served.get(f"/api/runs/{first}")["status"] == "succeeded"


def resident(pid: int) -> int:
    (line,) = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(line.split()[1]) * 1024


def test_a_viewer_that_does_not_read_costs_no_memory_and_slows_nobody(served: Served) -> None:
    """D9: back-pressure by offset."""
    agent = served.agent("loud", "seq 1 400000")
    run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    host, port = served.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as lazy:
        lazy.sendall(f"GET /api/runs/{run_id}/stream HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        before = resident(served.process.pid)
        assert served.ended(run_id)["status"] == "succeeded"
        grown = resident(served.process.pid) - before
    assert grown < 60 * 1024 * 1024
    lazy_total = served.get(f"/api/runs/{run_id}/outline")["total"]
    assert lazy_total == 400000


def test_lines_are_streamed_for_a_parser_elsewhere(served: Served, run_id: str) -> None:
    """D3: the viewer of an external adapter asks for lines instead of records."""
    with events(served, f"/api/runs/{run_id}/stream?as=lines") as found:
        seen = list(found)
    assert [e.data["text"] for e in seen[:-1]] == [str(n) for n in range(1, 3001)]
    assert {e.name for e in seen[:-1]} == {"line"}
    assert seen[-1].name == "end"
    with events(served, f"/api/runs/{run_id}/stream?as=lines", seen[2997].id) as found:
        assert [e.data["n"] for e in list(found)[:-1]] == [2998, 2999]


def test_lists_hear_of_runs_that_change_their_state(served: Served) -> None:
    agent = served.agent("listed", "true")
    with events(served, "/api/events") as found:
        assert next(found).name == "reset"
        run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
        states: list[str] = []
        for event in found:
            if event.data.get("id") == run_id:
                states.append(event.data["status"])
                last_id = event.id
                if states[-1] == "succeeded":
                    break
    again = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    served.ended(again)
    with events(served, "/api/events", last_id) as found:
        missed = next(found)
        assert (missed.name, missed.data["id"]) == ("run", again)


def test_a_run_that_was_over_before_anybody_looked_is_told_and_kept(tmp_path: Path) -> None:
    """D9, N4: another process writes the row of a run at once as finished."""
    with serving(tmp_path / "home") as served, Database.open(served.home) as database:
        with events(served, "/api/events") as found:
            assert next(found).name == "reset"
            run_id = finished_run(database)
            told = next(e for e in found if e.name == "run")
        assert (told.data["id"], told.data["status"]) == (run_id, "succeeded")
        while not (kept := served.get("/api/jobs")["items"]):
            time.sleep(0.02)
        assert kept[0]["runs"] == [run_id]


def finished_run(database: Database) -> str:
    """A run whose row nobody ever sees open."""
    order = RunOrder(
        id=new_id(),
        adapter_type="process",
        agent=AgentRef(id="cli", company_id="local", name="cli", adapter_type="process"),
        cwd="/",
        created_at="2026-01-01T00:00:00.000Z",
        config={"command": "true", "args": []},
    )
    outcome = RunOutcome(state="succeeded", ended_at="2026-01-01T00:00:01.000Z")
    write_order(database.home, order)
    write_outcome(database.home, order.id, outcome)
    with database.writing() as connection:
        row = order_row(order, "succeeded") | {"ended_at": outcome.ended_at, "finalized": True}
        runs.add(connection, row)
    return order.id


def test_a_server_that_ends_lets_its_viewers_go(tmp_path: Path) -> None:
    """Streams end without `end`, agents work on, and the next server goes on by the last id."""
    with serving(tmp_path / "home") as served:
        agent = served.agent("lasting", "echo one; sleep 3; echo two")
        run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
        seen: list[Event] = []
        with events(served, f"/api/runs/{run_id}/stream") as found:
            seen.append(next(e for e in found if e.name == "entry"))
            served.process.terminate()
            with pytest.raises((StopIteration, httpx.RemoteProtocolError)):
                while True:
                    assert next(found).name != "end"
        assert "Agents work on" in served.stop()
    with serving(tmp_path / "home") as served:
        rest = all_of(served, run_id, seen[-1].id)
    assert [e.data["text"] for e in rest if e.name == "entry"] == ["two"]
    assert rest[-1].name == "end"


def test_a_stream_that_is_silent_is_kept_alive(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment is sent while nothing happens, so that neither side thinks the other is gone."""
    agent = served.agent("silent", "sleep 600")
    run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    began = time.monotonic()
    with served.client.stream("GET", f"/api/runs/{run_id}/stream") as response:
        assert any(line == ": keep-alive" for line in response.iter_lines())
    assert time.monotonic() - began < 60
    served.post(f"/api/runs/{run_id}/cancel", {"kill": True}, 202)
