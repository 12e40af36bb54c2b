"""One server, one Chromium and the stories that several tests read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import stories
from tests.browser.stage import Stage

CHROMIUM = "/usr/bin/chromium"
LONG = 100_000
PATIENCE_MS = 30_000
"""How long something may take on a busy machine before it counts as never."""


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("stage"))
    stage.open()
    yield stage
    stage.close()


# Not longer than a module: while it is open, asyncio runs in this process, and tests of other
# modules that start a loop of their own would fail.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, stage: Stage) -> Iterator[Callable[..., Page]]:
    """Open an address of the app; at the end nothing may have gone wrong in any page."""
    pages: list[Page] = []
    wrong: list[str] = []

    def open_(path: str, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: wrong.append(f"{path}: {error}"))
        page.on(
            "console",
            lambda told: wrong.append(f"{path}: {told.text}") if _alarming(told.text) else None,
        )
        page.on("dialog", lambda dialog: wrong.append(f"{path}: dialog {dialog.message}"))
        page.goto(stage.address + path)
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.context.close()
    assert wrong == []


@pytest.fixture
def open_as_person(open_page: Callable[..., Page], stage: Stage) -> Callable[..., Page]:
    """Open an address as somebody who holds the person's token."""

    def open_(path: str, *look: Any) -> Page:
        token = (stage.home / "token").read_text().strip()
        page = open_page(f"/?token={token}", *look)
        page.goto(stage.address + path)
        return page

    return open_


def _alarming(text: str) -> bool:
    return "Content Security Policy" in text or "TypeError" in text


@pytest.fixture(scope="session")
def told(stage: Stage) -> str:
    """A finished run with everything in it."""
    return stage.listed(stage.tell(stories.whole_story(), "Fix the flaky test in orders/"))


@pytest.fixture(scope="session")
def long(stage: Stage) -> str:
    """A finished run of very many entries."""
    return stage.tell(stories.long_story(LONG), "Go through all parts")


@pytest.fixture
def curtain(tmp_path: Path) -> Path:
    """A file that lets a live story go on once it exists."""
    return tmp_path / "curtain"
