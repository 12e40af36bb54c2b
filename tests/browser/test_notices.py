"""Notices of the browser: only when wanted, only while nobody looks, each once."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser import stories
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)
RECORDER = """
window.shown = [];
window.Notification = class {
  static permission = 'granted';
  static requestPermission = async () => 'granted';
  constructor(words, options) {
    window.shown.push([words, options.tag, this]);
    document.documentElement.dataset.shown = window.shown.map(([one]) => one).join(', ');
  }
  close() {}
};
Object.defineProperty(document, 'hidden', { get: () => true });
"""


@pytest.fixture
def elsewhere(open_page: Open) -> Page:
    """A page whose reader wants notices and looks elsewhere."""
    page = open_page("/settings")
    page.add_init_script(RECORDER)
    page.reload()
    page.get_by_label("Tell me in the browser").check()
    return page


def test_a_run_that_ends_is_told_once(elsewhere: Page, stage: Stage) -> None:
    """D9: the list stream tells it, whichever page is open."""
    run = stage.listed(stage.tell(stories.short_story(), "What ends here?"))
    shown = elsewhere.locator("html")
    expect(shown).to_have_attribute("data-shown", re.compile("succeeded: What ends here"))
    tags = elsewhere.evaluate("window.shown.map(([, tag]) => tag)")
    assert tags.count(run) == 1


def test_a_question_to_a_person_is_told_and_leads_to_its_task(
    elsewhere: Page, stage: Stage
) -> None:
    """R1: an interaction and an approval both wait for somebody."""
    title = f"Decide {next(_numbers)}"
    task = httpx.post(f"{stage.address}/api/issues", json={"title": title}).json()["id"]
    asked = {"kind": "request_confirmation", "title": "Drop format v1?"}
    httpx.post(f"{stage.address}/api/issues/{task}/interactions", json=asked).raise_for_status()
    approval = {"kind": "spend", "payload": {"title": "Buy stars"}, "issueIds": [task]}
    httpx.post(f"{stage.address}/api/approvals", json=approval).raise_for_status()
    for words in ("waits for you: Drop format v1?", "waits for you: Buy stars"):
        expect(elsewhere.locator("html")).to_have_attribute(
            "data-shown", re.compile(re.escape(words))
        )
    elsewhere.evaluate("window.shown.find(([one]) => one.includes('Drop'))[2].onclick()")
    expect(elsewhere.get_by_role("heading", name=title)).to_be_visible()


def test_nobody_is_told_who_did_not_ask(open_page: Open, stage: Stage) -> None:
    """Opt-in: a page that was never asked stays silent."""
    page = open_page("/runs")
    page.add_init_script(RECORDER)
    page.reload()
    run = stage.listed(stage.tell(stories.short_story(), "Silence"))
    expect(page.locator(f"a[href='/runs/{run}']").first).to_be_attached()
    assert page.evaluate("window.shown") == []
