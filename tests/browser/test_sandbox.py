"""Foreign parsers in the browser's sandbox: good ones are used, hostile ones reach nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.stage import _PROGRAM, Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
HERMES = Path(__file__).parents[2] / "examples/hermes"
KEEN = "export function parseStdoutLine(text, ts) {{ {} }}"
ADAPTER = """
from binderclip.sdk import Call, CliAdapter, CliConfig, Command

class Shell(CliAdapter):
    Config = CliConfig

    def command(self, call: Call) -> Command:
        return Command(["sh", "-c", call.prompt])

def create_adapter() -> Shell:
    return Shell()
"""
FACTS = """
id = "shouter"
label = "Shouter"
version = "1"
command = "sh"
uiParser = "ui-parser.js"
uiParserVersion = "{}"
"""
SHOUT = KEEN.format("return [{ kind: 'assistant', ts, text: text.toUpperCase() }];")
ROWS = "slots => slots.map((one) => [one.dataset.key, one.innerText])"
Open = Callable[..., Page]


class Canary:
    """A server that nobody may reach."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        hits = self.hits

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hits.append(self.path)
                self.send_response(204)
                self.end_headers()

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Hits are counted, not printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    canary = Canary()
    yield canary
    canary.close()


def install(stage: Stage, folder: Path) -> None:
    words = [*_PROGRAM, "adapters", "install", str(folder)]
    told = subprocess.run(words, env=stage.env, capture_output=True, text=True, timeout=110)
    assert told.returncode == 0, told.stderr


def plugin(folder: Path, type: str, source: str, version: str = "1.0.0") -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter.toml").write_text(FACTS.format(version).replace("shouter", type))
    (folder / "__init__.py").write_text(ADAPTER)
    (folder / "ui-parser.js").write_text(source)
    return folder


@pytest.fixture(scope="module")
def shout(stage: Stage) -> str:
    """A finished run of a plugin with a parser of its own."""
    install(stage, plugin(stage.folder / "shouter", "shouter", SHOUT))
    return stage.call("run", "--adapter", "shouter", "--json", "echo first; echo second")


@pytest.fixture
def open_with(browser: Browser, stage: Stage) -> Iterator[Open]:
    """Open a run while the server hands out another parser; the page itself never fails."""
    pages: list[Page] = []
    wrong: list[str] = []

    def open_(
        run: str, source: str | None = None, status: int = 200, entry: str | None = None
    ) -> Page:
        page = browser.new_context().new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        if source is not None:
            page.route(
                "**/ui-parser.js",
                lambda route: route.fulfill(
                    status=status, content_type="text/javascript", body=source
                ),
            )
        link = f"&entry={entry}" if entry else ""
        page.goto(f"{stage.address}/runs/{run}?panel=details{link}")
        expect(page.locator(".slot").first).to_be_visible()
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.context.close()
    assert wrong == []


def badge(page: Page, words: str) -> None:
    expect(page.locator(".note")).to_contain_text(words)


def shows(page: Page, words: str) -> None:
    expect(page.locator("#transcript")).to_contain_text(words)


def reads_itself(page: Page) -> None:
    expect(page.get_by_text("Read in this browser by the adapter's own parser.")).to_be_visible()


def answers(page: Page) -> None:
    """The viewer does what its reader asks, and no frame is left behind."""
    page.keyboard.press("d")
    expect(page.get_by_label("Run details")).to_have_count(0)
    expect(page.locator("iframe")).to_have_count(0)


def test_a_good_parser_takes_the_place_of_the_hosts_records(open_with: Open, shout: str) -> None:
    """U5: what the host knows is shown first, then what the adapter's parser makes of it."""
    page = open_with(shout, SHOUT.replace("toUpperCase()", "concat('!')"))
    reads_itself(page)
    shows(page, "first!")
    expect(page.locator(".note")).to_have_count(0)
    answers(page)


def test_a_file_in_common_js_form_is_loaded_and_repairs_are_counted(
    open_with: Open, shout: str
) -> None:
    """U2, T4: sloppy CommonJS files of the wild load; an object instead of a list is repaired."""
    body = "loud = 1; return text === 'first' ? { kind: 'user', ts, text: 'cjs' } : [7]"
    page = open_with(shout, f"exports.parseStdoutLine = function (text, ts) {{ {body} }};")
    shows(page, "cjs")
    badge(page, "1 entry repaired, 1 dropped")


def test_hermes_gives_equal_entries_in_the_browser_and_on_the_host(
    open_with: Open, stage: Stage, shout: str
) -> None:
    """D3: the same ids, rows and words, whichever engine read the lines."""
    install(stage, HERMES)
    program = stage.folder / "hermes-sample"
    sample = HERMES / "fixtures/plain/stdout.txt"
    program.write_text(f"#!/bin/sh\ncat '{sample}'\n")
    program.chmod(0o755)
    run = stage.call("run", "--adapter", "hermes", "--config", f"command={program}", "--json", "x")
    total = httpx.get(f"{stage.address}/api/runs/{run}/transcript").json()["total"]
    assert total > 5
    host = open_with(run, "", status=404)
    badge(host, "404")
    own = open_with(run)
    reads_itself(own)
    rows = host.locator(".slot").evaluate_all(ROWS)
    assert len(rows) > 3
    assert own.locator(".slot").evaluate_all(ROWS) == rows


def test_a_live_run_is_parsed_as_it_grows(
    open_with: Open, stage: Stage, curtain: Path, shout: str
) -> None:
    """U5, D9: lines of a running agent go through the sandbox too."""
    script = f"echo early; while [ ! -e '{curtain}' ]; do sleep 0.05; done; echo later"
    run = stage.listed(stage.call("run", "--adapter", "shouter", "--detach", script))
    page = open_with(run, SHOUT.replace("toUpperCase()", "concat('!')"))
    shows(page, "early!")
    curtain.touch()
    shows(page, "later!")
    expect(page.locator("header")).to_contain_text("succeeded")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (KEEN.format("for (;;) {}"), "deadline: lines took more than"),
        (KEEN.format("return /^(a+)+$/.test('a'.repeat(50) + '!');"), "deadline"),
        (KEEN.format("return { toJSON() { for (;;) {} } };"), "deadline"),
        ("for (;;) {}\n" + SHOUT, "deadline: it did not load"),
        ("Object.prototype.then = () => {};\n" + SHOUT, "deadline"),
        ("export function parseStdoutLine( {", "it cannot be loaded"),
        ("export const nothing = 1;", "it exports neither"),
        (
            "Object.defineProperty(Array.prototype, '0', { set() {}, get: () => '' });\n" + SHOUT,
            "results ≠ lines",
        ),
    ],
    ids=["loop", "regex", "toJSON", "load", "thenable", "syntax", "exports", "prototype"],
)
def test_a_parser_that_cannot_be_used_leaves_the_hosts_entries_and_a_reason(
    open_with: Open, shout: str, source: str, reason: str
) -> None:
    """U4, U5: the frame is removed, generic goes on, the badge names the reason."""
    page = open_with(shout, source)
    badge(page, reason)
    shows(page, "FIRST")
    answers(page)


@pytest.mark.parametrize(
    "body",
    [
        "for (;;) postMessage('flood');",
        "return [{ get kind() { throw new Error('no'); } }];",
        "const one = {}; one.self = one; return one;",
        "throw { get message() { throw 1; } };",
    ],
    ids=["flood", "getter", "cycle", "thrown getter"],
)
def test_a_line_that_makes_a_parser_throw_is_generic_and_counted(
    open_with: Open, shout: str, body: str
) -> None:
    """T3, U4: the parser stays, its line falls back."""
    page = open_with(shout, KEEN.format(body))
    badge(page, "it threw at 2 lines")
    shows(page, "2 lines not understood")
    answers(page)


def test_forty_megabytes_for_a_line_are_not_taken(open_with: Open, shout: str) -> None:
    """U4: a slow machine meets the deadline first, a fast one the limit for a line."""
    page = open_with(
        shout, KEEN.format("return [{ kind: 'user', ts, text: 'x'.repeat(40_000_000) }];")
    )
    expect(page.locator(".note")).to_have_text(re.compile("deadline|it threw at 2 lines"))
    answers(page)


def test_replaced_builtins_hurt_nobody_but_their_parser(open_with: Open, shout: str) -> None:
    """U4: what a parser changes of the language stays in its own worker."""
    tricks = "JSON.stringify = JSON.parse = Array.prototype.join = Array.prototype.push = () => 0;"
    page = open_with(shout, tricks + SHOUT.replace("toUpperCase()", "concat('!')"))
    shows(page, "first!")
    assert page.evaluate("JSON.stringify([1])") == "[1]"


def test_nothing_leaves_the_sandbox(open_with: Open, shout: str, canary: Canary) -> None:
    """U4: no network, no storage, no page; only the language is there."""
    names = (
        "fetch XMLHttpRequest WebSocket EventSource Worker importScripts postMessage navigator "
        "self URL Blob BroadcastChannel indexedDB caches setTimeout crypto Intl structuredClone "
        "TextDecoder atob location close addEventListener WebAssembly"
    )
    body = f"""
      import("{canary.address}/import").catch(() => 0);
      import("data:text/javascript,fetch('{canary.address}/data')").catch(() => 0);
      try {{ fetch("{canary.address}/fetch"); }} catch {{}}
      try {{ Function("return 1")(); return []; }} catch {{}}
      const found = "{names}".split(" ").filter((name) => globalThis[name] !== undefined);
      return [{{ kind: "user", ts, text: "found:" + found.join() + "." }}];"""
    page = open_with(shout, KEEN.format(body))
    shows(page, "found:.")
    assert httpx.get(f"{canary.address}/alive").status_code == 204
    assert canary.hits == ["/alive"]


def test_a_parser_of_another_version_is_refused_with_the_reason(
    open_with: Open, stage: Stage
) -> None:
    """U1, U5: another major version of the contract is not loaded, and the badge says so."""
    install(stage, plugin(stage.folder / "future", "future", SHOUT, version="2.0.0"))
    run = stage.call("run", "--adapter", "future", "--json", "echo tomorrow")
    page = open_with(run)
    badge(page, "it speaks version 2.0.0 of the contract")
    shows(page, "tomorrow")


def test_a_parser_that_is_too_large_is_refused_with_the_reason(
    open_with: Open, stage: Stage
) -> None:
    """U2, U5: 50 KB are the limit."""
    install(stage, plugin(stage.folder / "large", "large", SHOUT + "//" + "x" * 60_000))
    page = open_with(stage.call("run", "--adapter", "large", "--json", "echo much"))
    badge(page, "more than 51200")
    shows(page, "much")


def test_a_failed_parser_is_not_tried_again(open_with: Open, shout: str) -> None:
    """U5: no retries until the adapter changes."""
    page = open_with(shout, "export function parseStdoutLine( {")
    badge(page, "it cannot be loaded")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        "history.pushState(null, '', '/runs'); dispatchEvent(new PopStateEvent('popstate'))"
    )
    expect(page.locator(".slot")).to_have_count(0)
    page.go_back()
    badge(page, "it cannot be loaded")
    assert not [url for url in asked if url.endswith(("/ui-parser.js", "/sandbox"))]


def test_positions_are_those_of_the_entries_that_are_shown(
    open_with: Open, stage: Stage, shout: str
) -> None:
    """D3, T1b: errors, search, timeline and links go by the shown entries, not by the host's."""
    run = stage.call("run", "--adapter", "shouter", "--json", "seq 1 120")
    page = open_with(
        run,
        KEEN.format(
            "const n = Number(text);"
            "if (n === 60) return [{ kind: 'tool_result', ts, toolUseId: 'u', content: 'sixty',"
            " isError: true }];"
            "return n % 2 ? [] : [{ kind: 'user', ts, text: `even ${n}` }];"
        ),
    )
    reads_itself(page)
    timeline = page.get_by_role("scrollbar", name="Timeline of the run")
    expect(timeline).to_have_attribute("aria-valuemax", "59")
    page.keyboard.press("n")
    expect(page.locator(".row.selected")).to_contain_text("sixty")
    page.keyboard.press("/")
    page.keyboard.type("EVEN 118")
    expect(page.locator(".hits")).to_contain_text("/1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("even 118")).to_be_in_viewport()
    expect(page.locator(".row.selected")).to_contain_text("even 118")


def test_a_link_keeps_its_entry_when_another_parser_moves_it(
    open_with: Open, stage: Stage, shout: str
) -> None:
    """D2: an entry's id tells its line, whatever stands before it."""
    run = stage.call("run", "--adapter", "shouter", "--json", "seq 1 2000")
    whole = httpx.get(f"{stage.address}/api/runs/{run}/transcript?from=1999&limit=1").json()
    entry = whole["entries"][0]["id"]
    source = KEEN.format(
        "return Number(text) % 10 ? [] : [{ kind: 'user', ts, text: `tenth ${text}` }];"
    )
    page = open_with(run, source, entry=entry)
    reads_itself(page)
    expect(page.locator(".row.selected")).to_contain_text("tenth 2000")
    expect(page.locator(".row.selected")).to_be_in_viewport()


def test_a_parser_that_fails_in_the_middle_of_a_live_run_gives_way_to_the_host(
    open_with: Open, stage: Stage, curtain: Path, shout: str
) -> None:
    """U5: what it had made is taken back, the host's entries stand there, and the run goes on."""
    last = curtain.with_name("last")
    script = (
        f"echo early; while [ ! -e '{curtain}' ]; do sleep 0.05; done; echo later; "
        f"while [ ! -e '{last}' ]; do sleep 0.05; done; echo at last"
    )
    run = stage.listed(stage.call("run", "--adapter", "shouter", "--detach", script))
    body = "if (text === 'later') for (;;) {} return [{ kind: 'user', ts, text: text + '!' }];"
    page = open_with(run, KEEN.format(body))
    shows(page, "early!")
    curtain.touch()
    badge(page, "deadline: lines took more than")
    shows(page, "EARLY")
    shows(page, "LATER")
    expect(page.get_by_text("early!")).to_have_count(0)
    last.touch()
    shows(page, "AT LAST")
    expect(page.locator("header")).to_contain_text("succeeded")
    assert page.locator("#transcript").inner_text().count("EARLY") == 1


def test_each_attempt_is_read_by_a_parser_that_knows_nothing_of_the_one_before(
    open_with: Open, stage: Stage
) -> None:
    """T2, S4: state belongs to one attempt; positions go on through both."""
    counting = """
      export function createStdoutParser() {
        let seen = 0;
        return { parseLine: (text, ts) => [{ kind: 'user', ts, text: `${++seen} ${text}` }] };
      }"""
    install(stage, plugin(stage.folder / "counting", "counting", counting))
    run = stage.call("run", "--adapter", "counting", "--json", "echo one; echo two")
    (first,) = stage.home.glob(f"runs/*/{run}/attempt-1")
    # The transcripts of both are made again from the logs.
    (first / "transcript.jsonl").unlink()
    shutil.copytree(first, first.with_name("attempt-2"))
    page = open_with(run)
    reads_itself(page)
    for words in ("1 one", "2 two"):
        expect(page.get_by_text(words, exact=True)).to_have_count(2)
    total = httpx.get(f"{stage.address}/api/runs/{run}/outline").json()["total"]
    timeline = page.get_by_role("scrollbar", name="Timeline of the run")
    expect(timeline).to_have_attribute("aria-valuemax", str(total - 1))
