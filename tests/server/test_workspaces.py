"""Workspaces by HTTP: seen, taken over, brought back, cleaned up, each by those who may."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.ids import new_id
from binderclip.store.database import Database
from binderclip.store.operations import FINALIZE, Operations
from tests.server.conftest import Served, serving
from tests.workspaces.conftest import commit, plain_git
from tests.workspaces.sshd import Sshd, running


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    plain_git(directory, "init", "-q", "-b", "main")
    commit(directory, "first", a="one\n")
    return directory


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as daemon:
        yield daemon


def worked(served: Served, repository: Path, code: str, **more: Any) -> Any:
    """The run of a task that executes some Python in the repository, once it is over."""
    config = {"command": sys.executable, "args": ["-c", code], "cwd": str(repository)}
    body = {"name": "maker", "adapterType": "process", "adapterConfig": config, **more}
    agent = served.post("/api/agents", body, 201)["id"]
    return woken(served, agent)


def woken(served: Served, agent: str, title: str = "work") -> Any:
    wish = {"title": title, "assigneeAgentId": agent}
    task = served.post("/api/issues", wish, 201)["id"]
    (run,) = served.get(f"/api/runs?issueId={task}")["items"]
    return served.ended(run["id"])


MAKE = "open('made', 'w').write('new\\n')"


def test_a_workspace_is_listed_shown_merged_archived_and_cleaned(
    served: Served, repository: Path
) -> None:
    """W1, W2, W8: as the command line does it."""
    run = worked(served, repository, MAKE)
    (one,) = served.get("/api/workspaces")["items"]
    assert (one["runId"], one["state"]) == (run["id"], "active")
    assert one["bytes"] > 0
    place = f"/api/workspaces/{one['id']}"
    shown = served.get(place)
    assert shown["files"] == [{"status": "A", "path": "made"}]
    assert [step["kind"] for step in shown["operations"]][-1] == FINALIZE
    for verb in ("diff", "export"):
        assert "+new" in served.client.get(f"{place}/{verb}").text
    assert "1 file changed" in served.client.get(f"{place}/diff?stat=true").text
    merged = served.post(f"{place}/merge", {}, 200, headers=served.person)
    assert merged["changed"] == ["made"]
    assert (repository / "made").read_text() == "new\n"
    assert served.post(f"{place}/archive", {}, 200, headers=served.person)["state"] == "archived"
    would = served.post("/api/workspaces/clean", {}, 200, headers=served.person)
    assert (would["dryRun"], would["items"][0]["removes"]) == (True, True)
    assert Path(one["tree"]).is_dir()
    wish = {"dryRun": False}
    (gone,) = served.post("/api/workspaces/clean", wish, 200, headers=served.person)["items"]
    assert gone["savedRef"].startswith("refs/binderclip/saved/")
    assert plain_git(repository, "show", f"{gone['savedRef']}:made") == "new"
    assert served.get("/api/workspaces")["items"] == []
    served.get(place, 404)


def test_a_conflict_answers_409_and_changes_nothing(served: Served, repository: Path) -> None:
    worked(served, repository, "open('a', 'w').write('theirs\\n')")
    (repository / "a").write_text("ours\n")
    (one,) = served.get("/api/workspaces")["items"]
    merge = f"/api/workspaces/{one['id']}/merge"
    refused = served.post(merge, {}, 409, headers=served.person)
    assert refused["error"]["code"] == "restore_conflict"
    assert (repository / "a").read_text() == "ours\n"
    served.post(merge, {"take": "theirs"}, 200, headers=served.person)
    assert (repository / "a").read_text() == "theirs\n"


def test_workspaces_come_in_pages(served: Served, repository: Path) -> None:
    first = worked(served, repository, MAKE)
    woken(served, first["agentId"], "more")
    page = served.get("/api/workspaces?limit=1")
    rest = served.get(f"/api/workspaces?limit=1&cursor={page['next']}")
    assert len(page["items"]) == len(rest["items"]) == 1
    assert (page["items"][0]["id"] > rest["items"][0]["id"], rest["next"]) == (True, None)
    (own,) = served.get(f"/api/workspaces?issueId={first['taskId']}")["items"]
    assert own["runId"] == first["id"]
    assert served.get("/api/workspaces?issueId=nobody")["items"] == []


def test_the_policy_of_clean_up_is_told(tmp_path: Path) -> None:
    """W8: who looks at workspaces knows when they go."""
    plain = {name: v for name, v in os.environ.items() if not name.startswith("BINDERCLIP_W")}
    told = []
    for number, more in enumerate([{}, {"BINDERCLIP_WORKSPACE_DAYS": "0"}]):
        with serving(tmp_path / f"home{number}", env={**plain, **more}) as server:
            told.append(server.get("/api/workspaces/policy"))
    assert told[0] == {"automatic": True, "idleDays": 14.0, "maxBytes": None}
    assert told[1] == {"automatic": False, "idleDays": None, "maxBytes": None}


def test_a_failed_finalize_is_waived_or_tried_again(served: Served, repository: Path) -> None:
    """W4: by a person, with a reason."""
    run = worked(served, repository, MAKE)
    (one,) = served.get("/api/workspaces")["items"]
    place = f"/api/workspaces/{one['id']}"
    served.post(f"{place}/waive", {"reason": "r"}, 409, headers=served.person)
    with Database.open(served.home) as database, database.writing() as connection:
        operations = Operations(connection)
        begun = operations.begin(run["id"], run["taskId"], FINALIZE, "now")
        operations.end(begun.id, "failed", "now", "no luck")
    waived = served.post(f"{place}/waive", {"reason": "by hand"}, 200, headers=served.person)
    assert (waived["status"], waived["waiveReason"]) == ("waived", "by hand")
    again = served.post(f"{place}/retry", {}, 200, headers=served.person)
    assert (again["kind"], again["status"]) == (FINALIZE, "succeeded")


def test_changes_need_a_person_and_agents_see_nothing(served: Served, repository: Path) -> None:
    """R3: a workspace is a person's repository."""
    working = "import time; time.sleep(600)"
    config = {"command": sys.executable, "args": ["-c", working], "cwd": str(repository)}
    body = {"name": "maker", "adapterType": "process", "adapterConfig": config}
    agent = served.post("/api/agents", body, 201)["id"]
    task = served.post("/api/issues", {"title": "t", "assigneeAgentId": agent}, 201)["id"]
    (run,) = served.get(f"/api/runs?issueId={task}")["items"]
    run_id = run["id"]
    with served.client.stream("GET", f"/api/runs/{run_id}/stream") as stream:
        next(line for line in stream.iter_lines() if '"running"' in line)
    (one,) = served.get("/api/workspaces")["items"]
    place = f"/api/workspaces/{one['id']}"
    token = served.tokens.for_run(run_id, agent, "local")
    for path in ("/api/workspaces", place, f"{place}/diff", f"{place}/export"):
        served.get(path, 403, headers={"authorization": f"Bearer {token}"})
    for verb in ("merge", "archive", "retry", "waive"):
        served.post(f"{place}/{verb}", {"reason": "r"}, 403)
    served.post("/api/workspaces/clean", {}, 403)
    for verb in ("archive", "retry"):
        busy = served.post(f"{place}/{verb}", {}, 409, headers=served.person)
        assert busy["error"]["code"] == "workspace_busy"
    served.post(f"/api/runs/{run_id}/cancel", {"kill": True})
    served.ended(run_id)


def ssh_environment(served: Served, sshd: Sshd, root: Path, **more: Any) -> str:
    config = {
        "host": "127.0.0.1",
        "port": sshd.port,
        "user": getpass.getuser(),
        "identityFile": str(sshd.directory / "user"),
        "knownHostsFile": str(sshd.directory / "known"),
        "remoteRoot": str(root),
        "python": sys.executable,
        **more,
    }
    body = {"name": f"box {new_id()}", "kind": "ssh", "config": config}
    made: str = served.post("/api/environments", body, 201, headers=served.person)["id"]
    return made


def test_an_environment_is_tested_where_it_is(served: Served, sshd: Sshd, tmp_path: Path) -> None:
    """E4: the checks run over there; a wrong config is told, not a crash."""
    good = ssh_environment(served, sshd, tmp_path / "remote")
    wish = {"commands": ["no-such-program-anywhere"]}
    served.post(f"/api/environments/{good}/test", wish, 403)
    told = served.post(f"/api/environments/{good}/test", wish, 200, headers=served.person)
    levels = {check["code"]: check["level"] for check in told["checks"]}
    assert (levels["ssh_git"], levels["ssh_command"], told["status"]) == ("info", "error", "fail")
    for config, field in (({"host": "h", "port": "x"}, "port"), ({"hots": "h"}, "hots")):
        ask = {"json": {"config": config}, "headers": served.person}
        refused = served.ask("PATCH", f"/api/environments/{good}", 422, **ask)
        assert field in refused["error"]["fields"]
    wrong = {"name": "odd", "kind": "ssh", "config": {"host": "h", "path": 5}}
    served.post("/api/environments", wrong, 422, headers=served.person)
    local = served.post("/api/environments", {"name": "here"}, 201, headers=served.person)["id"]
    told = served.post(f"/api/environments/{local}/test", {}, 200, headers=served.person)
    assert told["status"] == "pass"
