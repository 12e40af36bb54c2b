"""One log, two engines: Chromium's sandbox and the host's QuickJS give equal entries (D3, T4)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, expect

from binderclip.sdk.loading import load_adapter_from
from tests.browser.engines import Printed, in_browser, on_host, printed
from tests.browser.stage import _PROGRAM, Stage
from tests.plugins.conftest import CACHE
from tests.plugins.test_published import BOXES, GATEWAY, QWEN, RECORDED, stand_in

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
HERMES = Path(__file__).parents[2] / "examples" / "hermes"
FIXTURES = sorted(path.name for path in (HERMES / "fixtures").iterdir())
ECHO = "export const parseStdoutLine = (line) => JSON.parse(line);"
SAYS = "export const parseStdoutLine = (line, ts) => {{ {} }};"
LONG = 64 * 1024

ODD: dict[str, Any] = {
    "nothing": [None, [], [None], [[]], [[{"kind": "user", "text": "nested"}]]],
    "no objects": [0, -1.5, "text", True, [1, "x", False]],
    "no kind": [{}, {"text": "x"}, {"kind": None}, {"kind": ["user"]}, {"kind": ""}],
    "kinds of objects": [{"kind": "constructor"}, {"kind": "__proto__"}, {"kind": "toString"}],
    "unknown kinds with odd numbers": [
        {"kind": "usage", "cost": 1e-7, "small": 0.000001, "tiny": 1.5e-300, "large": 1e21},
        {"kind": "usage", "n": 12345678901234567890, "neg": -1e-9, "zero": -0.0, "whole": 2.0},
        {"kind": "usage", "deep": [{"a": [1e-10, 123456789.123456789]}], "b": 1e16},
    ],
    "unknown kinds with odd texts": [
        {"kind": "log", "é\u2028": '\u2029\x00\x7f\ufeff/<!--"\\', "10": 1, "2": 2, "a": 3},
        {"kind": "log", "__proto__": {"kind": "user"}, "toJSON": "x"},
    ],
    "texts of wrong types": [
        {"kind": kind, "text": text}
        for kind in ("assistant", "thinking", "user", "stderr", "system", "stdout", "diff")
        for text in (None, 5, ["x"], {"a": 1}, "", "ok")
    ],
    "deltas": [
        {"kind": "assistant", "text": "a", "delta": True},
        {"kind": "assistant", "text": "b", "delta": True, "parentToolUseId": "p"},
        {"kind": "assistant", "text": "c", "delta": True},
        {"kind": "thinking", "text": "t", "delta": 1},
        {"kind": "assistant", "text": "d", "delta": True},
        {"kind": "user", "text": "u", "delta": True},
        {"kind": "thinking", "text": "v", "delta": True, "parentToolUseId": ""},
        {"kind": "thinking", "text": "w", "delta": True, "parentToolUseId": 7},
    ],
    "calls": [
        {"kind": "tool_call"},
        {"kind": "tool_call", "name": 5},
        {"kind": "tool_call", "name": "", "input": 0},
        {"kind": "tool_call", "name": "a", "input": False, "toolUseId": 3, "toolKind": ["shell"]},
        {"kind": "tool_call", "name": "a", "input": "", "toolUseId": "x", "toolKind": "todo"},
        {"kind": "tool_call", "name": "b", "input": {"n": 1e-7}, "toolUseId": "x", "title": 1},
        {"kind": "tool_call", "name": "c", "toolUseId": "x#2", "toolKind": "todo"},
        {"kind": "tool_call", "name": "c", "toolUseId": "call-1", "toolKind": "todo"},
        {"kind": "tool_call", "name": "toString", "toolUseId": "constructor"},
    ],
    "pairs": [
        {"kind": "tool_call", "name": "shell", "toolUseId": "1"},
        {"kind": "tool_call", "name": "shell"},
        {"kind": "tool_call", "name": "shell", "toolUseId": "1"},
        {"kind": "tool_result", "toolUseId": "1", "content": 0},
        {"kind": "tool_result", "toolUseId": "shell", "content": False, "exitCode": True},
        {"kind": "tool_result", "toolName": "shell", "content": [1e-7, None], "isError": 1},
        {"kind": "tool_result", "toolName": "shell", "content": "late", "durationMs": -0.5},
        {"kind": "tool_result", "content": None},
        {"kind": "tool_result", "content": "", "exitCode": 1e300, "durationMs": 9007199254740992},
        {"kind": "tool_result", "toolUseId": "", "toolName": "", "content": {}, "exitCode": "1"},
        {"kind": "tool_result", "toolUseId": "9", "content": "z", "exitCode": -3.9},
    ],
    "diffs": [
        {"kind": "diff", "text": "+", "changeType": change, "path": path, "toolUseId": path}
        for change in ("add", "hunk", "moved", None, ["add"], 3)
        for path in ("a", "", 3)
    ],
    "ends": [
        {"kind": "result", "inputTokens": "5", "outputTokens": 2.9, "cachedTokens": -1.5},
        {"kind": "result", "costUsd": True, "errors": "no", "isError": "true", "subtype": 3},
        {"kind": "result", "costUsd": 1e-9, "errors": ["a", None, "b", {"c": 1}], "isError": True},
        {"kind": "result", "inputTokens": 1e300, "costUsd": -0.0, "text": ["x"]},
        {"kind": "init", "model": ["m"], "sessionId": {"s": 1}, "parentToolUseId": "p"},
    ],
    "long texts": [
        {"kind": "assistant", "text": "é" * (LONG // 2)},
        {"kind": "assistant", "text": "é" * (LONG // 2) + "x"},
        {"kind": "assistant", "text": "x" + "é" * LONG},
        {"kind": "tool_result", "toolUseId": "t", "content": "💬" * (LONG // 2)},
        {"kind": "user", "text": "y" * LONG},
        {"kind": "user", "text": "y" * (LONG + 1)},
    ],
    "long growing texts": [
        *[{"kind": "assistant", "text": "é" * 9001, "delta": True}] * 5,
        {"kind": "user", "text": "x"},
        {"kind": "assistant", "text": "again", "delta": True},
    ],
    "answers that look like errors": [{"error": "mine"}, {"error": 1, "kind": "user"}],
}
BODIES = {
    "half of a character": "return { kind: 'user', text: '😀'.slice(0, 1) + '|' + '😀'.slice(1) };",
    "halves in keys and content": (
        "return [{ kind: 'x\\ud800', ['\\udc00']: '\\\\ud800' },"
        " { kind: 'tool_result', toolUseId: '\\ud83d', content: ['\\\\\\ud83d'] }];"
    ),
    "thrown words that throw": "throw { get message() { throw 1; } };",
    "a thrown name that throws": "throw { get name() { throw 1; } };",
    "thrown nothing": "throw undefined;",
    "a false alarm": "throw { name: 'InternalError', message: 'interrupted' };",
    "endless recursion": "const f = () => f() + 1; return f();",
    "nested too deeply": "let a = []; for (let i = 0; i < 600; i += 1) a = [a]; return a;",
    "a deep input": (
        "let a = []; for (let i = 0; i < 150; i += 1) a = { a };"
        " return { kind: 'tool_call', name: 'n', input: a };"
    ),
    "a big integer": "return 10n;",
    "a map": "return new Map([[1, 2]]);",
    "a promise": "return Promise.resolve([]);",
    "a function": "return () => 1;",
    "a symbol": "return Symbol('x');",
    "holes": "const a = []; a[5] = { kind: 'user', text: 'x' }; return a;",
    "no number": "return NaN;",
    "no finite numbers": "return { kind: 'result', inputTokens: Infinity, costUsd: NaN };",
    "a date": "return { kind: 'user', text: new Date(0) };",
    "its own JSON": "return { toJSON() { return { kind: 'user', text: 'own' }; } };",
    "inherited fields": "return Object.create({ kind: 'user', text: 'inherited' });",
    "too many": "return Array(500).fill({ kind: 'user', text: line });",
    "too much": "return { kind: 'user', text: 'x'.repeat(2e6) };",
    "grouped digits": (
        "return { kind: 'user', text: [0, -1, 999, 1234, -1234567.8919, 0.0005, 1e21, NaN, -1/0]"
        ".map((n) => n.toLocaleString()).join(' ') };"
    ),
    "words in order": (
        "return { kind: 'user', text: ['b', 'ä', 'a', 'Z', 'z'].sort((a, b) =>"
        " a.localeCompare(b)).join() + 'a'.localeCompare('a') };"
    ),
    "the same time everywhere": (
        "const d = new Date(1e12); return { kind: 'user', text: [d.toLocaleString(),"
        " d.toLocaleDateString(), d.toLocaleTimeString()].join() };"
    ),
    "what is there": (
        "const names = Object.getOwnPropertyNames(globalThis);"
        " return names.sort().map((text) => ({ kind: 'user', text }));"
    ),
    "what kinds of things are there": (
        "return { kind: 'user', text: [typeof atob, typeof performance, typeof queueMicrotask,"
        " typeof Intl, typeof console.warn, typeof setTimeout, typeof InternalError].join() };"
    ),
    "language": (
        "const g = /(?<w>\\p{L}+)/u.exec('é1')?.groups; const [x = 1, ...y] = [, 2, 3];"
        " return { kind: 'user', text: [g.w, x, y, 'a-b'.replaceAll('-', '+'), [3, 1].at(-1),"
        " [[1], [2]].flatMap((v) => v), 'x'.padStart(3, '·'), 2 ** 3, null ?? 7].join() };"
    ),
}
SAID = "return [{ kind: 'user', ts, text: l }];"
FORMS = (
    f"\ufeffexport function parseStdoutLine(l, ts) {{ {SAID} }}",
    f"const own = (l, ts) => {{ {SAID} }};\r\nexport {{ own as parseStdoutLine }};\r\n",
    f"export default {{ parseStdoutLine(l, ts) {{ {SAID} }} }};",
    f"export const parseMyStdoutLine = (l, ts) => {{ {SAID} }};",
    f"class P {{ parseLine(l, ts) {{ {SAID} }} }}\n"
    "export const createStdoutParser = () => new P();",
    "export const createStdoutParser = () => null;\n"
    f"export const parseStdoutLine = (l, ts) => {{ {SAID} }};",
    f"'use strict';\nexports.parseStdoutLine = (l, ts) => {{ {SAID} }};\n//# sourceMappingURL=x",
    f"module.exports = {{ parseStdoutLine: (l, ts) => {{ {SAID} }} }};",
    f"// no export function here\nexports.parseStdoutLine = (l, ts) => {{ {SAID} }};",
    "var r = {}; Object.defineProperty(r, 'parseStdoutLine', { get: () => p, enumerable: !0 });"
    f" module.exports = r; function p(l, ts) {{ {SAID} }}",
    "(function (f) { if (typeof exports === 'object') f(exports); else f(globalThis.P = {}); })("
    f"function (e) {{ e.parseStdoutLine = (l, ts) => {{ {SAID} }}; }});",
)
TEXT = st.text(max_size=12) | st.sampled_from(("", "a", "b", "call-1", "a#2"))
NUMBER = st.integers(-(2**60), 2**60).map(float) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KINDS = [
    "init",
    "assistant",
    "thinking",
    "user",
    "tool_call",
    "tool_result",
    "result",
    "stderr",
    "stdout",
    "diff",
    "token",
]
FIELDS = [
    "text",
    "name",
    "input",
    "toolUseId",
    "toolName",
    "content",
    "isError",
    "delta",
    "parentToolUseId",
    "toolKind",
    "title",
    "exitCode",
    "durationMs",
    "changeType",
    "path",
    "model",
    "sessionId",
    "costUsd",
    "errors",
    "inputTokens",
    "ts",
    "id",
]
VALUES = TEXT | PLAIN | st.sampled_from(("shell", "todo", "add", True, 3))
ENTRY = st.builds(
    lambda kind, fields: {"kind": kind, **fields},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=7),
)
ANSWERS = st.lists(ENTRY | st.lists(ENTRY, max_size=3) | PLAIN, min_size=1, max_size=30)


@pytest.fixture(scope="module")
def page(browser: Browser, stage: Stage) -> Iterator[Page]:
    """A page of the app, whose sandbox is borrowed."""
    page = browser.new_context().new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{stage.address}/runs")
    yield page
    page.context.close()


def told(values: list[Any]) -> list[Printed]:
    lines = "".join(json.dumps(value) + "\n" for value in values)
    return printed(lines.encode())


@pytest.mark.parametrize("name", FIXTURES)
def test_every_recording_of_hermes_is_equal_in_three_engines(page: Page, name: str) -> None:
    """D3: the browser, QuickJS and the adapter's parser in Python."""
    folder = HERMES / "fixtures" / name
    source = (HERMES / "ui-parser.js").read_text("utf-8")
    lines = printed((folder / "stdout.txt").read_bytes())
    shown = in_browser(page, source, lines)
    assert shown == on_host(source, lines)
    python = load_adapter_from(str(HERMES)).create_parser()
    assert shown == on_host(source, lines, parser=python)
    assert shown["entries"] or not lines


@pytest.mark.parametrize("renumber", [False, True], ids=["as told", "renumbered"])
@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_repaired_alike(page: Page, name: str, renumber: bool) -> None:
    """T4: a table of what parsers return, one value a line."""
    lines = told(ODD[name])
    shown = in_browser(page, ECHO, lines, renumber=renumber)
    assert shown == on_host(ECHO, lines, renumber=renumber)


@pytest.mark.parametrize("source", FORMS)
def test_every_form_of_a_file_is_loaded_alike(page: Page, source: str) -> None:
    """U2: ES modules and the CommonJS of the wild."""
    lines = printed(b"said\n")
    shown = in_browser(page, source, lines)
    assert shown == on_host(source, lines)
    assert shown["entries"][0]["text"] == "said"


@pytest.mark.parametrize("name", BODIES)
def test_odd_parsers_behave_alike(page: Page, name: str) -> None:
    """D3, U4: what a parser may do in one engine, it may do in the other."""
    source = SAYS.format(BODIES[name])
    lines = printed(b"first\nsecond\n")
    assert in_browser(page, source, lines) == on_host(source, lines)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(ANSWERS)
def test_anything_is_repaired_alike(page: Page, answers: list[Any]) -> None:
    """T4: whatever JSON a parser may return."""
    lines = told(answers)
    assert in_browser(page, ECHO, lines) == on_host(ECHO, lines)


def test_lines_that_no_parser_sees_are_alike(page: Page) -> None:
    """T3: notices, empty lines, lines that were cut, and the other stream."""
    source = SAYS.format("return { kind: 'user', text: line.length + line };")
    lines = printed(b"[paperclip] a\n[binderclip] b\n[other] c\n\n \r\n\xff\xc3\n")
    lines += printed(b"[paperclip] on stderr\nplain\n", "stderr")
    for stream in ("stdout", "stderr"):
        cut = {"n": 9, "ts": "2026-01-01T00:00:01.000Z", "stream": stream, "attempt": 1}
        lines.append({**cut, "text": "head … tail", "offset": 90, "bytes": 20_000_000})
    assert in_browser(page, source, lines) == on_host(source, lines)


PUBLISHED = {
    "qwen_local": (QWEN, (RECORDED / "stdout.txt").read_bytes()),
    "hermes_local": (GATEWAY, BOXES.encode()),
}


@pytest.mark.slow
@pytest.mark.parametrize("type", PUBLISHED)
def test_a_published_adapters_run_is_equal_in_browser_terminal_and_api(
    browser: Browser, page: Page, stage: Stage, type: str
) -> None:
    """P1, D3: the package as its author published it, a run by a stand-in for its CLI."""
    spec, output = PUBLISHED[type]
    env = stage.env | {"npm_config_cache": str(CACHE)}
    words = [*_PROGRAM, "adapters", "install", spec, "--override"]
    subprocess.run(words, env=env, check=True, capture_output=True, timeout=110)
    command = stand_in(stage.folder, type, output)
    config = [f"command={command}", f"hermesCommand={command}"]
    given = [word for each in config for word in ("--config", each)]
    run = stage.listed(stage.call("run", "--adapter", type, *given, "--json", "do it"))
    api = f"{stage.address}/api/runs/{run}"
    shown = httpx.get(f"{api}/transcript?limit=500").json()["entries"]
    assert len({entry["kind"] for entry in shown}) >= 3, shown
    source = httpx.get(f"{stage.address}/api/adapters/{type}/ui-parser.js").text
    lines = httpx.get(f"{api}/lines?limit=500").json()["lines"]
    assert in_browser(page, source, lines)["entries"] == shown
    terminal = subprocess.run(
        [*_PROGRAM, "runs", "transcript", run, "--full"], env=env, check=True, capture_output=True
    ).stdout.decode()
    said = [entry["text"] for entry in shown if entry["kind"] == "assistant" and entry["text"]]
    assert said
    assert all(text.split()[0] in terminal for text in said), terminal
    assert _rows(browser, stage, run, served=True) == _rows(browser, stage, run, served=False)


def _rows(browser: Browser, stage: Stage, run: str, *, served: bool) -> list[Any]:
    """What the viewer draws: by the sandboxed parser, or by the host's records."""
    page = browser.new_context().new_page()
    page.set_default_timeout(20_000)
    if not served:
        page.route("**/ui-parser.js", lambda route: route.fulfill(status=404))
    page.goto(f"{stage.address}/runs/{run}?panel=details")
    own = page.get_by_text("Read in this browser by the adapter's own parser.")
    expect(own if served else page.locator(".note")).to_be_visible()
    rows = page.locator(".slot").evaluate_all("all => all.map((one) => one.innerText)")
    page.context.close()
    assert len(rows) > 2
    return list(rows)
