"""What follows a run, by HTTP: its changes as a diff, doing it again, going on from it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.ids import new_id
from binderclip.runs.changes import BEFORE, CHANGES
from binderclip.workspaces import comparing
from tests.server.conftest import UP, Served, serving
from tests.workspaces.conftest import commit, plain_git

ADAPTER = """
import json, sys
from binderclip.sdk import AdapterConfig, Call, CliAdapter, Command, Init, Parser, Secret

class Talker(Parser):
    def parse_line(self, line, ts):
        self.facts.session_id = line.partition(" ")[0]
        return [Init(ts=ts, model="m", session_id=self.facts.session_id)]

class Config(AdapterConfig):
    key: Secret = None

class Talking(CliAdapter):
    manifest = __import__("binderclip.sdk").sdk.Manifest(id="talker", label="T", command="sh")
    Config = Config
    def create_parser(self):
        return Talker()
    def command(self, call: Call):
        session = (call.session or {}).get("sessionId", "fresh-1")
        return Command(["sh", "-c", f"echo {session} told; echo '{call.prompt}' > said"])

def create_adapter():
    return Talking()
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    plain_git(directory, "init", "-q", "-b", "main")
    commit(directory, "first", a="one\ntwo\n", b="left alone\n")
    return directory


def by_hand(served: Served, cwd: Path, *words: str) -> str:
    """Run something as a person does; the id of its run."""
    subprocess.run(
        [sys.executable, "-c", UP, "run", "--json", "--cwd", str(cwd), *words],
        env={**os.environ, "BINDERCLIP_HOME": str(served.home.path)},
        capture_output=True,
        timeout=60,
    )
    return max(path.name for path in served.home.runs.glob("*/*"))


def shell(served: Served, cwd: Path, script: str) -> str:
    return by_hand(served, cwd, "--adapter", "process", "--", "sh", "-c", script)


def paths(changes: Any) -> list[tuple[str, str]]:
    return [(one["status"], one["path"]) for one in changes["files"]]


def test_a_run_in_a_plain_directory_tells_what_it_changed_and_nothing_older(
    served: Served, repository: Path
) -> None:
    """W1: new, changed, committed and deleted files of this run; the person's own edits not."""
    (repository / "b").write_text("mine, from before\n")
    (repository / "old").write_text("untracked before\n")
    script = "sleep 0.05; echo three >> a; echo new > 'ma de'; git add a; git commit -qm x; rm b"
    run = shell(served, repository, script.replace("git ", "git -c user.name=x -c user.email=x "))
    found = served.get(f"/api/runs/{run}/diff")
    assert found["basis"] == "directory"
    assert sorted(paths(found)) == [("A", "ma de"), ("D", "b"), ("M", "a")]
    assert "+three" in found["diff"]
    assert "+new" in found["diff"]
    assert plain_git(repository, "status", "--porcelain") == ' D b\n?? "ma de"\n?? old'


def test_what_a_run_changed_stays_told_when_the_directory_goes_on(
    served: Served, repository: Path
) -> None:
    """W1: the difference is kept with the run, not computed from today's files."""
    run = shell(served, repository, "echo three >> a")
    (repository / "a").write_text("something else\n")
    assert "+three" in served.get(f"/api/runs/{run}/diff")["diff"]


def test_a_task_tells_each_runs_own_changes_also_uncommitted_ones(
    served: Served, repository: Path
) -> None:
    """W1, W2: the second run of a workspace shows its own line only."""
    code = "import os; n = os.path.exists('log'); open('log', 'a').write(f'line {n}\\n')"
    config = {"command": sys.executable, "args": ["-c", code], "cwd": str(repository)}
    body = {"name": "maker", "adapterType": "process", "adapterConfig": config}
    agent = served.post("/api/agents", body, 201)["id"]
    task = served.post("/api/issues", {"title": "log", "assigneeAgentId": agent}, 201)["id"]
    (run,) = served.get(f"/api/runs?issueId={task}")["items"]
    served.ended(run["id"])
    again = served.post(f"/api/runs/{run['id']}/retry", {}, 202)["runId"]
    served.ended(again)
    first, second = (served.get(f"/api/runs/{one}/diff") for one in (run["id"], again))
    assert first["basis"] == second["basis"] == "workspace"
    assert paths(first) == [("A", "log")]
    assert paths(second) == [("M", "log")]
    assert "+line True" in second["diff"]
    assert "+line False" not in second["diff"]


def test_a_live_run_tells_what_it_has_changed_so_far(
    served: Served, repository: Path, tmp_path: Path
) -> None:
    """D9: looking does not wait for the end."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    agent = served.agent("slow", "echo three >> a; echo here; cat " + str(gate))
    config = served.get(f"/api/agents/{agent}")["adapterConfig"] | {"cwd": str(repository)}
    served.ask("PATCH", f"/api/agents/{agent}", json={"adapterConfig": config})
    run = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    with served.client.stream("GET", f"/api/runs/{run}/stream") as stream:
        assert any("here" in line for line in stream.iter_lines())
    assert "+three" in served.get(f"/api/runs/{run}/diff")["diff"]
    gate.write_text("go")
    served.ended(run)


def test_where_nothing_can_be_compared_the_reason_is_told(
    served: Served, tmp_path: Path, repository: Path
) -> None:
    """No repository, a run that never started, files of an older version."""
    plain = tmp_path / "plain"
    plain.mkdir()
    run = shell(served, plain, "echo x > y")
    assert "no git repository" in served.get(f"/api/runs/{run}/diff")["reason"]
    blocked = by_hand(served, repository, "--adapter", "process", "--", "/no/such/program")
    assert "changed nothing" in served.get(f"/api/runs/{blocked}/diff")["reason"]
    old = shell(served, repository, "true")
    for name in (BEFORE, CHANGES):
        (served.home.run_dir(old) / name).unlink()
    told = served.get(f"/api/runs/{old}/diff")
    assert (told["basis"], told["files"]) == ("none", [])
    assert "not noted" in told["reason"]


def test_a_large_change_is_bounded_and_says_so(served: Served, repository: Path) -> None:
    """A generated file of many lines is told by its numbers; binary files have none."""
    lines = comparing.MOST_LINES + 1
    run = shell(served, repository, f"seq {lines} > big; head -c 9 /dev/zero > bin; echo s > small")
    found = served.get(f"/api/runs/{run}/diff")
    told = {one["path"]: (one["added"], one["shown"]) for one in found["files"]}
    assert told == {"big": (lines, False), "bin": (None, False), "small": (1, True)}
    assert len(found["diff"]) < 1000


def test_an_agent_may_not_look_at_changes_nor_start_runs(served: Served, repository: Path) -> None:
    """R3: a run token is that agent, never more."""
    run = shell(served, repository, "true")
    agent = served.agent("other", "cat")
    live = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    token = served.tokens.for_run(live, agent, "default")
    headers = {"authorization": f"Bearer {token}"}
    for method, verb in (("GET", "diff"), ("POST", "retry")):
        answer = served.client.request(method, f"/api/runs/{run}/{verb}", headers=headers)
        assert answer.status_code in (401, 403)


def test_a_run_by_hand_is_done_again_with_the_same_wish(served: Served, tmp_path: Path) -> None:
    """D5: command, directory and configuration are the same; the new run names the old one."""
    run = shell(served, tmp_path, "pwd; echo again >> log")
    after = served.post(f"/api/runs/{run}/retry", {}, 202)["runId"]
    view = served.ended(after)
    assert (view["status"], view["retryOf"], view["cwd"]) == ("succeeded", run, str(tmp_path))
    assert (tmp_path / "log").read_text() == "again\nagain\n"


def test_a_repeated_wish_with_its_key_begins_one_run(served: Served, tmp_path: Path) -> None:
    """Design 6: keys on requests that create; a click that is sent twice runs nothing twice."""
    run = shell(served, tmp_path, "echo again >> log")
    headers = {"Idempotency-Key": new_id()}
    first = served.post(f"/api/runs/{run}/retry", {}, 202, headers=headers)
    assert served.post(f"/api/runs/{run}/retry", {}, 202, headers=headers) == first
    served.ended(first["runId"])
    assert (tmp_path / "log").read_text() == "again\nagain\n"
    assert len(list(served.home.run_ids())) == 2


def test_a_run_by_hand_goes_on_in_its_session_with_a_message(
    served: Served, tmp_path: Path
) -> None:
    """S1: the same session, the message as the prompt."""
    adapter = tmp_path / "talker.py"
    adapter.write_text(ADAPTER)
    run = by_hand(served, tmp_path, "--adapter", str(adapter), "hello")
    assert served.get(f"/api/runs/{run}")["messageRefusal"] is None
    more = {"json": {"prompt": "and more"}, "headers": {"Idempotency-Key": new_id()}}
    after, same = (served.ask("POST", f"/api/runs/{run}/continue", 202, **more) for _ in range(2))
    assert after == same
    view = served.ended(after["runId"])
    assert (view["sessionId"], view["prompt"]) == ("fresh-1", "and more")
    assert "continues" in view["sessionReason"]
    assert (tmp_path / "said").read_text() == "and more\n"


def test_what_cannot_be_repeated_says_why(served: Served, tmp_path: Path) -> None:
    """D8: secrets are not kept; without a session nobody can go on."""
    run = shell(served, tmp_path, "true")
    view = served.get(f"/api/runs/{run}")
    assert view["retryRefusal"] is None
    assert "no session" in view["messageRefusal"]
    refused = served.post(f"/api/runs/{run}/continue", {"prompt": "x"}, 409)
    assert refused["error"]["code"] == "cannot_repeat"
    adapter = tmp_path / "talker.py"
    adapter.write_text(ADAPTER)
    words = ("--adapter", str(adapter), "--config", "key=very-secret-value", "hello")
    secret = by_hand(served, tmp_path, *words)
    assert "key" in served.get(f"/api/runs/{secret}")["retryRefusal"]
    assert "secrets" in served.post(f"/api/runs/{secret}/retry", {}, 409)["error"]["message"]
    served.post(f"/api/runs/{new_id()}/retry", {}, 404)
