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


def test_questions_are_answered_one_by_one_and_suggested_tasks_are_chosen(
    open_as_person: Open, stage: Stage
) -> None:
    """R1: an answer for each question; of the suggested tasks, those that a person keeps."""
    api = f"{stage.address}/api/issues"
    task = httpx.post(api, json={"title": f"Ask {next(_numbers)}"}).json()
    place = f"{api}/{task['id']}/interactions"
    asked = {"questions": ["Which region?", "Which day?"]}
    httpx.post(place, json={"kind": "ask_user_questions", "payload": asked}).raise_for_status()
    wished = {"tasks": [{"title": "Keep me"}, {"title": "Leave me"}]}
    httpx.post(place, json={"kind": "suggest_tasks", "payload": wished}).raise_for_status()
    page = open_as_person(f"/tasks/{task['id']}")
    answer = page.get_by_role("button", name="Answer")
    page.get_by_label("Which region?").fill("Europe")
    expect(answer).to_be_disabled()
    page.get_by_label("Which day?").fill("Friday")
    answer.click()
    expect(page.get_by_text("Europe")).to_be_visible()
    page.get_by_label("Leave me").uncheck()
    page.get_by_role("button", name="Accept 1 of 2").click()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)
    titles = {one["title"] for one in httpx.get(f"{api}?limit=200").json()["items"]}
    assert "Keep me" in titles
    assert "Leave me" not in titles
    (questions, _) = sorted(httpx.get(place).json(), key=lambda one: str(one["kind"]))
    assert questions["response"]["answers"][1] == {"question": "Which day?", "answer": "Friday"}


def test_a_task_is_edited_where_it_is_read(open_page: Open, stage: Stage) -> None:
    """F2: only what changed is sent, so that nothing else of the task moves."""
    api = f"{stage.address}/api/issues"
    task = httpx.post(api, json={"title": f"Old name {next(_numbers)}", "body": "why"}).json()
    page = open_page(f"/tasks/{task['id']}")
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    dialog.get_by_label("Title").fill("New name")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        dialog.get_by_role("button", name="Save").click()
    assert sent.value.post_data_json == {"title": "New name"}
    expect(page.get_by_role("heading", name="New name")).to_be_visible()


def test_a_task_is_named_alike_on_a_phone_and_by_its_run(
    open_page: Open, stage: Stage, worker: str
) -> None:
    """R1: its short name and its agent stand on the board and lead back from the run."""
    agents = httpx.get(f"{stage.address}/api/agents?limit=200").json()["items"]
    agent = next(one["id"] for one in agents if one["name"] == worker)
    wish = {"title": f"Named {next(_numbers)}", "assigneeAgentId": agent}
    task = httpx.post(f"{stage.address}/api/issues", json=wish).json()
    page = open_page("/tasks?view=board", 390, 844)
    card = page.get_by_role("link", name=re.compile(task["title"]))
    expect(card.get_by_text(task["identifier"])).to_be_visible()
    expect(card.get_by_text(worker)).to_be_visible()
    expect(page.get_by_role("button", name="New task")).to_be_visible()
    (run,) = httpx.get(f"{stage.address}/api/runs?issueId={task['id']}").json()["items"]
    page.goto(f"{stage.address}/runs/{run['id']}")
    page.get_by_role("link", name=f"task {task['identifier']}").click()
    expect(page.get_by_role("heading", name=task["title"])).to_be_visible()
