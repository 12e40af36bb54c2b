"""The control plane over HTTP: agents, issues, comments, decisions, settings, repeats."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from binderclip.contract.ids import new_id
from binderclip.store.database import Database
from binderclip.store.operations import Operations
from tests.server.conftest import Served
from tests.server.test_auth import Working, working

NOW = "2026-01-01T00:00:00.000Z"
_names = (f"agent {n}" for n in itertools.count())


@pytest.fixture(scope="module")
def agent(served: Served) -> Any:
    one = working(served)
    yield one
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True})


def issue(served: Served, title: str = "a task", **fields: Any) -> Any:
    return served.post("/api/issues", {"title": title, **fields}, 201)


def test_an_agent_is_made_changed_and_archived(served: Served) -> None:
    id = served.agent("Grace", "true", heartbeatMinutes=60)
    assert served.get(f"/api/agents/{id}")["nextBeatAt"]
    changed = served.ask("PATCH", f"/api/agents/{id}", json={"name": "Hopper", "role": "admiral"})
    assert (changed["name"], changed["role"], changed["heartbeatMinutes"]) == (
        "Hopper",
        "admiral",
        60,
    )
    assert served.ask("PATCH", f"/api/agents/{id}", json={"role": None})["role"] is None
    assert served.ask("DELETE", f"/api/agents/{id}")["status"] == "archived"
    assert id not in [one["id"] for one in served.get("/api/agents?limit=200")["items"]]
    archived = served.get("/api/agents?status=archived")["items"]
    assert id in [one["id"] for one in archived]
    refused = served.post(f"/api/agents/{id}/wakeup", {}, 409)
    assert refused["error"]["code"] == "agent_archived"


def test_a_bad_configuration_is_422_and_names_field_and_problem(served: Served) -> None:
    """F1: bad config gets a 422 that names field, problem and fix."""
    body = {"name": next(_names), "adapterType": "process"}
    wrong = {**body, "adapterConfig": {"command": "sh", "timeoutSec": "soon"}}
    refused = served.post("/api/agents", wrong, 422)["error"]
    assert refused["code"] == "bad_config"
    assert "timeoutSec" in refused["fields"]
    unknown = served.post("/api/agents", {**body, "adapterType": "my_k8s"}, 422)["error"]
    assert (unknown["code"], list(unknown["fields"])) == ("unknown_adapter", ["adapterType"])
    missing = served.post("/api/agents", {"adapterType": "process"}, 422)["error"]
    assert (missing["code"], list(missing["fields"])) == ("invalid_request", ["name"])


def test_secrets_of_a_configuration_are_never_told_again(served: Served) -> None:
    """D7: secrets are stored encrypted and shown as references."""
    config = {"command": "sh", "env": {"SOME_API_KEY": "hunter2hunter2"}}
    body = {"name": next(_names), "adapterType": "process", "adapterConfig": config}
    made = served.post("/api/agents", body, 201)
    told = served.client.get(f"/api/agents/{made['id']}").text
    assert "hunter2" not in told + served.client.get("/api/secrets").text
    assert "secret" in made["adapterConfig"]["env"]["SOME_API_KEY"]


def test_waiting_wakes_of_one_agent_and_task_share_a_run(served: Served) -> None:
    """R2: wakes that wait are coalesced and keep all reasons."""
    id = served.agent(next(_names), "sleep 600")
    first = served.post(f"/api/agents/{id}/wakeup", {"prompt": "one"}, 202)
    task = issue(served, assigneeAgentId=id)["id"]
    (queued,) = served.get(f"/api/runs?issueId={task}")["items"]
    second = served.post(f"/api/agents/{id}/wakeup", {"issueId": task, "prompt": "two"}, 202)
    assert second == {"runId": queued["id"], "status": "queued", "coalesced": True}
    view = served.get(f"/api/runs/{queued['id']}")
    assert view["wakeReasons"] == ["assignment", "manual"]
    assert "at once" in view["waitingFor"]
    cancelled = served.post(f"/api/runs/{queued['id']}/cancel", {}, 202)
    assert cancelled["status"] == "cancelled"
    served.post(f"/api/runs/{first['runId']}/cancel", {"kill": True}, 202)


def test_an_issue_lives_as_paperclips_agents_know_it(served: Served, agent: Working) -> None:
    """R4: the routes of existing agents, in the order in which they use them."""
    ask = {"headers": {**agent.headers, "X-Paperclip-Run-Id": agent.run_id}}
    me = served.get("/api/agents/me", **ask)
    made = served.post(
        f"/api/companies/{me['companyId']}/issues",
        {"title": "Fix it", "description": "All of it", "assigneeAgentId": me["id"]},
        201,
        **ask,
    )
    listed = served.get(
        f"/api/companies/{me['companyId']}/issues?assigneeAgentId={me['id']}&status=todo", **ask
    )
    assert [one["id"] for one in listed] == [made["id"]]
    taken = served.post(
        f"/api/issues/{made['id']}/checkout",
        {"agentId": me["id"], "expectedStatuses": ["todo"]},
        200,
        **ask,
    )
    assert (taken["status"], taken["checkoutRunId"]) == ("in_progress", agent.run_id)
    served.post(f"/api/issues/{made['id']}/comments", {"body": "On it"}, 201, **ask)
    done = served.ask(
        "PATCH", f"/api/issues/{made['id']}", json={"status": "done", "comment": "Did it"}, **ask
    )
    assert (done["status"], done["description"]) == ("done", "All of it")
    said = served.get(f"/api/issues/{made['identifier']}/comments", **ask)
    assert [(c["body"], c["author"], c["runId"]) for c in said] == [
        ("On it", f"agent:{me['id']}", agent.run_id),
        ("Did it", f"agent:{me['id']}", agent.run_id),
    ]
    after = served.get(f"/api/issues/{made['id']}/comments?after={said[0]['id']}", **ask)
    assert [c["body"] for c in after] == ["Did it"]


def test_a_task_is_checked_out_once(served: Served, agent: Working) -> None:
    other = working(served)
    task = issue(served)["id"]
    served.post(f"/api/issues/{task}/checkout", {}, 200, headers=agent.headers)
    served.post(f"/api/issues/{task}/checkout", {}, 200, headers=agent.headers)
    refused = served.post(f"/api/issues/{task}/checkout", {}, 409, headers=other.headers)
    assert refused["error"]["code"] == "checked_out"
    change = {"json": {"status": "done"}, "headers": other.headers}
    assert served.ask("PATCH", f"/api/issues/{task}", 409, **change)
    expected = {"expectedStatuses": ["backlog"]}
    second = issue(served)["id"]
    stale = served.post(f"/api/issues/{second}/checkout", expected, 409, headers=other.headers)
    assert stale["error"]["code"] == "unexpected_status"
    served.post(f"/api/issues/{task}/release", None, 409, headers=other.headers)
    freed = served.post(f"/api/issues/{task}/release", None, 200, headers=agent.headers)
    assert freed["checkoutRunId"] is None
    served.post(f"/api/issues/{task}/checkout", {}, 403)
    served.post(f"/api/runs/{other.run_id}/cancel", {"kill": True}, 202)


def test_a_task_says_how_its_worktree_is_made(served: Served) -> None:
    """W1: what cannot be a branch or a ref is refused when it is written."""
    how = {"branchTemplate": "fix/{task}", "baseRef": "v1.2~3", "withDirtyFiles": True}
    made = served.post("/api/issues", {"title": "one", **how}, 201)
    assert {name: made[name] for name in how} == how
    path = f"/api/issues/{made['id']}"
    for name, wrong in (
        ("branchTemplate", "-D"),
        ("branchTemplate", "a b"),
        ("branchTemplate", "a..b"),
        ("branchTemplate", "x.lock"),
        ("branchTemplate", "@{-1}"),
        ("baseRef", "--all"),
        ("baseRef", "a\nb"),
    ):
        refused = served.ask("PATCH", path, 422, json={name: wrong})
        assert list(refused["error"]["fields"]) == [name], wrong
    change = {"branchTemplate": None, "withDirtyFiles": None}
    changed = served.ask("PATCH", path, json=change)
    assert (changed["branchTemplate"], changed["withDirtyFiles"]) == (None, True)


def test_issues_are_filtered_and_paged(served: Served) -> None:
    marker = new_id()
    ids = [issue(served, f"{marker} {n}")["id"] for n in range(5)]
    page = served.get(f"/api/issues?q={marker}&limit=3")
    rest = served.get(f"/api/issues?q={marker}&limit=3&cursor={page['next']}")
    assert [one["id"] for one in page["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None
    response = served.client.get(f"/api/companies/local/issues?q={marker}&limit=3")
    cursor = response.headers["x-next-cursor"]
    last = served.get(f"/api/companies/local/issues?q={marker}&limit=3&cursor={cursor}")
    assert [one["id"] for one in last] == ids[1::-1]


def test_a_task_that_others_wait_for_wakes_them_when_it_is_done(served: Served) -> None:
    """W3: a dependent task wakes when its blockers are done."""
    id = served.agent(next(_names), "true")
    blocker = issue(served, "first")["id"]
    waiting = issue(served, "then", assigneeAgentId=id, blockedBy=[blocker])["id"]
    assert served.get(f"/api/runs?issueId={waiting}")["items"] == []
    served.ask("PATCH", f"/api/issues/{blocker}", json={"status": "done"})
    (run,) = served.get(f"/api/runs?issueId={waiting}")["items"]
    assert run["wakeReasons"] == ["dependency"]


def asked(
    served: Served, agent: Working, kind: str = "request_confirmation", **payload: Any
) -> Any:
    task = issue(served)["id"]
    body = {"kind": kind, "payload": payload, "title": "May I?"}
    made = served.post(f"/api/issues/{task}/interactions", body, 201, headers=agent.headers)
    return f"/api/issues/{task}/interactions/{made['id']}", made


def test_a_person_accepts_once(served: Served, agent: Working) -> None:
    path, made = asked(served, agent)
    assert (made["agentId"], made["runId"]) == (agent.agent_id, agent.run_id)
    assert made["id"] in [i["id"] for i in served.get("/api/interactions?status=open")["items"]]
    accepted = served.post(f"{path}/accept", {"note": "go"}, 200, headers=served.person)
    assert (accepted["status"], accepted["response"]) == ("accepted", {"note": "go"})
    again = served.post(f"{path}/reject", {}, 409, headers=served.person)
    assert again["error"]["code"] == "already_resolved"


@pytest.mark.parametrize(
    ("ended", "code"),
    [(None, "workspace_finalize_pending"), ("failed", "workspace_finalize_failed")],
)
def test_accepting_waits_for_the_workspace(
    served: Served, database: Database, ended: Any, code: str
) -> None:
    """W4: 409 while the workspace of the run that asked is not finalized, until it is waived."""
    one = working(served)
    path, _ = asked(served, one)
    with database.writing() as connection:
        operation = Operations(connection).begin(one.run_id, None, "workspace_finalize", NOW)
        if ended:
            Operations(connection).end(operation.id, ended, NOW, "disk full")
    refused = served.post(f"{path}/accept", {}, 409, headers=served.person)
    assert refused["error"]["code"] == code
    waive = f"/api/workspaces/operations/{operation.id}/waive"
    if ended is None:
        served.post(waive, {"reason": "r"}, 409, headers=served.person)
        with database.writing() as connection:
            Operations(connection).end(operation.id, "succeeded", NOW)
    else:
        waived = served.post(waive, {"reason": "kept by hand"}, 200, headers=served.person)
        assert waived["waiveReason"] == "kept by hand"
    assert served.post(f"{path}/accept", {}, 200, headers=served.person)["status"] == "accepted"
    listed = served.get(f"/api/workspaces/operations?runId={one.run_id}")["items"]
    assert operation.id in [item["id"] for item in listed]
    served.post(f"/api/runs/{one.run_id}/cancel", {"kill": True}, 202)


def test_suggested_tasks_are_made_when_they_are_accepted(served: Served, agent: Working) -> None:
    marker = new_id()
    path, _ = asked(
        served, agent, "suggest_tasks", tasks=[{"title": f"{marker} a"}, {"title": "b"}]
    )
    kept = {"tasks": [{"title": f"{marker} a"}]}
    served.post(f"{path}/accept", kept, 200, headers=served.person)
    assert [t["title"] for t in served.get(f"/api/issues?q={marker}")["items"]] == [f"{marker} a"]


def test_questions_are_answered(served: Served, agent: Working) -> None:
    path, _ = asked(served, agent, "ask_user_questions", questions=["Which?"])
    answered = served.post(f"{path}/respond", {"answers": ["this"]}, 200, headers=served.person)
    assert answered["response"] == {"answers": ["this"]}


def test_an_agent_that_wants_to_hire_waits_for_approval(served: Served, agent: Working) -> None:
    name = next(_names)
    body = {"name": name, "adapterType": "process", "adapterConfig": {"command": "sh"}}
    approval = served.post("/api/agents", body, 202, headers=agent.headers)
    assert (approval["kind"], approval["status"]) == ("hire_agent", "pending")
    path = f"/api/approvals/{approval['id']}"
    assert served.get(path, headers=agent.headers)["status"] == "pending"
    assert name not in [a["name"] for a in served.get("/api/agents?limit=200")["items"]]
    approved = served.post(f"{path}/approve", {"note": "ok"}, 200, headers=served.person)
    assert approved["decisionNote"] == "ok"
    assert name in [a["name"] for a in served.get("/api/agents?limit=200")["items"]]
    served.post(f"{path}/approve", {}, 409, headers=served.person)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/issues", {"title": "once"}),
        ("/api/companies", {"name": "once"}),
        (
            "/api/agents",
            {"name": "once", "adapterType": "process", "adapterConfig": {"command": "sh"}},
        ),
        ("/api/approvals", {"kind": "once"}),
    ],
)
def test_a_repeated_request_with_its_key_makes_nothing_new(
    served: Served, path: str, body: Any
) -> None:
    headers = {"Idempotency-Key": new_id()}
    first = served.client.post(path, json=body, headers=headers)
    again = served.client.post(path, json=body, headers=headers)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = dict.fromkeys(body, "another") | {"adapterConfig": {}}
    reused = served.post(path, other, 422, headers=headers)
    assert reused["error"]["code"] == "idempotency_key_reused"


def test_a_company_can_forbid_dangerous_flags(served: Served) -> None:
    """A12: a company can forbid them."""
    company = served.post("/api/companies", {"name": "Careful"}, 201)["id"]
    policy = {"json": {"forbidDangerous": True, "network": "none"}, "headers": served.person}
    assert served.ask("PATCH", f"/api/companies/{company}", **policy)["forbidDangerous"]
    config = {"dangerouslySkipPermissions": True}
    body = {
        "name": "x",
        "adapterType": "claude_local",
        "adapterConfig": config,
        "companyId": company,
    }
    refused = served.post("/api/agents", body, 422)["error"]
    assert refused["fields"] == {"dangerouslySkipPermissions": "forbidden by the company"}


def test_environments_come_and_go(served: Served) -> None:
    ask: dict[str, Any] = {"headers": served.person}
    made = served.post("/api/environments", {"name": "box", "kind": "ssh"}, 201, **ask)
    path = f"/api/environments/{made['id']}"
    assert served.ask("PATCH", path, json={"name": "bigger box"}, **ask)["name"] == "bigger box"
    assert served.get(path)["kind"] == "ssh"
    served.post("/api/environments", {"name": "bigger box"}, 409, **ask)
    served.ask("DELETE", path, 204, **ask)
    served.get(path, 404)


def test_plain_lists_lead_on_by_a_header(served: Served) -> None:
    """R4, design 6: what existing agents read as an array is paged as well."""
    company = served.post("/api/companies", {"name": "Headed"}, 201)["id"]
    task = served.post(f"/api/companies/{company}/issues", {"title": "ask"}, 201)["id"]
    new = {"adapterType": "process", "adapterConfig": {"command": "true"}, "companyId": company}
    question = {"kind": "ask_user_questions", "payload": {"questions": ["Which?"]}}
    for name in ("A", "B", "C"):
        served.post("/api/agents", {"name": name, **new}, 201)
        served.post(f"/api/issues/{task}/interactions", question, 201)
    for path in (f"/api/companies/{company}/agents", f"/api/issues/{task}/interactions"):
        whole = served.client.get(path)
        first = served.client.get(f"{path}?limit=2")
        rest = served.client.get(f"{path}?limit=2&cursor={first.headers['x-next-cursor']}")
        assert len(whole.json()) == 3
        assert first.json() + rest.json() == whole.json()
        assert "x-next-cursor" not in whole.headers.keys() | rest.headers.keys()
    assert served.get(f"/api/companies/{company}/agents?status=archived") == []
    assert served.get(f"/api/issues/{task}/interactions?status=accepted") == []


def assert_paged(served: Served, path: str) -> list[str]:
    """Pages of two add up to the whole list, which comes without a limit; its names."""
    whole, first = served.get(path), served.get(f"{path}&limit=2")
    rest = served.get(f"{path}&limit=2&cursor={first['next']}")
    assert (len(first["items"]), whole["next"], rest["next"]) == (2, None, None)
    assert first["items"] + rest["items"] == whole["items"]
    return [one["name"] for one in whole["items"]]


def test_short_lists_come_in_pages_to_whoever_asks_for_them(served: Served) -> None:
    """Design 6: every list is paged."""
    names = ["paged A", "paged B", "paged C"]
    for name in names:
        company = served.post("/api/companies", {"name": name}, 201)["id"]
    of = {"companyId": company}
    for name in names:
        new = {"name": name, "kind": "ssh", **of}
        served.post("/api/environments", new, 201, headers=served.person)
        secret = {"json": {"value": "12345678", **of}, "headers": served.person}
        served.ask("PUT", f"/api/secrets/{name}", **secret)
    assert assert_paged(served, "/api/companies?q=PAGED") == names
    assert assert_paged(served, f"/api/environments?companyId={company}") == names
    assert assert_paged(served, f"/api/secrets?companyId={company}") == names


def test_adapters_are_listed_described_and_tested(served: Served) -> None:
    """C2, F3: what forms and pages are drawn from."""
    views = {view["type"]: view for view in served.get("/api/adapters")}
    assert views["claude_local"]["capabilities"]["supportsLocalAgentJwt"]
    assert {"type", "label", "source", "version", "state", "disabled", "models", "parser"} <= set(
        views["process"]
    )
    assert "Use when" in served.get("/api/adapters/claude_local")["agentConfigurationDoc"]
    schema = served.get("/api/adapters/process/config-schema")
    assert "command" in [field["key"] for field in schema["fields"]]
    assert schema["jsonSchema"]["type"] == "object"
    told = served.get("/api/adapters/claude_local/models")
    assert told["models"][0]["id"]
    assert told["source"] == "declared"
    body = {"config": {"command": "no-such-program", "cwd": "/"}}
    report = served.post("/api/adapters/process/test-environment", body, 200)
    assert report["status"] == "fail"
    for path in ("", "/config-schema", "/models", "/ui-parser.js"):
        served.get(f"/api/adapters/nothing{path}", 404)
    served.get("/api/adapters/process/ui-parser.js", 404)
    served.get("/api/process/ui-parser.js", 404)


def test_history_costs_and_activity_tell_what_happened(served: Served, waiting: Any) -> None:
    run = served.ran("echo hello")
    agent_id = run["agentId"]
    (line,) = served.get(f"/api/costs?agentId={agent_id}")["items"]
    assert (line["runs"], line["runsOfUnknownCost"]) == (1, 1)
    trail = served.get(f"/api/activity?subjectKind=agent&subjectId={agent_id}")["items"]
    assert [item["verb"] for item in trail] == ["created"]
    (checkpoint,) = waiting(lambda: served.get(f"/api/runs/{run['id']}/checkpoints"))
    detail = served.get(f"/api/jobs/{checkpoint['jobId']}")
    assert [one["id"] for one in detail["runs"]] == [run["id"]]
    assert checkpoint["jobId"] in [job["id"] for job in served.get("/api/jobs")["items"]]
    assert served.get(f"/api/runs/{run['id']}/job") == detail


def test_a_job_is_a_file_to_share_as_its_runs_are(served: Served, waiting: Any) -> None:
    """N4: all formats of a job by its id, with a name that says what it is."""
    run = served.ran("echo hello")
    (checkpoint,) = waiting(lambda: served.get(f"/api/runs/{run['id']}/checkpoints"))
    job_id = checkpoint["jobId"]
    for format in ("entries", "events", "markdown", "html"):
        answer = served.client.get(f"/api/jobs/{job_id}/export?format={format}")
        assert answer.status_code == 200
        assert "hello" in answer.text
        assert f"job-{job_id[-8:]}." in answer.headers["content-disposition"]
    served.get(f"/api/jobs/{run['id']}/export", 404)


def test_the_events_of_a_run_are_told_page_by_page(served: Served, waiting: Any) -> None:
    """N3, N4: the same events as the export's, in order; none before the run is over."""
    run_id = served.ran("echo hello")["id"]
    waiting(lambda: served.get(f"/api/runs/{run_id}/checkpoints"))
    whole = served.get(f"/api/runs/{run_id}/events")
    assert [whole["items"][0]["type"], whole["items"][-1]["type"]] == [
        "initializeRuntime",
        "completeRun",
    ]
    assert whole["next"] is None
    page = served.get(f"/api/runs/{run_id}/events?limit=1&cursor=1")
    assert (page["items"], page["next"]) == (whole["items"][1:2], "2")


def test_a_run_without_a_prompt_is_called_by_its_command_line(served: Served) -> None:
    run = served.ran("echo two words")
    assert (run["prompt"], run["title"]) == (None, "sh -c 'echo two words'")
    (listed,) = served.get(f"/api/runs?agentId={run['agentId']}")["items"]
    assert listed["title"] == run["title"]


@pytest.mark.parametrize(
    ("format", "media"),
    [
        ("html", "text/html; charset=utf-8"),
        ("markdown", "text/markdown; charset=utf-8"),
        ("entries", "application/jsonl"),
        ("events", "application/jsonl"),
    ],
)
def test_a_run_is_exported(served: Served, format: str, media: str) -> None:
    run = served.ran("echo exported words")
    response = served.client.get(f"/api/runs/{run['id']}/export?format={format}")
    assert response.headers["content-type"] == media
    assert "exported words" in response.text
    assert "attachment" in response.headers["content-disposition"]


def test_an_export_with_something_like_a_secret_is_refused_unless_masked(served: Served) -> None:
    key = "sk-ant-" + "api03-" + "A" * 40
    run = served.ran(f"echo {key}")
    path = f"/api/runs/{run['id']}/export?format=markdown"
    refused = served.get(path, 409)["error"]
    assert key not in str(refused)
    masked = served.client.get(f"{path}&redact=true")
    assert masked.status_code == 200
    assert key not in masked.text


def test_sessions_are_listed_and_reset(served: Served, database: Database) -> None:
    from binderclip.contract.session import StoredSession
    from binderclip.store.runs import RunStore

    session = StoredSession(agent_id="a9", adapter_type="x", task_key="t", params={"s": 1})
    RunStore(database).save_session(session)
    assert served.get("/api/sessions?agentId=a9")["items"][0]["params"] == {"s": 1}
    key = {"agentId": "a9", "adapterType": "x", "taskKey": "t"}
    served.post("/api/sessions/reset", key, 204)
    assert served.get("/api/sessions?agentId=a9")["items"] == []
    served.post("/api/sessions/reset", key, 404)


def test_health_and_unknown_paths(served: Served) -> None:
    assert served.get("/api/health")["status"] == "ok"
    assert served.get("/api/nothing/here", 404)["error"]["code"] == "not_found"
    wrong = served.ask("PUT", "/api/runs", 405)
    assert wrong["error"]["code"] == "method_not_allowed"
