"""The list of runs in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import delete, insert

from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.tables import runs
from tests.browser import stories
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
MANY = 3000


def test_a_run_appears_and_changes_while_one_looks(
    open_page: Open, stage: Stage, curtain: Path, told: str
) -> None:
    """D9: the list is alive without being asked for again; running ones stand on top."""
    page = open_page("/runs")
    expect(page.locator(f"a[href='/runs/{told}']")).to_be_visible()
    story = [stories.begun(), {"until": str(curtain)}, stories.ended("Done.")]
    run = stage.tell(story, "Seen while it works", live=True)
    row = page.get_by_role("row").first
    expect(row).to_contain_text("Seen while it works")
    expect(row.get_by_role("img", name="running")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    curtain.touch()
    ended = page.locator(f"a[href='/runs/{run}']")
    expect(ended.get_by_role("img", name="succeeded")).to_be_visible()
    assert [url for url in asked if "/api/runs" in url] == []


def test_filters_stand_in_the_address(open_page: Open, stage: Stage, told: str) -> None:
    """A view of the list can be sent to somebody."""
    stage.listed(stage.call("run", "--adapter", "process", "--json", "--", "false"))
    page = open_page("/runs")
    page.get_by_label("State").select_option("failed")
    expect(page).to_have_url(re.compile("status=failed"))
    expect(page.locator(f"a[href='/runs/{told}']")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("row").first).to_contain_text("exited with code 1")
    page.get_by_label("State").select_option("")
    page.get_by_placeholder("Filter").fill("flaky")
    expect(page.get_by_role("row")).to_have_count(1)


def test_keys_choose_and_open_a_run(open_page: Open, told: str) -> None:
    """The list works without a mouse."""
    page = open_page("/runs?q=flaky")
    expect(page.locator(f"a[href='/runs/{told}']")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(told))
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_no_runs_tell_the_next_step(open_page: Open, told: str) -> None:
    """Empty pages say what to do."""
    page = open_page("/runs?status=lost")
    expect(page.get_by_text("No run fits these filters.")).to_be_visible()
    page.get_by_role("button", name="Show all runs").click()
    expect(page.locator(f"a[href='/runs/{told}']")).to_be_visible()


def test_the_keys_are_shown_by_a_question_mark(open_page: Open, told: str) -> None:
    page = open_page("/runs")
    expect(page.get_by_role("row").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next run")


@pytest.fixture
def many(stage: Stage) -> Iterator[int]:
    """Thousands of finished runs of an agent, as rows of the store."""
    told = {
        "status": "succeeded",
        "adapter_type": "process",
        "agent_id": "agent-of-many",
        "agent_name": "Ada",
        "company_id": "local",
        "task_key": "heartbeat",
        "cwd": "/tmp",
        "wake_reasons": '["manual"]',
        "actor": "person",
        "resumed": False,
        "created_at": "2025-01-01T00:00:00.000Z",
        "ended_at": "2025-01-01T00:00:09.000Z",
        "attempts": 1,
        "finalized": True,
        "scheduled": True,
        "retries": 0,
    }
    rows = [
        {**told, "id": f"00000000-{n:04x}-7000-8000-{n:012x}", "prompt": f"Part {n}"}
        for n in range(MANY)
    ]
    with Database.open(Home(stage.home)) as database:
        with database.writing() as connection:
            connection.execute(insert(runs), rows)
        yield MANY
        with database.writing() as connection:
            connection.execute(delete(runs).where(runs.c.agent_id == "agent-of-many"))


def test_thousands_of_runs_scroll_with_a_few_rows_drawn(
    open_page: Open, stage: Stage, told: str, many: int
) -> None:
    """Pages are read as one goes down; the browser holds the rows in view, not the list."""
    page = open_page("/runs?agent=agent-of-many")
    expect(page.get_by_label("Agent")).to_have_value("agent-of-many")
    expect(page.get_by_role("row").first).to_contain_text(f"Part {many - 1}")
    page.wait_for_function(
        """(many) => {
          const list = document.querySelector("[role=table]");
          list.scrollTop = list.scrollHeight;
          return Number(list.getAttribute("aria-rowcount")) === many;
        }""",
        arg=many,
        polling=50,
    )
    expect(page.get_by_role("row").last).to_contain_text("Part 0")
    assert page.get_by_role("row").count() < 80
    page.get_by_placeholder("Filter").fill("part 1234")
    expect(page.get_by_role("row")).to_have_count(1)
    page.get_by_label("Agent").select_option("")
    page.get_by_placeholder("Filter").fill("")
    expect(page.locator(f"a[href='/runs/{told}']")).to_be_visible()
