"""Tasks in a real browser: writing, discussing, deciding."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)


@pytest.fixture
def worker(stage: Stage) -> str:
    """The name of an agent that does nothing, quickly."""
    name = f"Worker {next(_numbers)}"
    config = {"command": "true", "cwd": str(stage.cwd)}
    body = {"name": name, "adapterType": "process", "adapterConfig": config}
    httpx.post(f"{stage.address}/api/agents", json=body).raise_for_status()
    return name


def test_a_task_is_written_assigned_and_a_comment_wakes_its_agent(
    open_page: Open, worker: str
) -> None:
    """R1, R2: the thread shows messages and the runs that they woke, without a reload."""
    page = open_page("/tasks")
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Title").fill("Count the stars")
    page.get_by_label("What shall be done").fill("All **of** them")
    page.get_by_label("Assignee").select_option(worker)
    page.get_by_role("button", name="Create task").click()
    expect(page.get_by_role("heading", name="Count the stars")).to_be_visible()
    expect(page.locator("strong", has_text="of")).to_be_visible()
    ended = page.locator(".thread").get_by_role("img", name="succeeded")
    expect(ended).to_have_count(1)
    page.get_by_label("Comment").fill("Once more, please.")
    page.get_by_role("button", name="Comment").click()
    expect(page.get_by_text("Once more, please.")).to_be_visible()
    expect(ended).to_have_count(2)
    page.get_by_role("link", name="Tasks").click()
    page.get_by_role("button", name="Board").click()
    expect(page.get_by_role("region", name="To do")).to_contain_text("Count the stars")


def test_a_question_is_marked_and_a_person_accepts_it(open_page: Open, stage: Stage) -> None:
    """R3, W4: only a person accepts; who opened the page without its token is told."""
    api = f"{stage.address}/api/issues"
    task = httpx.post(api, json={"title": f"Decide {next(_numbers)}"}).json()
    asked = {"kind": "request_confirmation", "title": "Drop format v1?"}
    httpx.post(f"{api}/{task['id']}/interactions", json=asked).raise_for_status()
    page = open_page("/tasks")
    row = page.get_by_role("link", name=re.compile(task["title"]))
    expect(row).to_contain_text("asks you something")
    row.click()
    question = page.get_by_role("region", name="Question")
    expect(question).to_contain_text("Drop format v1?")
    question.get_by_role("button", name="Accept").click()
    expect(question.get_by_role("alert")).to_be_visible()
    token = (stage.home / "token").read_text().strip()
    page.goto(f"{stage.address}/?token={token}")
    page.goto(f"{stage.address}/tasks/{task['id']}")
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_role("region", name="Question")).to_contain_text("accepted")
