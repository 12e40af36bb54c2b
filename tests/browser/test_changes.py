"""What a run changed, and what can follow it, in a real browser."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import stories
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)
CODE = "def take(name):\n    return name\n"


@pytest.fixture
def repository(stage: Stage) -> Path:
    """A repository with one commit."""
    folder = stage.folder / f"repository-{next(_numbers)}"
    folder.mkdir()
    (folder / "shop.py").write_text(CODE)
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def shell(stage: Stage, folder: Path, script: str) -> str:
    words = ["run", "--adapter", "process", "--cwd", str(folder), "--json"]
    return stage.call(*words, "--", "sh", "-c", script)


def test_changes_are_files_with_counts_and_coloured_lines(
    open_page: Open, stage: Stage, repository: Path
) -> None:
    """W1: what the run did to the directory, hostile names and lines as text."""
    hostile = "<img src=x onerror=window.hit=1>.py"
    script = f"sed -i 's/return name/return None/' shop.py; echo 'import os' > '{hostile}'"
    page = open_page(f"/runs/{shell(stage, repository, script)}?panel=changes")
    panel = page.get_by_role("complementary", name="Run details")
    expect(panel).to_contain_text("2 files")
    expect(panel.locator("summary", has_text="shop.py")).to_contain_text("+1 −1")
    expect(panel.locator("summary", has_text=hostile)).to_contain_text("new")
    added = panel.locator(".line.add", has_text="return None")
    expect(added.locator(".number").nth(1)).to_have_text("2")
    expect(added.locator(".tok-kw").first).to_have_text("return")
    assert page.evaluate("window.hit") is None


def test_a_very_long_change_is_bounded(open_page: Open, stage: Stage, repository: Path) -> None:
    """A page is never drowned by a generated file."""
    script = "seq 100000 > generated.txt; for n in $(seq 30); do seq 200 > part-$n; done"
    page = open_page(f"/runs/{shell(stage, repository, script)}?panel=changes")
    panel = page.get_by_role("complementary", name="Run details")
    expect(panel).to_contain_text("31 files")
    expect(panel.locator("summary", has_text="generated.txt")).to_contain_text("too long to show")
    part = panel.locator("details", has=page.get_by_text("part-7", exact=True))
    expect(panel.locator(".line")).to_have_count(0)
    part.locator("summary").click()
    expect(part.locator(".line").first).to_be_visible()
    assert part.locator(".line").count() <= 130
    part.get_by_role("button", name=re.compile("show 8. more lines")).click()
    expect(part.locator(".line.add").last).to_contain_text("+200")


def test_without_a_repository_the_tab_says_why_and_shows_what_the_agent_told(
    open_page: Open, told: str
) -> None:
    """Nothing to compare with is a sentence, not an empty page."""
    page = open_page(f"/runs/{told}?panel=changes")
    panel = page.get_by_role("complementary", name="Run details")
    expect(panel).to_contain_text("is in no git repository")
    expect(panel.locator(".line.add", has_text="with self._lock")).to_be_visible()


def test_a_run_by_hand_is_done_again_by_one_click(
    open_page: Open, stage: Stage, repository: Path
) -> None:
    """S1: the same wish in a new run; a message needs a session, and the page says so."""
    run = shell(stage, repository, "echo once more >> log")
    page = open_page(f"/runs/{run}")
    end = page.get_by_role("region", name="How the run ended")
    expect(end.get_by_role("button", name="Continue with a message")).to_be_disabled()
    expect(end).to_contain_text("told no session")
    end.get_by_role("button", name="Retry").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.locator("header")).to_contain_text("succeeded")
    assert (repository / "log").read_text() == "once more\nonce more\n"


def test_a_run_by_hand_goes_on_with_a_message(open_page: Open, stage: Stage) -> None:
    """S1: the message becomes the prompt of a run in the same session."""
    page = open_page(f"/runs/{stage.tell(stories.short_story(), 'What is here?')}")
    page.get_by_role("button", name="Continue with a message").click()
    page.get_by_label("Message", exact=True).last.fill("And what else?")
    page.get_by_role("button", name="Send").click()
    expect(page).to_have_title(re.compile("And what else?"))
    expect(page.locator("header")).to_contain_text("continues the session")
