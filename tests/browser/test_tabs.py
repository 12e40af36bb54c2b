"""Ten tabs with live runs in one browser, which gives them six connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import stories
from tests.browser.conftest import PATIENCE_MS
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
TABS = 10
# Headless pages are all visible; this says so for one and hides it by a word.
CURTAIN = """
window.away = false;
Object.defineProperty(document, 'hidden', { get: () => window.away });
window.look = (here) => {
  window.away = !here;
  document.dispatchEvent(new Event('visibilitychange'));
};
"""


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.add_init_script(CURTAIN)
    yield context
    context.close()


def opened(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    return page


def test_ten_tabs_of_live_runs_all_work(
    context: BrowserContext, stage: Stage, curtain: Path
) -> None:
    """D9: hidden tabs give their connections back, know how their run fares, and catch up."""
    pages: list[Page] = []
    for number in range(TABS):
        story = [
            stories.begun(),
            stories.said(f"Begun {number}."),
            {"until": str(curtain)},
            stories.said(f"Done {number}."),
            stories.ended("All told."),
        ]
        run = stage.tell(story, f"Tab {number}", live=True)
        page = opened(context, f"{stage.address}/runs/{run}")
        expect(page.get_by_text(f"Begun {number}.")).to_be_visible()
        pages.append(page)
        if number < TABS - 1:
            page.evaluate("window.look(false)")
    curtain.touch()
    expect(pages[-1].get_by_text(f"Done {TABS - 1}.")).to_be_visible()
    for number, page in enumerate(pages[:-1]):
        expect(page).to_have_title(f"succeeded: Tab {number}")
    pages[0].evaluate("window.look(true)")
    expect(pages[0].get_by_text("Done 0.")).to_be_visible()
    expect(pages[0].get_by_text("The agent finished its work.")).to_be_visible()
