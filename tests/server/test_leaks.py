"""R3: every route that /openapi.json names, asked by those who may not: nothing leaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.server.conftest import Served
from tests.server.test_auth import Working, working
from tests.server.test_streams import events
from tests.workspaces.conftest import commit, plain_git

MARK = "ours-and-nobody-elses"
PUBLIC = {"/api/health"}
ENDLESS = {"/api/events"}
METHODS = ("get", "post", "put", "patch", "delete")
BODY = {
    **{"title": "t", "body": "b", "kind": "request_confirmation", "name": "n", "value": "v"},
    **{"reason": "r", "adapterType": "process", "taskKey": "heartbeat", "companyId": "local"},
    **{"spec": "npm:x", "disabled": True, "paused": True, "answers": []},
}


class Route(NamedTuple):
    method: str
    path: str
    parts: tuple[str, ...]
    queries: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.method.upper()} {self.path}"


class Ours(NamedTuple):
    """Things of one company, by the names that routes give them."""

    parts: dict[str, str]
    queries: dict[str, str]
    ids: tuple[str, ...]


def routes(served: Served) -> Iterator[Route]:
    for path, methods in served.get("/openapi.json")["paths"].items():
        for method in METHODS:
            if method in methods:
                told = methods[method].get("parameters", [])
                named = {
                    place: tuple(one["name"] for one in told if one["in"] == place)
                    for place in ("path", "query")
                }
                yield Route(method, path, named["path"], named["query"])


@pytest.fixture(scope="module")
def stranger(served: Served) -> Iterator[Working]:
    """An agent of another company, at work."""
    company = served.post("/api/companies", {"name": "Elsewhere"}, 201)["id"]
    one = working(served, company)
    yield one
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True})


@pytest.fixture(scope="module")
def ours(served: Served) -> Ours:
    project = served.home.path.parent / "project"
    project.mkdir()
    plain_git(project, "init", "-q")
    commit(project, a=MARK)
    agent = served.agent(MARK, f"echo {MARK}")
    task = served.post("/api/issues", {"title": MARK, "body": MARK, "cwd": str(project)}, 201)["id"]
    wish = {"issueId": task}
    run = served.ended(served.post(f"/api/agents/{agent}/wakeup", wish, 202)["runId"])["id"]
    asked = {"kind": "request_confirmation", "title": MARK}
    question = served.post(f"/api/issues/{task}/interactions", asked, 201)["id"]
    comment = served.post(f"/api/issues/{task}/comments", {"body": MARK}, 201)["id"]
    approval = served.post("/api/approvals", {"kind": MARK}, 201, headers=served.person)["id"]
    place = served.post("/api/environments", {"name": MARK}, 201, headers=served.person)["id"]
    served.ask("PUT", f"/api/secrets/{MARK}", json={"value": MARK * 2}, headers=served.person)
    job = served.get("/api/jobs")["items"][0]["id"]
    workspace = served.get("/api/workspaces")["items"][0]["id"]
    parts = {
        **{"agent_id": agent, "issue_id": task, "run_id": run, "interaction_id": question},
        **{"comment_id": comment, "approval_id": approval, "environment_id": place},
        **{"job_id": job, "entry_id": "1o0.0", "company_id": "local", "name": MARK},
        **{"operation_id": "x", "workspace_id": workspace},
    }
    queries = {"companyId": "local", "agentId": agent, "issueId": task, "runId": run}
    ids = (MARK, agent, task, run, question, comment, approval, place, workspace)
    return Ours(parts, queries, ids)


def ask(served: Served, route: Route, ours: Ours, headers: dict[str, str], **query: str) -> Any:
    path = route.path
    for part in route.parts:
        path = path.replace(f"{{{part}}}", ours.parts.get(part, "process"))
    body: Any = (
        {"json": {**BODY, "agentId": ours.parts["agent_id"]}} if route.method != "get" else {}
    )
    params = {"q": "o"} | query if "q" in route.queries else query
    return served.client.request(route.method, path, params=params, headers=headers, **body)


def test_every_part_of_an_address_is_known_to_this_test(served: Served, ours: Ours) -> None:
    parts = {part for route in routes(served) for part in route.parts}
    assert parts - ours.parts.keys() == {"type"}


def test_the_token_of_a_run_that_is_over_opens_nothing(served: Served, ours: Ours) -> None:
    over = served.tokens.for_run(ours.parts["run_id"], ours.parts["agent_id"], "local")
    asked = 0
    for route in routes(served):
        if route.path not in PUBLIC:
            answer = ask(served, route, ours, {"authorization": f"Bearer {over}"})
            assert answer.status_code == 401, route.name
            asked += 1
    assert asked > 70


def test_no_route_tells_another_company_anything(
    served: Served, ours: Ours, stranger: Working
) -> None:
    before = served.get(f"/api/issues/{ours.parts['issue_id']}")
    for route in routes(served):
        if route.path in PUBLIC | ENDLESS:
            continue
        answer = ask(served, route, ours, stranger.headers)
        assert answer.status_code < 500, route.name
        told = answer.text.replace(str(answer.url), "")
        assert [id for id in ours.ids if id in told and answer.is_success] == [], route.name
        if set(route.parts) & ours.parts.keys():
            assert answer.status_code in (403, 404), f"{route.name}: {answer.text}"
    assert served.get(f"/api/issues/{ours.parts['issue_id']}") == before


def test_no_filter_reaches_into_another_company(
    served: Served, ours: Ours, stranger: Working
) -> None:
    asked = 0
    for route in routes(served):
        for name in set(route.queries) & ours.queries.keys():
            if route.path not in ENDLESS and route.method == "get":
                answer = ask(served, route, ours, stranger.headers, **{name: ours.queries[name]})
                items = answer.json().get("items", []) if answer.is_success else []
                assert items == [], f"{route.name} by {name}"
                assert MARK not in answer.text
                asked += 1
    assert asked > 10


def test_the_same_addresses_answer_a_person(served: Served, ours: Ours) -> None:
    """Otherwise a wrong address would pass for a refusal."""
    asked = 0
    for route in routes(served):
        if route.method == "get" and set(route.parts) & ours.parts.keys():
            answer = ask(served, route, ours, served.person)
            assert answer.status_code == 200, f"{route.name}: {answer.text}"
            asked += 1
    assert asked > 15


def test_the_stream_of_lists_tells_an_agent_of_its_own_company_only(
    served: Served, ours: Ours, stranger: Working
) -> None:
    theirs = served.agent("theirs", "true", companyId=stranger.company_id)
    with events(served, "/api/events", headers=stranger.headers) as heard:
        hidden = served.post(f"/api/agents/{ours.parts['agent_id']}/wakeup", {}, 202)["runId"]
        served.ended(hidden)
        shown = served.post(f"/api/agents/{theirs}/wakeup", {}, 202)["runId"]
        told = (event.data for event in heard if event.name == "run")
        companies = []
        for run in told:
            companies.append(run["companyId"])
            if run["id"] == shown:
                break
        assert set(companies) == {stranger.company_id}
