"""Workspaces in a real browser: seeing the work, taking it over, cleaning up, bringing it back."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from binderclip.contract.task import Interaction
from binderclip.store.database import Database
from binderclip.store.decisions import Interactions
from binderclip.store.home import Home
from binderclip.store.operations import FINALIZE, Operations
from tests.browser.stage import Stage
from tests.workspaces.conftest import commit, plain_git

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)
MAKE = "open('made.py', 'w').write('print(1)\\n')"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    plain_git(directory, "init", "-q", "-b", "main")
    commit(directory, "first", a="one\n")
    return directory


def task_with(stage: Stage, repository: Path, code: str) -> dict[str, Any]:
    """A task whose agent executes some Python in the repository."""
    number = next(_numbers)
    config = {"command": sys.executable, "args": ["-c", code], "cwd": str(repository)}
    body = {"name": f"Maker {number}", "adapterType": "process", "adapterConfig": config}
    with httpx.Client(base_url=stage.address) as api:
        agent = api.post("/api/agents", json=body).json()["id"]
        wish = {"title": f"Make things {number}", "assigneeAgentId": agent}
        task: dict[str, Any] = api.post("/api/issues", json=wish).json()
    return task


def opened(open_: Open, task: dict[str, Any]) -> Page:
    """The page of a task once its run is over."""
    page = open_(f"/tasks/{task['id']}")
    ended = page.locator(".thread").get_by_role("img", name="succeeded")
    expect(ended).to_have_count(1, timeout=20_000)
    return page


def run_of(stage: Stage, task: dict[str, Any]) -> str:
    (run,) = httpx.get(f"{stage.address}/api/runs?issueId={task['id']}").json()["items"]
    return str(run["id"])


def ask(stage: Stage, task: dict[str, Any]) -> None:
    """A question that the task's run left."""
    asked = Interaction(
        id="",
        task_id=task["id"],
        run_id=run_of(stage, task),
        agent_id=task["assigneeAgentId"],
        kind="request_confirmation",
        payload={"title": "Ship it?"},
    )
    with Database.open(Home(stage.home)) as database, database.writing() as connection:
        Interactions(connection).create(asked, "2026-01-01T00:00:00.000Z")


def begin(stage: Stage, task: dict[str, Any]) -> str:
    """A finalize of the task's run that is under way."""
    run = run_of(stage, task)
    with Database.open(Home(stage.home)) as database, database.writing() as connection:
        return Operations(connection).begin(run, task["id"], FINALIZE, "2026-01-01").id


def end(stage: Stage, operation: str, status: Any, error: str | None = None) -> None:
    with Database.open(Home(stage.home)) as database, database.writing() as connection:
        Operations(connection).end(operation, status, "2026-01-01", error)


def test_a_task_shows_its_changes_and_a_person_merges_them(
    open_as_person: Open, stage: Stage, repository: Path
) -> None:
    """W1, W2: the diff stands at the end of the thread; merging brings it into the checkout."""
    page = opened(open_as_person, task_with(stage, repository, MAKE))
    place = page.get_by_role("region", name="Workspace")
    expect(place).to_contain_text("1 file changed, 1 of them not committed")
    expect(place.get_by_role("region", name="Changes")).to_contain_text("print(1)")
    expect(place.get_by_label("Operations on the workspace")).to_contain_text(
        "Brought the work back"
    )
    place.get_by_role("button", name="Merge").click()
    expect(place.get_by_role("status")).to_contain_text("Merged 1 file into")
    assert (repository / "made.py").read_text() == "print(1)\n"
    expect(place).to_contain_text("Nothing is changed in it")


def test_changes_without_the_persons_token_say_what_to_do(
    open_page: Open, stage: Stage, repository: Path
) -> None:
    """R3: a refusal names the way."""
    page = opened(open_page, task_with(stage, repository, MAKE))
    place = page.get_by_role("region", name="Workspace")
    place.get_by_role("button", name="Merge").click()
    expect(place.get_by_role("alert")).to_contain_text("binderclip up")


def test_a_conflict_names_the_files_and_is_settled_by_a_choice(
    open_as_person: Open, stage: Stage, repository: Path
) -> None:
    """W6: nothing is overwritten until a person chose."""
    page = opened(open_as_person, task_with(stage, repository, "open('a', 'w').write('theirs\\n')"))
    (repository / "a").write_text("ours\n")
    place = page.get_by_role("region", name="Workspace")
    place.get_by_role("button", name="Merge").click()
    conflict = place.get_by_label("Conflict")
    expect(conflict.get_by_role("listitem")).to_have_text("a")
    assert (repository / "a").read_text() == "ours\n"
    conflict.get_by_role("button", name="Take the workspace's version").click()
    expect(place.get_by_role("status")).to_contain_text("Merged 1 file")
    assert (repository / "a").read_text() == "theirs\n"


def test_a_workspace_is_listed_exported_archived_and_cleaned(
    open_as_person: Open, stage: Stage, repository: Path
) -> None:
    """W8: cleaning says first what would go, and where the work is kept."""
    task = task_with(stage, repository, MAKE)
    opened(open_as_person, task)
    page = open_as_person("/tasks")
    page.get_by_role("link", name="Workspaces").click()
    row = page.get_by_role("link", name=re.compile(task["title"]))
    expect(row).to_contain_text("in use")
    expect(row).to_contain_text("kB")
    row.click()
    expect(page.get_by_role("region", name="Changes", exact=True)).to_contain_text("made.py")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Export as patch").click()
    assert "+print(1)" in saving.value.path().read_text()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("status")).to_contain_text("cleaning may remove it")
    page.get_by_role("link", name="All workspaces").click()
    page.get_by_role("button", name="Clean up").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="See what would go").click()
    expect(dialog).to_contain_text("1 workspace would go")
    expect(dialog).to_contain_text("would go: archived")
    dialog.get_by_role("button", name="Remove 1 workspace").click()
    expect(dialog).to_contain_text("refs/binderclip/saved/")
    dialog.get_by_role("button", name="Close").click()
    expect(row).to_have_count(0)


def test_work_that_did_not_come_back_is_waived_with_a_reason_or_tried_again(
    open_as_person: Open, stage: Stage, repository: Path
) -> None:
    """W4: both are a person's act, and the waiver is told."""
    task = task_with(stage, repository, MAKE)
    opened(open_as_person, task)
    end(stage, begin(stage, task), "failed", "the machine did not answer")
    page = opened(open_as_person, task)
    stuck = page.get_by_role("region", name="Work that did not come back")
    expect(stuck).to_contain_text("the machine did not answer")
    waive = stuck.get_by_role("button", name="Waive")
    expect(waive).to_be_disabled()
    stuck.get_by_label("Why it can be waived").fill("I have it already")
    waive.click()
    expect(page.get_by_text("Waived: I have it already").first).to_be_visible()
    expect(stuck).to_have_count(0)
    end(stage, begin(stage, task), "failed", "again")
    page.reload()
    stuck.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="Workspace").get_by_role("status")).to_contain_text(
        "The work is back"
    )


def test_accepting_waits_for_the_workspace_and_then_happens(
    open_as_person: Open, stage: Stage, repository: Path
) -> None:
    """W4: a 409 explains itself; what failed says what to do; what is pending is tried again."""
    task = task_with(stage, repository, MAKE)
    opened(open_as_person, task)
    ask(stage, task)
    operation = begin(stage, task)
    page = opened(open_as_person, task)
    question = page.get_by_role("region", name="Question")
    question.get_by_role("button", name="Accept").click()
    expect(question.get_by_role("alert")).to_contain_text("as soon as that is done")
    end(stage, operation, "failed", "no space left")
    expect(question.get_by_role("alert")).to_contain_text("waive it with a reason")
    operation = begin(stage, task)
    question.get_by_role("button", name="Accept").click()
    expect(question.get_by_role("button", name="Stop waiting")).to_be_visible()
    end(stage, operation, "succeeded")
    expect(question).to_contain_text("accepted")


def test_an_empty_list_says_how_a_workspace_comes_to_be(open_page: Open) -> None:
    page = open_page("/runs")
    page.route(
        re.compile("/api/workspaces$"),
        lambda route: route.fulfill(json={"items": [], "next": None}),
    )
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_text("No workspaces yet")).to_be_visible()
    page.get_by_role("link", name="Write a task").click()
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()


def test_what_a_task_waits_for_is_chosen_and_taken_back(open_page: Open, stage: Stage) -> None:
    """W3: blockers are set where the task is read."""
    with httpx.Client(base_url=stage.address) as api:
        first = api.post("/api/issues", json={"title": f"Earlier {next(_numbers)}"}).json()
        later = api.post("/api/issues", json={"title": "Later"}).json()
    page = open_page(f"/tasks/{later['id']}")
    page.get_by_role("button", name="wait for another task").click()
    page.get_by_label("Wait for").select_option(first["id"])
    expect(page.get_by_role("link", name=first["title"])).to_be_visible()
    page.get_by_role("button", name=f"Do not wait for {first['identifier']}").click()
    expect(page.get_by_role("link", name=first["title"])).to_have_count(0)
    shown = httpx.get(f"{stage.address}/api/issues/{later['id']}").json()
    assert shown["blockedBy"] == []
