"""W6: what an agent on another machine reaches, and what nobody reaches there."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from binderclip.server.guarded import REMEMBERED
from tests.server.conftest import Served, serving
from tests.server.test_auth import Working, working
from tests.server.test_workspaces import repository, ssh_environment, sshd, woken
from tests.workspaces.sshd import Sshd

__all__ = ["repository", "sshd"]
CLI = """#!{python}
import json, os, sys, urllib.request
sys.stdin.read()
url = os.environ["PAPERCLIP_API_URL"] + "/api/agents/me"
headers = {{"Authorization": "Bearer " + os.environ["PAPERCLIP_API_KEY"]}}
asked = urllib.request.Request(url, headers=headers)
open("answer", "wb").write(urllib.request.urlopen(asked).read())
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": url}}))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose server listens for agents on other machines from its start."""
    home = tmp_path / "home"
    home.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        (home / REMEMBERED).write_text(json.dumps({"port": probe.getsockname()[1]}))
    return home


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as server:
        yield server


@pytest.fixture
def agent(served: Served) -> Iterator[Working]:
    one = working(served)
    yield one
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True})


def address(home: Path) -> str:
    return f"http://127.0.0.1:{json.loads((home / REMEMBERED).read_text())['port']}"


def test_only_the_token_of_a_run_opens_the_guarded_listener(
    served: Served, home: Path, agent: Working
) -> None:
    """W6: neither being the same user nor the person's token counts."""
    me = f"{address(home)}/api/agents/me"
    assert httpx.get(me, headers=agent.headers).json()["id"] == agent.agent_id
    cookie = {"cookie": f"binderclip-{served.address.rpartition(':')[2]}={served.tokens.person}"}
    for headers in ({}, served.person, cookie, {"authorization": "Bearer x.y.z"}):
        assert httpx.get(me, headers=headers).status_code == 401, headers
    over = served.ran("true")
    token = served.tokens.for_run(over["id"], over["agentId"], "local")
    assert httpx.get(me, headers={"authorization": f"Bearer {token}"}).status_code == 401


def test_the_guarded_listener_serves_what_agents_are_promised_and_nothing_else(
    served: Served, home: Path, agent: Working
) -> None:
    """R4, W6: the agents' routes; runs, files, streams, the web app are not there."""
    base = address(home)
    issues = f"{base}/api/companies/local/issues"
    made = httpx.post(issues, json={"title": "found over there"}, headers=agent.headers)
    assert made.status_code == 201
    task = made.json()["id"]
    assert httpx.get(issues, headers=agent.headers).status_code == 200
    said = f"{base}/api/issues/{task}/comments"
    assert httpx.post(said, json={"body": "done"}, headers=agent.headers).status_code == 201
    assert [one["body"] for one in httpx.get(said, headers=agent.headers).json()] == ["done"]
    for path in (
        *("/", "/openapi.json", "/api/health", "/api/runs", "/api/agents", "/api/issues"),
        *(f"/api/runs/{agent.run_id}/log", "/api/events", "/api/environments"),
        *("/api/agents/me/../../secrets", "/api/issues/x/../../secrets", "/api//agents/me"),
    ):
        assert httpx.get(f"{base}{path}", headers=agent.headers).status_code == 404, path
    assert httpx.delete(f"{base}/api/issues/{task}", headers=agent.headers).status_code == 404


def test_the_guarded_listener_keeps_its_port(home: Path) -> None:
    """Agents over there hold it while servers come and go."""
    ports = set()
    for _ in range(2):
        with serving(home):
            ports.add(address(home))
            assert httpx.get(f"{address(home)}/api/agents/me").status_code == 401
    assert len(ports) == 1


def test_a_remote_agent_reaches_the_api_through_the_forward(
    tmp_path: Path, repository: Path, sshd: Sshd
) -> None:
    """W6: the listener opens with the first run that needs it."""
    program = tmp_path / "claude"
    program.write_text(CLI.format(python=sys.executable))
    program.chmod(0o755)
    with serving(tmp_path / "own") as served:
        assert not (served.home.path / REMEMBERED).exists()
        place = ssh_environment(served, sshd, tmp_path / "remote", path=[str(tmp_path)])
        config = {"cwd": str(repository)}
        body = {"name": "far", "adapterType": "claude_local", "adapterConfig": config}
        agent = served.post("/api/agents", {**body, "environmentId": place}, 201)["id"]
        run = woken(served, agent)
        assert run["status"] == "succeeded", run["errorMessage"]
        (one,) = served.get("/api/workspaces")["items"]
        told = json.loads((Path(one["tree"]) / "answer").read_text())
        assert told["id"] == agent
        assert run["result"]["summary"] != f"{served.address}/api/agents/me"
