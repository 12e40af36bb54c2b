"""What else belongs to an agent, in a real browser: budgets, skills, instructions, sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from binderclip.contract.session import StoredSession
from binderclip.store import sessions
from binderclip.store.database import Database
from binderclip.store.home import Home
from tests.browser.stage import Stage
from tests.plugins.conftest import write_python

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)


def made(stage: Stage, type: str, **config: Any) -> str:
    """An agent of this type."""
    config = {"cwd": str(stage.cwd), **config}
    body = {"name": f"{type} {next(_numbers)}", "adapterType": type, "adapterConfig": config}
    answer = httpx.post(f"{stage.address}/api/agents", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_budget_is_set_by_a_person_and_says_what_it_can_stop(
    open_page: Open, open_as_person: Open, stage: Stage
) -> None:
    """D10, R3: per agent and per run; a runtime that never tells its usage is not hidden."""
    agent = made(stage, "process", command="true")
    page = open_page(f"/agents/{agent}?tab=budget")
    expect(page.get_by_text("never tells its usage")).to_be_visible()
    page.get_by_label("Money, USD").first.fill("5")
    page.get_by_label("Money, USD").first.press("Enter")
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("alert")).to_contain_text("binderclip up")
    page = open_as_person(f"/agents/{agent}?tab=budget")
    for label, value in (("Money, USD", "5"), ("Runs", "40")):
        field = page.get_by_label(label).first
        field.fill(value)
        field.blur()
    page.get_by_label("Minutes of work").last.fill("30")
    page.get_by_label("Minutes of work").last.blur()
    page.get_by_label("counted").select_option("day")
    page.get_by_role("button", name="Save 4 changes").click()
    expect(page.get_by_text("$0 of $5.00")).to_be_visible()
    expect(page.get_by_role("meter", name="runs used")).to_have_attribute("aria-valuenow", "0")
    kept = httpx.get(f"{stage.address}/api/agents/{agent}").json()
    assert kept["budget"] == {
        "usd": 5.0, "tokens": None, "runs": 40, "minutes": None, "period": "day",
    }  # fmt: skip
    assert kept["runBudget"]["minutes"] == 30
    page.get_by_label("Money, USD").first.fill("")
    page.get_by_label("Money, USD").first.blur()
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_text("$0 of $5.00")).to_have_count(0)


def test_a_runtime_that_tells_each_step_is_stopped_in_flight(open_page: Open, stage: Stage) -> None:
    """D10: `usageTold` decides the words."""
    page = open_page(f"/agents/{made(stage, 'opencode_local')}?tab=budget")
    expect(page.get_by_text("every budget stops a run in flight")).to_be_visible()


def test_skills_and_instructions_are_there_only_where_the_adapter_takes_them(
    open_page: Open, stage: Stage
) -> None:
    """C2: decided by capabilities; the tab tells what is handed over, and from where."""
    skill = stage.cwd / ".claude" / "skills" / "deploy-it"
    skill.mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text("---\nname: deploy-it\n---\n")
    agent = made(stage, "claude_local")
    page = open_page(f"/agents/{agent}")
    page.get_by_role("tab", name="Skills").click()
    expect(page.get_by_text("paperclip-create-agent", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"skills/paperclip$"))).to_be_visible()
    expect(page.get_by_text("deploy-it")).to_be_visible()
    page.get_by_role("tab", name="Configuration").click()
    page.get_by_label("Instructions", exact=True).fill("Be brief.")
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("button", name="Saved")).to_be_visible()
    assert httpx.get(f"{stage.address}/api/agents/{agent}").json()["instructions"] == "Be brief."
    page = open_page(f"/agents/{made(stage, 'process', command='true')}?tab=config")
    expect(page.get_by_role("textbox", name="Command")).to_be_visible()
    expect(page.get_by_label("Instructions", exact=True)).to_have_count(0)
    expect(page.get_by_role("tab", name="Skills")).to_have_count(0)


def test_a_session_is_seen_and_reset_by_hand(open_page: Open, stage: Stage) -> None:
    """S5: what would be resumed is told; a reset leaves nothing to resume."""
    agent = made(stage, "claude_local")
    kept = StoredSession(
        agent_id=agent,
        adapter_type="claude_local",
        task_key="heartbeat",
        params={"sessionId": "abc-12345678"},
        display_id="abc-12345678",
        cwd=str(stage.cwd),
        runs=3,
        tokens=1200,
        created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z",
    )
    with Database.open(Home(stage.home)) as database, database.writing() as connection:
        sessions.save(connection, kept)
    page = open_page(f"/agents/{agent}")
    expect(page.get_by_text("3 runs, 1.2k tokens")).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("No session is kept")).to_be_visible()
    left = httpx.get(f"{stage.address}/api/sessions?agentId={agent}").json()["items"]
    assert left == []


def test_dangerous_switches_are_marked_and_defaults_are_visible(
    open_page: Open, stage: Stage
) -> None:
    """A12, F3: one sentence of consequence; an empty field shows what counts without it."""
    page = open_page(f"/agents/{made(stage, 'claude_local')}?tab=config")
    page.get_by_text("Dangerous", exact=False).first.click()
    expect(page.get_by_text("do anything that you can do on this machine")).to_be_visible()
    switch = page.get_by_role("checkbox", name=re.compile("skip permissions", re.I))
    expect(switch).not_to_be_checked()
    page.get_by_text("Limits", exact=False).first.click()
    limit = page.get_by_label("Idle limit, seconds")
    expect(limit).to_have_attribute("placeholder", "3600")
    limit.fill("many")
    limit.blur()
    expect(page.get_by_text("This must be a number.")).to_be_visible()


def test_where_and_how_often_it_works_is_part_of_the_form(open_page: Open, stage: Stage) -> None:
    """R2, W1: rhythm, concurrency and place; only what changed is sent."""
    agent = made(stage, "process", command="true")
    page = open_page(f"/agents/{agent}?tab=config")
    page.get_by_text("Rhythm and place").click()
    page.get_by_label("Wakes by itself").fill("90")
    page.get_by_label("Wakes by itself").blur()
    page.get_by_label("Works in").select_option("cwd")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        page.get_by_role("button", name="Save 2 changes").click()
    assert sent.value.post_data_json == {"heartbeatMinutes": 90, "workspace": "cwd"}
    expect(page.get_by_role("button", name="Saved")).to_be_visible()
    page.get_by_label("Wakes by itself").fill("")
    page.get_by_label("Wakes by itself").blur()
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("button", name="Saved")).to_be_visible()
    assert httpx.get(f"{stage.address}/api/agents/{agent}").json()["heartbeatMinutes"] is None


def test_a_secret_field_takes_a_stored_one_or_a_new_one(open_as_person: Open, stage: Stage) -> None:
    """D7, D8: the value goes to the store, its name into the configuration."""
    agent = made(stage, "http", url="http://127.0.0.1:9/")
    page = open_as_person(f"/agents/{agent}?tab=config")
    page.get_by_text("Advanced", exact=False).first.click()
    page.get_by_role("button", name="Keep a new secret").first.click()
    page.get_by_label("Name of the new secret").fill("ENDPOINT_KEY")
    page.get_by_label("Value of the new secret").fill("hunter2-hunter2")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("button", name="Saved")).to_be_visible()
    kept = httpx.get(f"{stage.address}/api/agents/{agent}").json()["adapterConfig"]
    assert kept["authToken"] == {"secret": "ENDPOINT_KEY"}
    assert "hunter2" not in page.content()


def test_an_agent_that_cannot_run_says_why_in_the_list(
    open_as_person: Open, stage: Stage, tmp_path: Path
) -> None:
    """E1, P6: a missing program with its fix; an adapter that is gone by its humanised name."""
    made(stage, "process", command="no-such-program-here")
    token = {"authorization": f"Bearer {(stage.home / 'token').read_text().strip()}"}
    with httpx.Client(base_url=stage.address, headers=token, timeout=60) as api:
        spec = str(write_python(tmp_path / "gone.py", "soon_gone"))
        api.post("/api/adapters/install", json={"spec": spec}).raise_for_status()
        made(stage, "soon_gone")
        api.delete("/api/adapters/soon_gone").raise_for_status()
    page = open_as_person("/agents")
    expect(page.get_by_text("Soon Gone is not installed here")).to_be_visible()
    expect(page.get_by_text("no-such-program-here").first).to_be_visible()
    page.get_by_role("link", name=re.compile("soon_gone")).click()
    expect(page.get_by_text("Soon Gone").first).to_be_visible()


def test_the_live_test_says_that_it_calls(open_page: Open, stage: Stage) -> None:
    """E2: quick and live are two buttons; a hint's command can be copied."""
    agent = made(stage, "process", command="echo")
    page = open_page(f"/agents/{agent}?tab=config")
    checks = page.get_by_label("Environment test")
    with page.expect_request(re.compile("test-environment")) as sent:
        checks.get_by_role("button", name="Test with a real call").click()
    assert sent.value.post_data_json["depth"] == "live"
    expect(checks).to_contain_text("It can run here")


def test_an_agent_that_wants_another_is_approved_by_a_person(
    open_as_person: Open, stage: Stage
) -> None:
    """R3: what an agent may only wish for waits on the page of agents."""
    payload = {"name": "Helper", "adapterType": "process", "adapterConfig": {"command": "true"}}
    wish = {"kind": "hire_agent", "payload": payload}
    httpx.post(f"{stage.address}/api/approvals", json=wish).raise_for_status()
    page = open_as_person("/agents")
    approval = page.get_by_role("region", name="Approval").filter(has_text="Helper")
    expect(approval).to_contain_text("wants to add the agent Helper")
    approval.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("link", name=re.compile("Helper"))).to_be_visible()
    expect(approval).to_have_count(0)
