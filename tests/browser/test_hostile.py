"""Hostile parsers, installed as plugins like any other: nothing leaves, nothing hangs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage
from tests.browser.test_sandbox import KEEN, Canary, answers, install, plugin

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
AT_SECOND = "if (text === 'second') {{ {} }} return [{{ kind: 'assistant', ts, text }}];"
HOSTILE = {
    "loop": ("for (;;) {}", "deadline"),
    "regex": ("/^(a+)+$/.test('a'.repeat(50) + '!');", "deadline"),
    "flood": ("for (;;) postMessage('flood');", "it threw at 1 line"),
    "fetch": ("fetch('CANARY/fetch');", "it threw at 1 line"),
    "import": (
        "import('CANARY/import').catch(() => 0); importScripts('CANARY/scripts');",
        "it threw at 1 line",
    ),
    "large": ("return [{ kind: 'user', ts, text: 'x'.repeat(40_000_000) }];", "it threw|deadline"),
    "getter": ("return [{ get kind() { throw 1; } }];", "it threw at 1 line"),
    "prototype": (
        "Array.prototype.toJSON = Object.prototype.toJSON = () => '[]';",
        "results ≠ lines|dropped|repaired|it threw",
    ),
}


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    canary = Canary()
    yield canary
    canary.close()


@pytest.mark.parametrize("trick", HOSTILE)
def test_a_hostile_plugin_leaves_a_readable_run_and_a_reason(
    open_page: Open, stage: Stage, canary: Canary, trick: str
) -> None:
    """U4, U5: the viewer stays responsive, nothing leaves, the badge names the reason."""
    body, reason = HOSTILE[trick]
    source = KEEN.format(AT_SECOND.format(body.replace("CANARY", canary.address)))
    kind = f"hostile_{trick}"
    install(stage, plugin(stage.folder / kind, kind, source))
    run = stage.call("run", "--adapter", kind, "--json", "echo first; echo second; echo third")
    page = open_page(f"/runs/{run}?panel=details")
    expect(page.locator(".note")).to_have_text(re.compile(reason))
    expect(page.locator("#transcript")).to_contain_text("first")
    if trick != "prototype":
        # Who breaks the language for itself loses its own later lines, and they are counted.
        expect(page.locator("#transcript")).to_contain_text("third")
    answers(page)
    assert httpx.get(f"{canary.address}/alive").status_code == 204
    assert set(canary.hits) == {"/alive"}
