"""Workspaces and everything that opens over a page can be used by everybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import seriously_wrong
from tests.browser.stage import Stage
from tests.browser.test_workspaces import opened, repository, task_with

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
__all__ = ["repository"]
Open = Callable[..., Page]
LOOKS = [(1280, "light"), (390, "dark")]


def is_fine(page: Page, width: int) -> None:
    """Nothing serious, and nothing sideways."""
    assert seriously_wrong(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_workspaces_their_conflicts_and_cleaning_are_accessible(
    open_as_person: Open, stage: Stage, repository: Path, width: int, scheme: str
) -> None:
    """W6, W8: the list, one workspace, a conflict in it, and both steps of cleaning."""
    task = task_with(stage, repository, "open('a', 'w').write('theirs\\n')")
    opened(open_as_person, task)
    (repository / "a").write_text("ours\n")
    page = open_as_person("/workspaces", width, 844, scheme)
    row = page.get_by_role("link", name=re.compile(task["title"]))
    expect(row).to_be_visible()
    is_fine(page, width)
    row.click()
    expect(page.get_by_role("region", name="Changes", exact=True)).to_contain_text("theirs")
    is_fine(page, width)
    page.get_by_role("button", name="Merge").click()
    expect(page.get_by_label("Conflict").get_by_role("listitem")).to_have_text("a")
    is_fine(page, width)
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("status")).to_contain_text("cleaning may remove it")
    is_fine(page, width)
    page.get_by_role("link", name="All workspaces").click()
    page.get_by_role("button", name="Clean up").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    is_fine(page, width)
    dialog.get_by_role("button", name="See what would go").click()
    expect(dialog).to_contain_text("would go: archived")
    is_fine(page, width)
    dialog.get_by_role("button", name=re.compile("^Remove")).click()
    expect(dialog).to_contain_text("refs/binderclip/saved/")
    is_fine(page, width)


OVERLAYS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "new machine": (
        "/settings",
        lambda page: page.get_by_role("button", name="Add a machine").click(),
    ),
    "menu of adapters": (
        "/agents/new",
        lambda page: page.get_by_role("button", name=re.compile("^Adapter")).click(),
    ),
    "choice of models": (
        "/agents/new",
        lambda page: page.get_by_role("combobox", name="Model").first.click(),
    ),
    "new task": ("/tasks", lambda page: page.get_by_role("button", name="New task").first.click()),
    "keys": ("/runs", lambda page: page.keyboard.press("?")),
    "finder": ("/runs", lambda page: page.keyboard.press("Control+k")),
}
OPENED = "dialog[open], [role=listbox], #field-host"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", OVERLAYS)
def test_what_opens_over_a_page_is_accessible(
    open_as_person: Open, told: str, name: str, width: int, scheme: str
) -> None:
    path, open_ = OVERLAYS[name]
    page = open_as_person(path, width, 844, scheme)
    expect(page.locator("main h1, main [role=row]").first).to_be_attached()
    open_(page)
    expect(page.locator(OPENED).first).to_be_visible()
    is_fine(page, width)
