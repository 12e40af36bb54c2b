"""A run's standard events, its checkpoint, its job and its export, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser import stories
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
KEY = "sk-ant-" + "api03-" + "B" * 40


def job_of(stage: Stage, run: str, page: Page) -> str:
    """The job of a run, once it is kept."""
    expect(page.locator("aside summary").first).to_be_visible()
    told = httpx.get(f"{stage.address}/api/runs/{run}/job").json()["job"]["id"]
    return str(told)


def test_events_and_checkpoint_are_a_tab(open_page: Open, told: str) -> None:
    """N2, N3: the same history whatever ran."""
    page = open_page(f"/runs/{told}?panel=details")
    page.get_by_role("tab", name="History").click()
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text(re.compile("^completed at step"))).to_be_visible()
    expect(panel.locator(".event").first).to_contain_text("runtime")
    expect(panel.locator(".event").last).to_contain_text("complete")
    panel.locator(".event summary").first.click()
    expect(panel.locator(".event pre").first).to_contain_text('"type": "initializeRuntime"')
    expect(page).to_have_url(re.compile("panel=history"))


def test_the_runs_of_a_job_are_a_chain_of_links(open_page: Open, stage: Stage) -> None:
    """N4: from one run of a job to the others."""
    words = ("run", "--adapter", "process", "--json")
    first = stage.listed(stage.call(*words, "--", "echo", "begin"))
    page = open_page(f"/runs/{first}?panel=history")
    job = job_of(stage, first, page)
    second = stage.listed(stage.call(*words, "--continue-job", job, "--", "false"))
    page = open_page(f"/runs/{second}?panel=history")
    chain = page.get_by_role("list", name="Runs of this job")
    expect(chain.get_by_role("listitem")).to_have_count(2)
    expect(chain.locator("[aria-current]")).to_have_text("false")
    expect(chain.get_by_role("img", name="failed")).to_be_visible()
    chain.get_by_role("link", name="echo begin").click()
    expect(page).to_have_url(re.compile(f"/runs/{first}"))
    expect(chain.locator("[aria-current]")).to_have_text("echo begin")


def test_a_run_without_a_prompt_has_its_command_line_as_title(
    open_page: Open, stage: Stage
) -> None:
    page = open_page("/runs")
    stage.call("run", "--adapter", "process", "--json", "--", "echo", "two words")
    row = page.get_by_role("row").filter(has_text="echo 'two words'")
    row.click()
    expect(page.get_by_role("heading", name="echo 'two words'")).to_be_visible()


@pytest.mark.parametrize(
    ("label", "ending", "holds"),
    [
        ("HTML page", "html", "<!doctype html>"),
        ("Markdown", "md", "# Fix the flaky test"),
        ("Entries (JSON Lines)", "jsonl", '"kind"'),
        ("Events (JSON Lines)", "jsonl", '"initializeRuntime"'),
    ],
)
def test_a_run_is_downloaded(
    open_page: Open, told: str, label: str, ending: str, holds: str
) -> None:
    """N4: every format of the export is a choice of the button."""
    page = open_page(f"/runs/{told}")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=label).click()
    assert download.value.suggested_filename.startswith("run-")
    assert download.value.suggested_filename.endswith(f".{ending}")
    assert holds.lower() in Path(download.value.path()).read_text("utf-8").lower()


def test_the_menu_is_worked_by_keys(open_page: Open, told: str) -> None:
    page = open_page(f"/runs/{told}")
    button = page.get_by_role("button", name="Export")
    button.press("Enter")
    expect(page.get_by_role("menuitem", name="HTML page")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Markdown")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(button).to_be_focused()


def test_a_secret_stops_an_export_and_is_masked_on_demand(open_page: Open, stage: Stage) -> None:
    """N4, D8: the place is named, the value is not."""
    story = [stories.begun(), stories.said(f"The key is {KEY}."), stories.ended("Done.")]
    run = stage.listed(stage.tell(story, "Leak"))
    page = open_page(f"/runs/{run}")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="Markdown").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("looks like a secret")
    expect(dialog.get_by_role("listitem").first).to_contain_text("entry")
    expect(dialog).not_to_contain_text(KEY)
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download redacted").click()
    text = Path(download.value.path()).read_text("utf-8")
    assert KEY not in text
    assert "The key is" in text
    expect(dialog).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_history_and_menu_are_accessible_and_fit(
    open_page: Open, told: str, width: int, scheme: str
) -> None:
    """Labels, contrast and roles hold in both themes and widths."""
    page = open_page(f"/runs/{told}?panel=history", width, 844, scheme)
    expect(page.locator(".event").first).to_be_visible()
    page.get_by_role("button", name="Export").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run().then((told) => told.violations)")
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
