"""The run viewer in a real browser, on real runs, live and finished."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from binderclip.server.tokens import Tokens
from binderclip.store.home import Home
from tests.browser import stories
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
WATCH_FOR_BLANKS = """() => {
  window.blanks = 0;
  new MutationObserver(() => { window.blanks += document.querySelector('.slot') ? 0 : 1; })
    .observe(document.body, { childList: true, subtree: true });
}"""
FIRST_IN_SIGHT = """() => {
  const top = document.querySelector('.scroller').getBoundingClientRect().top;
  const slot = [...document.querySelectorAll('.slot')].find(
    (one) => one.getBoundingClientRect().bottom > top + 1);
  return [Number(slot.dataset.seq), Math.round(slot.getBoundingClientRect().top)];
}"""


def ready(page: Page) -> Page:
    """Once its first entries are drawn."""
    expect(page.locator(".slot").first).to_be_visible()
    return page


def test_a_finished_run_opens_at_its_top_with_what_it_was(open_page: Open, told: str) -> None:
    """T5, D10: state, session, tokens by bucket, cost, coverage and exit stand in the header."""
    page = open_page(f"/runs/{told}")
    header = page.locator("header")
    for words in ("succeeded", "in 12.1k", "cached 48k", "out 3.2k", "$0.31", "exit 0"):
        expect(header).to_contain_text(words)
    expect(page.get_by_text("I'll find out why")).to_be_visible()
    expect(page.get_by_role("button", name="Read 7 files")).to_be_visible()
    expect(page).to_have_title("succeeded: Fix the flaky test in orders/")


def test_a_failed_tool_is_open_and_red_and_its_output_is_folded(open_page: Open, told: str) -> None:
    """T5: errors open by themselves; long output shows its first and last lines."""
    page = ready(open_page(f"/runs/{told}"))
    card = page.locator(".card.bad")
    expect(card).to_contain_text("exit 1")
    expect(card.locator(".f1").first).to_have_text(re.compile("✗ tests/test_orders"))
    before = card.locator("pre").all_inner_texts()
    card.get_by_role("button", name=re.compile(r"show \d+ more lines")).click()
    assert len("".join(card.locator("pre").all_inner_texts())) > len("".join(before))


def test_an_edit_is_a_diff_with_numbers_and_colours(open_page: Open, told: str) -> None:
    """T1b: the lines of a diff belong to the edit that made them."""
    page = ready(open_page(f"/runs/{told}"))
    page.keyboard.press("End")
    line = page.locator(".line.add", has_text="with self._lock")
    expect(line.locator(".number").nth(1)).to_have_text("37")
    expect(line.locator(".tok-kw").first).to_have_text("with")


def test_a_sub_agent_is_folded_and_opens_into_a_lane(open_page: Open, told: str) -> None:
    """T1b: what a sub-agent did stands below the call that started it."""
    page = ready(open_page(f"/runs/{told}"))
    page.keyboard.press("End")
    agent = page.get_by_role("button", name=re.compile("Sub-agent look for callers"))
    expect(page.get_by_text("Looking for callers of")).to_have_count(0)
    agent.click()
    expect(page.locator(".row.nested", has_text="Looking for callers of")).to_be_visible()


def test_a_live_run_is_followed_and_grows_without_losing_the_place(
    open_page: Open, stage: Stage, curtain: Path
) -> None:
    """D9: text streams in; who scrolls away is not moved; one click brings back."""
    second = curtain.with_name("second")

    def story() -> Iterator[stories.Line]:
        yield stories.begun()
        for number in range(120):
            yield stories.said(f"Early line {number}.")
        yield stories.thought("hm")
        yield stories.said("The answer ", delta=True)
        yield {"until": str(curtain)}
        yield stories.said("is forty-two.", delta=True)
        yield {"until": str(second)}
        yield stories.thought("more")
        for number in range(200):
            yield stories.said(f"Late line {number}.")
        yield stories.ended("All told.")

    page = open_page(f"/runs/{stage.tell(story(), 'Stream', live=True)}")
    expect(page.get_by_text("The answer", exact=True)).to_be_visible()
    curtain.touch()
    expect(page.get_by_text("The answer is forty-two.")).to_be_visible()
    page.mouse.move(600, 400)
    page.mouse.wheel(0, -900)
    expect(page.get_by_role("button", name="live")).to_be_visible()
    place = page.evaluate(FIRST_IN_SIGHT)
    second.touch()
    expect(page.locator("header")).to_contain_text("succeeded")
    assert page.evaluate(FIRST_IN_SIGHT) == place
    page.keyboard.press("End")
    expect(page.get_by_text("Late line 199.")).to_be_visible()


def test_every_line_of_a_live_run_arrives(open_page: Open, stage: Stage, curtain: Path) -> None:
    """D9: what was on disk before and what came by stream join without a gap or a double."""

    def story() -> Iterator[stories.Line]:
        yield stories.begun()
        for number in range(700):
            yield stories.said(f"Line {number}.")
        yield {"until": str(curtain)}
        for number in range(700, 3000):
            yield stories.said(f"Line {number}.")
        yield stories.ended("Done.")

    page = open_page(f"/runs/{stage.tell(story(), 'Count', live=True)}")
    expect(page.get_by_text("Line 699.")).to_be_visible()
    curtain.touch()
    expect(page.locator("header")).to_contain_text("succeeded")
    expect(page.get_by_text("Line 2999.")).to_be_visible()
    timeline = page.get_by_role("scrollbar", name="Timeline of the run")
    expect(timeline).to_have_attribute("aria-valuemax", "3001")
    shown = page.locator(".row.is-text").all_inner_texts()
    numbers = [int(re.findall(r"\d+", text)[0]) for text in shown]
    assert numbers == list(range(numbers[0], 3000))


def test_home_and_end_of_a_long_run_are_one_request_each(open_page: Open, long: str) -> None:
    """T1b: the browser holds pages of entries, not the run."""
    page = open_page(f"/runs/{long}")
    expect(page.get_by_text("Step 1:")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("End")
    expect(page.get_by_text("The agent finished its work.")).to_be_in_viewport()
    assert sum("/transcript?" in url for url in asked) <= 2
    page.keyboard.press("Home")
    expect(page.get_by_text("Step 1:")).to_be_in_viewport()
    assert page.locator(".slot").count() < 200


def test_a_long_run_scrolls_anywhere_by_its_timeline(open_page: Open, long: str) -> None:
    """The timeline is the scroll bar."""
    page = ready(open_page(f"/runs/{long}"))
    strip = page.get_by_role("scrollbar", name="Timeline of the run")
    expect(strip).to_be_visible()
    box = strip.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 10, box["y"] + box["height"] / 2)
    expect(strip).to_have_attribute("aria-valuenow", re.compile(r"^[1-8]\d{4}$"))
    expect(page.locator(".slot").first).to_be_attached()


def test_search_finds_words_far_away(open_page: Open, long: str) -> None:
    """T1b: search happens on the server; the match is brought into sight."""
    page = ready(open_page(f"/runs/{long}"))
    page.keyboard.press("/")
    page.keyboard.type("Step 99937:")
    expect(page.locator(".hits")).to_contain_text("/1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Step 99937:")).to_be_in_viewport()


def test_keys_walk_through_errors_and_entries(open_page: Open, long: str) -> None:
    """n goes to the next error, j to the next entry, e closes it; the address names the entry."""
    page = open_page(f"/runs/{long}")
    expect(page.get_by_text("Step 1:")).to_be_visible()
    page.keyboard.press("n")
    first = page.locator(".row.selected .card.bad")
    expect(first).to_be_in_viewport()
    page.keyboard.press("n")
    expect(page.locator(".row.selected .card.bad")).to_contain_text("pytest tests/part_85")
    page.keyboard.press("e")
    expect(page.locator(".row.selected .terminal")).to_have_count(0)
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(r"entry=1o\d+\.0"))


def test_a_link_to_an_entry_opens_there(open_page: Open, stage: Stage, long: str) -> None:
    """D2: an entry's id survives, so a link to it does."""
    page = open_page(f"/runs/{long}")
    found = page.request.get(f"{stage.address}/api/runs/{long}/transcript?from=60000&limit=1")
    entry = found.json()["entries"][0]
    again = open_page(f"/runs/{long}?entry={entry['id']}")
    expect(again.locator(".row.selected")).to_be_in_viewport()
    seq, _ = again.evaluate(FIRST_IN_SIGHT)
    assert 59_900 < seq <= 60_000


def test_kinds_can_be_hidden_and_the_address_remembers(open_page: Open, told: str) -> None:
    """Filters are part of the address."""
    page = ready(open_page(f"/runs/{told}"))
    page.get_by_role("button", name=re.compile("^Tools")).click()
    expect(page.locator(".row.is-tool")).to_have_count(0)
    expect(page).to_have_url(re.compile("hide="))
    page.reload()
    expect(page.get_by_text("I'll find out why")).to_be_visible()
    expect(page.locator(".row.is-tool")).to_have_count(0)


def test_the_raw_line_of_an_entry_is_shown(open_page: Open, told: str) -> None:
    """D2: bytes are the truth, and one key away."""
    page = ready(open_page(f"/runs/{told}"))
    page.get_by_text("I'll find out why").click()
    page.keyboard.press("r")
    expect(page.locator("aside mark")).to_contain_text('"kind": "assistant"')


def test_a_run_can_be_cancelled(open_page: Open, stage: Stage, curtain: Path) -> None:
    """A11: asked for in the page, the agent ends."""
    story = [stories.begun(), stories.said("Waiting."), {"until": str(curtain)}]
    page = open_page(f"/runs/{stage.tell(story, 'Wait', live=True)}")
    expect(page.locator("header")).to_contain_text("usage not told yet")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("header")).to_contain_text("cancelled")
    expect(page.locator("header")).to_contain_text("cost unknown")


def test_a_lost_server_is_told_and_heals(open_page: Open, stage: Stage, curtain: Path) -> None:
    """D1, D9: the server restarts while the agent works; the page goes on where it was.

    The transcript is written anew by whoever takes the run over; nobody sees an empty page.
    """
    story = [
        stories.begun(),
        *(stories.said(f"Early line {number}.") for number in range(500)),
        stories.thought("hm"),
        stories.said("Before."),
        {"until": str(curtain)},
        stories.said("After."),
        stories.ended("Done."),
    ]
    page = open_page(f"/runs/{stage.tell(story, 'Restart', live=True)}")
    expect(page.get_by_text("Before.")).to_be_visible()
    page.evaluate(WATCH_FOR_BLANKS)
    port = int(stage.address.rpartition(":")[2])
    stage.close()
    expect(page.get_by_text("The connection is lost")).to_be_visible()
    expect(page.get_by_text("Before.")).to_be_visible()
    stage.open(port)
    curtain.touch()
    expect(page.get_by_text("After.", exact=True)).to_be_visible()
    expect(page.locator("header")).to_contain_text("succeeded")
    expect(page.get_by_text("Before.")).to_have_count(1)
    assert page.evaluate("window.blanks") == 0
    page.keyboard.press("Home")
    expect(page.get_by_text("Early line 0.")).to_be_in_viewport()


HOSTILE = (
    '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
    "<svg/onload=window.hit=1>[x](javascript:window.hit=1)\"'`onmouseover=window.hit=1"
)


def test_nothing_an_agent_prints_runs_in_the_page(open_page: Open, stage: Stage) -> None:
    """A8, U4: hostile text in every field that an agent controls is only text."""
    markup = [
        {**stories.begun(HOSTILE), "sessionId": HOSTILE},
        stories.said(HOSTILE),
        stories.thought(HOSTILE),
        {"kind": "user", "ts": "", "text": HOSTILE},
        {"kind": "system", "ts": "", "text": HOSTILE},
        *stories.shell(HOSTILE, HOSTILE, bad=True, code=1),
        *stories.tool("mcp", HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, name=HOSTILE, bad=True),
        *stories.tool("edit", HOSTILE, {}, "", diff=f"+{HOSTILE}\n-{HOSTILE}", path=HOSTILE),
        *stories.plan((HOSTILE, HOSTILE)),
        {"err": HOSTILE},
        {"print": HOSTILE},
        stories.ended(HOSTILE, bad=True),
    ]
    page = open_page(f"/runs/{stage.tell(markup, HOSTILE)}?panel=details")
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    page.keyboard.press("E")
    for key in ("End", "Home"):
        page.keyboard.press(key)
        expect(page.locator(".slot").first).to_be_attached()
    page.get_by_role("tab", name="Raw").click()
    page.get_by_role("tab", name="Changes").click()
    assert page.evaluate("window.hit") is None
    assert page.locator("#transcript script, #transcript iframe").count() == 0
    assert [url for url in elsewhere if not url.startswith(stage.address)] == []


def test_the_page_has_a_strict_policy(stage: Stage, open_page: Open, told: str) -> None:
    """No inline script, nothing from elsewhere."""
    page = open_page(f"/runs/{told}")
    policy = page.request.get(f"{stage.address}/runs/{told}").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(open_page: Open, told: str, width: int, scheme: str) -> None:
    """Labels, contrast and roles hold in both themes and widths."""
    page = open_page(f"/runs/{told}?panel=details", width, 844, scheme)
    expect(page.locator(".slot").first).to_be_visible()
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run().then((told) => told.violations)")
    serious = [
        (one["id"], [node["html"][:160] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_phone_needs_no_sideways_scrolling(open_page: Open, told: str) -> None:
    """390 px are enough."""
    page = open_page(f"/runs/{told}", 390, 844)
    expect(page.locator(".slot").first).to_be_visible()
    page.keyboard.press("E")
    wide = page.evaluate(
        "[document.documentElement.scrollWidth, document.querySelector('.scroller').scrollWidth]"
    )
    assert max(wide) <= 390


def test_an_unknown_run_says_so(open_page: Open) -> None:
    """P6: what is not there is told, with a way on."""
    page = open_page("/runs/01a00000-0000-7000-8000-000000000000")
    expect(page.get_by_role("alert")).to_contain_text("There is no run")
    expect(page.get_by_role("link", name="All runs")).to_be_visible()


def test_a_rare_kind_of_a_long_run_is_looked_for_with_an_end(open_page: Open, long: str) -> None:
    """A filter that leaves next to nothing neither blanks the page nor reads the whole run."""
    page = ready(open_page(f"/runs/{long}"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for kind in ("Text", "Thinking", "Tools"):
        page.get_by_role("button", name=re.compile(f"^{kind}")).click()
    expect(page.get_by_role("button", name="Look further")).to_be_visible()
    assert sum("/transcript?" in url for url in asked) < 60
    page.get_by_role("button", name=re.compile("^Text")).click()
    expect(page.locator(".row.is-text").first).to_be_visible()


def test_a_live_run_tells_its_model_and_session_before_it_ends(
    open_page: Open, stage: Stage, curtain: Path
) -> None:
    """T1: the header knows what the runtime said of itself, wherever the reader is."""
    many = [stories.said(f"Line {number}.") for number in range(800)]
    story = [stories.begun("opus-9"), *many, {"until": str(curtain)}, stories.ended("Done.")]
    page = open_page(f"/runs/{stage.tell(story, 'Early words', live=True)}")
    header = page.locator("header")
    expect(header).to_contain_text("opus-9")
    expect(header).to_contain_text("session e82ef9f7")
    expect(page.get_by_text("Line 799.")).to_be_visible()
    curtain.touch()
    expect(header).to_contain_text("succeeded")


def test_a_run_that_asked_a_person_carries_a_hand(
    open_page: Open, stage: Stage, curtain: Path
) -> None:
    """R1: whoever looks at the run sees that somebody waits, and is led to the question."""
    wait = f"echo here; while [ ! -e '{curtain}' ]; do sleep 0.05; done"
    config = {"command": "sh", "args": ["-c", wait], "cwd": str(stage.cwd)}
    body = {"name": "Asker", "adapterType": "process", "adapterConfig": config}
    agent = httpx.post(f"{stage.address}/api/agents", json=body).json()
    wish = {"title": "Tidy the formats", "assigneeAgentId": agent["id"]}
    task = httpx.post(f"{stage.address}/api/issues", json=wish).json()["id"]
    (run,) = httpx.get(f"{stage.address}/api/runs?issueId={task}").json()["items"]
    page = open_page(f"/runs/{run['id']}")
    expect(page.get_by_text("here", exact=True)).to_be_visible()
    token = Tokens(Home(stage.home)).for_run(run["id"], agent["id"], agent["companyId"])
    asked = {"kind": "request_confirmation", "title": "Drop v1?"}
    headers = {"authorization": f"Bearer {token}"}
    address = f"{stage.address}/api/issues/{task}/interactions"
    httpx.post(address, json=asked, headers=headers).raise_for_status()
    curtain.touch()
    page.get_by_role("link", name="Waits for you").click()
    expect(page.get_by_text("Drop v1?")).to_be_visible()


@pytest.mark.parametrize("panel", ["changes", "raw", "history"])
def test_axe_finds_nothing_serious_in_the_panels(open_page: Open, told: str, panel: str) -> None:
    """Every tab of the panel is labelled and readable."""
    page = ready(open_page(f"/runs/{told}?panel={panel}", 1280, 844, "dark"))
    expect(page.get_by_role("tabpanel")).not_to_be_empty()
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run().then((told) => told.violations)")
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


ENDLESS = 40_000_000


def endless(page: Page, run: str) -> None:
    """Let a finished run look as if it had very many entries, more than any disk here holds."""

    def outline(route: Route) -> None:
        told = route.fetch().json()
        told["attempts"][0]["total"] = told["total"] = ENDLESS
        route.fulfill(json=told)

    def entries(route: Route) -> None:
        first, limit = map(int, re.findall(r"(?:from|limit)=(\d+)", route.request.url))
        seqs = range(first, min(ENDLESS, first + limit))
        made = [{**stories.said(f"Entry {n}."), "id": f"1o{n}.0", "seq": n} for n in seqs]
        told = {"entries": made, "fromSeq": first, "total": ENDLESS}
        route.fulfill(json={**told, "complete": True, "cursor": f"1.{ENDLESS}.1"})

    page.route(f"**/api/runs/{run}/outline", outline)
    page.route(f"**/api/runs/{run}/transcript?*", entries)


def test_forty_million_entries_scroll_like_fifty(open_page: Open, told: str) -> None:
    """An element cannot be taller than 33 million pixels: the sheet is re-based, not cut."""
    page = open_page("/runs")
    endless(page, told)
    page.evaluate(f"history.pushState(null, '', '/runs/{told}')")
    page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.get_by_text("Entry 0.", exact=True)).to_be_in_viewport()
    sheet = page.locator(".scroller")
    assert sheet.evaluate("(one) => one.scrollHeight") < 33_000_000
    for share in (0.5, 0.9, 0.1):
        sheet.evaluate("(one, share) => { one.scrollTop = one.scrollHeight * share; }", share)
        timeline = page.get_by_role("scrollbar", name="Timeline of the run")
        near = re.compile(
            rf"^{ENDLESS * share / 1e6:.0f}\d{{6}}$|^{ENDLESS * share / 1e6 - 1:.0f}\d{{6}}$"
        )
        expect(timeline).to_have_attribute("aria-valuenow", near)
        expect(page.locator(".slot").first).to_be_attached()
        assert page.locator(".slot").count() < 200
    page.keyboard.press("End")
    expect(page.get_by_text(f"Entry {ENDLESS - 1}.")).to_be_in_viewport()
    page.mouse.move(600, 400)
    page.mouse.wheel(0, -3000)
    expect(page.get_by_text(f"Entry {ENDLESS - 1}.")).not_to_be_in_viewport()
    seq, _ = page.evaluate(FIRST_IN_SIGHT)
    assert ENDLESS - 400 < seq < ENDLESS
    page.keyboard.press("Home")
    expect(page.get_by_text("Entry 0.", exact=True)).to_be_in_viewport()
