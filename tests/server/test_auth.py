"""R3: who may do what: peers, the person's token, run tokens, companies, hosts and origins."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import jwt
import pytest

from binderclip.contract.ids import new_id
from binderclip.server.peers import peer_uid
from tests.server.conftest import Served, serving


class Working(NamedTuple):
    """An agent whose run goes on, with its token."""

    agent_id: str
    run_id: str
    company_id: str
    headers: dict[str, str]


def working(served: Served, company_id: str = "local") -> Working:
    agent = served.agent(f"worker {new_id()}", "sleep 600", companyId=company_id)
    run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    token = served.tokens.for_run(run_id, agent, company_id)
    return Working(agent, run_id, company_id, {"authorization": f"Bearer {token}"})


@pytest.fixture(scope="module")
def agent(served: Served) -> Any:
    one = working(served)
    yield one
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True})


@pytest.fixture(scope="module")
def stranger(served: Served) -> Any:
    """An agent of another company."""
    company = served.post("/api/companies", {"name": "Elsewhere"}, 201)["id"]
    one = working(served, company)
    yield one
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True})


NOWHERE = "01900000-0000-7000-8000-000000000000"
PRIVILEGED = [
    ("PUT", "/api/secrets/x", {"value": "v"}),
    ("DELETE", "/api/secrets/x", None),
    ("POST", "/api/environments", {"name": "e"}),
    ("PATCH", "/api/environments/x", {"name": "e"}),
    ("DELETE", "/api/environments/x", None),
    ("PATCH", "/api/companies/local", {"name": "n"}),
    ("POST", "/api/approvals/x/approve", {}),
    ("POST", "/api/approvals/x/reject", {}),
    ("POST", "/api/issues/x/interactions/y/accept", {}),
    ("POST", "/api/issues/x/interactions/y/reject", {}),
    ("POST", "/api/issues/x/interactions/y/respond", {}),
    ("POST", "/api/workspaces/operations/x/waive", {"reason": "r"}),
]
BUDGET = {"name": "b", "adapterType": "process", "budget": {"usd": 1}}


@pytest.mark.parametrize(("method", "path", "body"), [*PRIVILEGED, ("POST", "/api/agents", BUDGET)])
def test_only_the_persons_token_does_what_is_reserved_for_people(
    served: Served, agent: Working, method: str, path: str, body: Any
) -> None:
    for headers in ({}, agent.headers):
        refused = served.ask(method, path, 403, json=body, headers=headers)
        assert refused["error"]["code"] == "person_needed"


def test_who_asks_is_told_and_a_browser_forgets_its_token(served: Served, agent: Working) -> None:
    """R3: a page can say why something is refused before it is tried."""
    for headers, kind in (({}, "local"), (served.person, "person"), (agent.headers, "agent")):
        assert served.get("/api/access", headers=headers) == {"kind": kind}
    with httpx.Client(base_url=served.address) as browser:
        browser.get("/", params={"token": served.tokens.person})
        assert browser.get("/api/access").json() == {"kind": "person"}
        assert browser.delete("/api/access").status_code == 204
        assert browser.get("/api/access").json() == {"kind": "local"}


NOT_FOR_AGENTS = [
    ("DELETE", "/api/access", None),
    ("POST", "/api/companies", {"name": "n"}),
    ("PATCH", "/api/agents/x", {"name": "n"}),
    ("DELETE", "/api/agents/x", None),
    ("GET", "/api/secrets", None),
    ("POST", f"/api/runs/{NOWHERE}/cancel", {}),
    ("POST", "/api/sessions/reset", {"agentId": "a", "adapterType": "b", "taskKey": "c"}),
    ("POST", "/api/adapters/process/test-environment", {}),
    ("POST", "/api/adapters/process/parse", {}),
    ("GET", "/api/adapters/process/models?agentId=x", None),
    ("GET", "/api/agents/x/skills", None),
    ("POST", "/api/agents/x/pauses/reset", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), NOT_FOR_AGENTS)
def test_an_agent_is_never_more_than_that_agent(
    served: Served, agent: Working, method: str, path: str, body: Any
) -> None:
    refused = served.ask(method, path, 403, json=body, headers=agent.headers)
    assert refused["error"]["code"] == "forbidden"


def test_an_agent_of_another_company_sees_nothing(
    served: Served, agent: Working, stranger: Working
) -> None:
    """No route leaks across companies: what is elsewhere does not exist."""
    task = served.post("/api/issues", {"title": "ours"}, 201)["id"]
    approval = served.post("/api/approvals", {"kind": "k"}, 201, headers=agent.headers)["id"]
    question = {"kind": "request_confirmation"}
    served.post(f"/api/issues/{task}/interactions", question, 201, headers=agent.headers)
    said = served.post(f"/api/issues/{task}/comments", {"body": "b"}, 201)["id"]
    env = served.post("/api/environments", {"name": "ours"}, 201, headers=served.person)["id"]
    run = f"/api/runs/{agent.run_id}"
    hidden = [
        ("GET", f"/api/agents/{agent.agent_id}"),
        ("GET", f"/api/agents/{agent.agent_id}/state"),
        ("POST", f"/api/agents/{agent.agent_id}/wakeup"),
        ("GET", "/api/companies/local"),
        ("GET", "/api/companies/local/issues"),
        ("GET", "/api/companies/local/agents"),
        ("POST", "/api/companies/local/issues"),
        ("GET", "/api/issues?companyId=local"),
        ("GET", "/api/agents?companyId=local"),
        ("GET", "/api/runs?companyId=local"),
        ("GET", "/api/costs?companyId=local"),
        ("GET", "/api/activity?companyId=local"),
        ("GET", "/api/approvals?companyId=local"),
        ("GET", f"/api/issues/{task}"),
        ("PATCH", f"/api/issues/{task}"),
        ("POST", f"/api/issues/{task}/checkout"),
        ("POST", f"/api/issues/{task}/release"),
        ("GET", f"/api/issues/{task}/comments"),
        ("GET", f"/api/issues/{task}/comments/{said}"),
        ("POST", f"/api/issues/{task}/comments"),
        ("GET", f"/api/issues/{task}/interactions"),
        ("POST", f"/api/issues/{task}/interactions"),
        ("GET", f"/api/interactions?issueId={task}"),
        ("GET", f"/api/approvals/{approval}"),
        ("GET", f"/api/environments/{env}"),
        ("GET", f"/api/workspaces/operations?runId={agent.run_id}"),
        ("GET", f"/api/workspaces/operations?issueId={task}"),
        *(("GET", run + part) for part in ("", "/transcript", "/outline", "/search?q=x", "/log")),
        *(("GET", run + part) for part in ("/lines", "/stream", "/entries/1o0.0")),
    ]
    body = {"title": "t", "body": "b", "kind": "request_confirmation"}
    for method, path in hidden:
        options: Any = {"json": body} if method != "GET" else {}
        refused = served.ask(method, path, 404, headers=stranger.headers, **options)
        assert refused["error"]["code"] == "not_found", path
        assert "ours" not in str(refused)
    for path in ("runs", "agents", "issues", "approvals", "interactions", "activity", "sessions"):
        page = served.get(f"/api/{path}", headers=stranger.headers)["items"]
        assert agent.agent_id not in str(page)
        assert task not in str(page)
    seen = served.get("/api/companies", headers=stranger.headers)["items"]
    assert [company["id"] for company in seen] == [stranger.company_id]


def test_a_runs_token_dies_with_its_run(served: Served) -> None:
    one = working(served)
    assert served.get("/api/agents/me", headers=one.headers)["id"] == one.agent_id
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True}, 202)
    served.ended(one.run_id)
    refused = served.get("/api/agents/me", 401, headers=one.headers)
    assert "over" in refused["error"]["message"]


def test_forged_and_foreign_tokens_are_nobody(served: Served, agent: Working) -> None:
    claims = {"iss": "binderclip", "sub": agent.agent_id, "run": agent.run_id, "company": "local"}
    forged = jwt.encode(claims, "k" * 32, algorithm="HS256")
    unsigned = jwt.encode(claims, None, algorithm="none")
    other_agent = served.tokens.for_run(agent.run_id, "somebody", "local")
    no_run = served.tokens.for_run(new_id(), agent.agent_id, "local")
    for token in (forged, unsigned, other_agent, no_run, "nonsense", "ü"):
        headers = [(b"authorization", f"Bearer {token}".encode())]
        response = served.client.get("/api/agents", headers=headers)
        assert response.status_code == 401, token
        assert response.headers["www-authenticate"] == "Bearer"
    assert served.get("/api/agents", 401, headers={"authorization": "Basic eA=="})


def test_a_token_and_another_runs_header_contradict_each_other(
    served: Served, agent: Working
) -> None:
    mine = {**agent.headers, "X-Paperclip-Run-Id": agent.run_id}
    assert served.get("/api/agents/me", headers=mine)
    other = {**agent.headers, "X-Paperclip-Run-Id": new_id()}
    assert served.get("/api/agents/me", 403, headers=other)["error"]["code"] == "run_mismatch"


def test_the_printed_address_signs_a_browser_in(served: Served) -> None:
    response = served.client.get(f"/?token={served.tokens.person}")
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    with httpx.Client(base_url=served.address) as browser:
        browser.get(f"/?token={served.tokens.person}")
        assert browser.put("/api/secrets/by-cookie", json={"value": "v"}).status_code == 200
        assert browser.get("/?token=wrong").headers.get("set-cookie") is None


def test_a_loopback_peer_of_another_user_is_nobody(served: Served) -> None:
    """Section 6: a loopback peer must have the server's uid."""
    ask = (
        "import encodings.idna, os, socket, sys\n"
        "os.setuid(65534)\n"
        "one = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "one.sendall(b'GET /api/runs HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n')\n"
        "print(one.recv(12))\n"
    )
    host, port = served.address.removeprefix("http://").split(":")
    words = [sys.executable, "-c", ask, host, port]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "b'HTTP/1.1 401'", done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_owner_of_a_connection_is_known(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        server = listener.getsockname()[:2]
        with socket.create_connection(server) as one:
            assert peer_uid(one.getsockname()[:2], server) == os.getuid()
        assert peer_uid((host, 1), server) is None


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "10.0.0.1"])
def test_a_name_that_leads_here_by_rebinding_is_refused(served: Served, host: str) -> None:
    refused = served.get("/api/runs", 403, headers={"host": host})
    assert refused["error"]["code"] == "forbidden_host"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_web_page_is_refused(served: Served, headers: dict[str, str]) -> None:
    refused = served.post("/api/companies", {"name": "x"}, 403, headers=headers)
    assert refused["error"]["code"] == "forbidden_origin"


def test_the_own_page_is_let_in(served: Served) -> None:
    headers = {"origin": served.address, "sec-fetch-site": "same-origin"}
    assert served.get("/api/runs", headers=headers)


def test_answers_carry_what_keeps_a_browser_in_bounds(served: Served) -> None:
    for path in ("/", "/api/health", "/api/nothing"):
        headers = served.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_a_body_that_is_too_large_is_refused_whether_it_tells_its_size_or_not(
    served: Served,
) -> None:
    data = b'{"name": "' + b"x" * (5 * 1024 * 1024) + b'"}'
    served.ask("POST", "/api/companies", 413, content=data)
    chunks = (data[at : at + 65536] for at in range(0, len(data), 65536))
    served.ask("POST", "/api/companies", 413, content=chunks)


def test_too_many_requests_are_slowed_down(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as served:
        codes = {served.client.get("/api/health").status_code for _ in range(3000)}
    assert codes == {200, 429}


def test_the_token_is_readable_by_its_owner_only(served: Served) -> None:
    assert (served.home.path / "token").stat().st_mode & 0o777 == 0o600


def own_address() -> str:
    """An address of this machine other than loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            # Sends nothing: it only asks which address would be used.
            one.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        return str(one.getsockname()[0])


def test_another_address_demands_the_token(tmp_path: Path) -> None:
    """Section 6: any address other than loopback needs a token; commands and agents find it."""
    own = own_address()
    chosen = {**os.environ, "BINDERCLIP_TOKEN": "chosen-on-purpose-1234"}
    with serving(tmp_path / "home", "--host", own, env=chosen) as served:
        assert served.address.startswith(f"http://{own}:")
        served.get("/api/runs", 401)
        assert served.get("/api/runs", headers=served.person)["items"] == []


def test_a_server_answers_at_the_address_where_it_was_reached(tmp_path: Path) -> None:
    """Also where the machine's own name does not lead to that address."""
    chosen = {**os.environ, "BINDERCLIP_TOKEN": "chosen-on-purpose-1234"}
    with serving(tmp_path / "home", "--host", "0.0.0.0", env=chosen) as served:
        port = served.address.rpartition(":")[2]
        with httpx.Client(base_url=f"http://127.0.0.2:{port}") as client:
            assert client.get("/api/runs").status_code == 401
            assert client.get("/api/runs", headers=served.person).status_code == 200
            rebound = {**served.person, "host": "127.0.0.3"}
            assert client.get("/api/runs", headers=rebound).status_code == 403


def test_whoever_comes_through_a_proxy_needs_the_token(tmp_path: Path) -> None:
    """A proxy of the same user must not lend its rights to everybody behind it."""
    with serving(tmp_path / "home", "--name", "agents.example") as served:
        named = {"host": "agents.example", "origin": "https://agents.example"}
        assert served.get("/api/runs", 401, headers=named)
        assert served.get("/api/runs", headers={**named, **served.person})
        assert served.get("/api/runs", 401, headers={"x-forwarded-for": "192.0.2.1"})
        assert served.get("/api/runs")
