"""The exported page in a real browser: offline, under its own policy, searchable, inert."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from binderclip.jobs.export import export
from binderclip.store.home import Home
from tests.jobs.hostile import hostile_run
from tests.jobs.recorded import spoken_run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
CHROMIUM = "/usr/bin/chromium"
MANY = 10_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium refuses its own sandbox to root, which tests in a container are.
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Opened:
    """A page without a network, and everything it complained of or asked for."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *exc: object) -> None:
        self.context.close()


def written(home: Home, run_id: str) -> Path:
    path = home.path / "page.html"
    path.write_bytes(b"".join(export(home, run_id, "html", env={})))
    return path


def long_run(home: Home) -> str:
    entries: list[dict[str, object]] = []
    for at in range(MANY // 4):
        id = f"call-{at}"
        entries += [
            {
                "kind": "assistant",
                "text": f"Paragraph **{at}** about [links](https://example.com).",
            },
            {"kind": "tool_call", "name": "Bash", "toolKind": "shell", "toolUseId": id}
            | {"input": {"command": f"make step-{at}"}},
            {"kind": "tool_result", "toolUseId": id, "content": f"needle-{at}\n" * 5}
            | {"isError": at % 500 == 0, "durationMs": 1200},
            {"kind": "stderr", "text": f"warning {at}"},
        ]
    return spoken_run(home, *entries, prompt="A long run").id


def test_ten_thousand_entries_open_offline_and_are_found_by_the_browser(
    home: Home, browser: Browser
) -> None:
    path = written(home, long_run(home))
    with Opened(browser, path) as opened:
        page = opened.page
        assert page.title() == "A long run"
        assert opened.asked == [path.as_uri()]
        assert opened.complaints == []
        assert page.locator("details.tool").count() == MANY // 4
        # Also within a tool that is folded and far from what is on the screen.
        assert page.evaluate("window.find('needle-2345')") is True
        assert page.evaluate("window.find('no such words')") is False


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_follows_the_system_s_colours(
    home: Home, browser: Browser, width: int, scheme: Any
) -> None:
    long = "x" * 3000
    order = spoken_run(
        home,
        {"kind": "assistant", "text": f"{long}\n\n`{long}`\n\n| a | b |\n|--|--|\n| {long} | c |"},
        {"kind": "tool_call", "name": "Bash", "toolUseId": "t", "input": {"command": long}},
        {"kind": "tool_result", "toolUseId": "t", "content": long, "isError": True},
        {"kind": "diff", "changeType": "add", "text": long},
        prompt=long,
    )
    size = {"width": width, "height": 800}
    with Opened(browser, written(home, order.id), viewport=size, color_scheme=scheme) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        shade = opened.page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)[0]"
        )
        assert (shade > 128) == (scheme == "light")


def test_nothing_that_an_agent_wrote_runs_loads_or_leads_astray(
    home: Home, browser: Browser
) -> None:
    """The policy forbids scripts, pictures and addresses; there is nothing for it to forbid."""
    path = written(home, hostile_run(home).id)
    with Opened(browser, path) as opened:
        page = opened.page
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        assert "owned" not in page.title().replace("title='owned'", "")
        assert opened.asked == [path.as_uri()]
        assert opened.complaints == []
        assert page.evaluate("document.scripts.length + document.images.length") == 0
        handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        assert not [name for name in page.evaluate(handlers) if name.startswith("on")]
        links = page.evaluate("[...document.links].map(a => [a.protocol, a.rel])")
        assert {protocol for protocol, _ in links} <= {"https:", "http:", "mailto:"}
        assert all("noopener" in rel for _, rel in links)


def test_its_policy_stops_a_script_that_somebody_puts_in(home: Home, browser: Browser) -> None:
    """Should escaping ever fail, the page's own policy still holds."""
    path = written(home, spoken_run(home, {"kind": "assistant", "text": "MARK"}).id)
    planted = "<script>document.title='owned'</script><img src='https://127.0.0.1:9/x.png'>"
    path.write_text(path.read_text().replace("MARK", planted))
    with Opened(browser, path) as opened:
        assert opened.page.title() != "owned"
        stopped = [words for words in opened.complaints if "Content Security Policy" in words]
        assert len(stopped) == 2, "the script and the picture"
