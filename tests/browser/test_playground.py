"""The playground for parsers in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
LINES = [
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "I **build** it."}]}},
    {"type": "assistant", "message": {"content": [CALL]}},
]


def test_pasted_lines_are_shown_as_a_transcript_with_their_parser(open_page: Open) -> None:
    """U7, T3: which parser, why, how much it understood; another adapter reads the same text."""
    page = open_page("/adapters")
    page.get_by_role("button", name="Claude Code").click()
    page.get_by_role("link", name="Try its parser").click()
    expect(page).to_have_url(re.compile(r"playground\?type=claude_local"))
    said = "\n".join([*map(json.dumps, LINES), "something else"])
    page.get_by_label("Standard output").fill(said)
    page.get_by_label("Standard output").press("Control+Enter")
    shown = page.get_by_role("region", name="What it becomes")
    expect(shown).to_contain_text("Read by the built-in parser")
    expect(shown).to_contain_text("2 of 3 lines understood")
    expect(shown.locator("strong", has_text="build")).to_be_visible()
    expect(shown).to_contain_text("make")
    shown.get_by_role("button", name="as JSON").click()
    expect(shown.get_by_label("Entries as JSON")).to_contain_text('"kind":"tool_call"')
    page.get_by_role("button", name=re.compile("^Adapter")).click()
    page.get_by_role("option", name=re.compile("process")).click()
    expect(shown).to_contain_text("Read by the generic rule")
    expect(page).to_have_url(re.compile("type=process"))


def test_what_is_pasted_executes_nothing(open_page: Open, stage: Stage) -> None:
    """A8: pasted text is as untrusted as an agent's."""
    page = open_page("/adapters/playground?type=process")
    page.get_by_label("Standard output").fill("<img src=x onerror=alert(1)>\n[x](javascript:1)")
    page.get_by_role("button", name="Parse").click()
    shown = page.get_by_role("region", name="What it becomes")
    expect(shown).to_contain_text("onerror")
    assert shown.locator("img").count() == 0
    assert "alert(1)" not in page.evaluate(
        "Array.from(document.querySelectorAll('[onerror]'), (one) => one.outerHTML).join()"
    )
