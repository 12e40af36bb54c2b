"""A `ui-parser.js` on the host: found, checked, run in QuickJS with limits (U1-U3, U6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import Assistant, Stdout, ToolCall, ToolResult, apply
from binderclip.plugins.described import ParserReport
from binderclip.plugins.parsing import JsParser
from binderclip.plugins.service import Plugins
from binderclip.plugins.uiparser import declared_by_package, examine, is_deterministic
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.parser import GenericParser
from binderclip.sdk.testing.replay import replay
from binderclip.sdk.transcript import TranscriptBuilder

from .conftest import write_npm

TS = "2026-01-01T00:00:00.000Z"
KEEN = "export const parseStdoutLine = (l, ts) => {};"
PLAIN = (
    "export function parseStdoutLine(line, ts) { return [{ kind: 'assistant', ts, text: line }] }"
)
STATEFUL = """
let loads = 0;
export function createStdoutParser() {
  let open = 0;
  loads += 1;
  return {
    parseLine(line, ts) {
      if (line.startsWith("$ ")) {
        open += 1;
        return [{ kind: "tool_call", ts, name: "shell", input: { line }, toolUseId: `t${open}` }];
      }
      if (line.startsWith("> ")) {
        return [{ kind: "tool_result", ts, toolUseId: `t${open}`, content: line, isError: false }];
      }
      return [{ kind: "assistant", ts, text: `${loads}:${line}` }];
    },
    reset() { open = 0; },
  };
}
export function parseStdoutLine() { return [{ kind: "system", text: "not this one" }] }
"""


def tried(folder: Path, source: str, version: str | None = "1.0.0") -> ParserReport:
    (folder / "p.js").write_text(source)
    return examine(folder, "p.js", version)


def parsed(source: str, *lines: str) -> list[Any]:
    builder = TranscriptBuilder(JsParser(source))
    data = "".join(f"{line}\n" for line in lines).encode()
    told = [("stdout", line, TS) for line in LineSplitter().push(data)]
    records = builder.feed_all(told) + builder.finish(len(data))  # type: ignore[arg-type]
    return apply([], records)


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (PLAIN, "es"),
        ("const a = (l, ts) => [{kind:'user',ts,text:l}]; export { a as parseStdoutLine };", "es"),
        ("export default { parseStdoutLine: (l, ts) => [{kind:'user',ts,text:l}] };", "es"),
        (STATEFUL, "es"),
        ("module.exports = { parseStdoutLine: (l) => [{kind:'user',text:l}] };", "commonjs"),
        ("exports.parseStdoutLine = (l) => [{kind:'user',text:l}];\n//# sourceMap", "commonjs"),
        ('"use strict"; Object.defineProperty(exports, "parseStdoutLine", '
         "{ enumerable: true, get: () => (l) => [{kind:'user',text:l}] });", "commonjs"),
        ("export const parseStdoutLine = (l) => /(?<w>\\p{L}+)/su.exec(l)?.groups?.w ?? [];", "es"),
    ],
)  # fmt: skip
def test_the_forms_seen_in_the_wild_load(tmp_path: Path, source: str, form: str) -> None:
    """U2: ES module syntax and CommonJS-style files."""
    report = tried(tmp_path, source)
    assert (report.state, report.form, report.reason) == ("ready", form, None)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import x from './y.js';\n" + PLAIN, "it imports './y.js'"),
        ("export { parseStdoutLine } from './y.js'", "it imports './y.js'"),
        ("const fs = require('fs');\nmodule.exports = {}", "it imports 'fs'"),
        ("const x = await 1;\n" + PLAIN, "awaits at its top level"),
        ("export const other = 1;", "neither createStdoutParser nor parseStdoutLine"),
        ("export function parseStdoutLine(line {", "SyntaxError"),
        ("while (true) {}\n" + PLAIN, "interrupted"),
        ("export function parseStdoutLine() { for (;;) {} }", "interrupted"),
        ("export function parseStdoutLine() { /^(a+)+$/.test('a'.repeat(50)+'b') }", "interrupted"),
        ("export function parseStdoutLine() { for (const a = [];;) a.push('x'.repeat(1e6) + a); }",
         "hangs or crashes"),
        ("// " + "x" * 60_000 + "\n" + PLAIN, "bytes, more than 51200"),
    ],
)  # fmt: skip
def test_a_parser_that_breaks_the_contract_is_refused_with_the_reason(
    tmp_path: Path, source: str, reason: str
) -> None:
    """U2, U5: refused once, with the reason; nothing of it reaches a run."""
    report = tried(tmp_path, source)
    assert (report.state, reason in (report.reason or "")) == ("refused", True), report


@pytest.mark.parametrize(
    ("version", "state"),
    [("1.0.0", "ready"), ("1.9", "ready"), ("1", "ready"), (None, "ready"), ("2.0.0", "refused")],
)
def test_the_contract_version_decides(tmp_path: Path, version: str | None, state: str) -> None:
    """U1: 1.x loads, another major does not, a missing one loads with a warning."""
    report = tried(tmp_path, PLAIN, version)
    assert report.state == state
    assert bool(report.warnings) == (version is None)


def test_a_path_outside_of_the_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "p.js").write_text(PLAIN)
    report = examine(tmp_path / "package", "../p.js", "1.0.0")
    assert "outside of the package" in (report.reason or "")


def test_a_package_that_declares_none_has_no_report(tmp_path: Path) -> None:
    """U5: not a failure: no warning, no badge."""
    assert examine(tmp_path, *declared_by_package({"exports": "./x.js"})) == ParserReport()


@pytest.mark.parametrize(
    "value",
    ["./p.js", {"import": "./p.js"}, {"types": "./p.d.ts", "default": "./p.js"},
     {"bun": "./p.ts", "import": {"types": "./p.d.ts", "default": "./p.js"}}],
)  # fmt: skip
def test_conditional_exports_are_resolved(value: Any) -> None:
    facts = {"exports": {"./ui-parser": value}, "paperclip": {"adapterUiParser": "1.0"}}
    assert declared_by_package(facts) == ("./p.js", "1.0")


@pytest.mark.parametrize(
    ("source", "warning"),
    [
        ("export const parseFooStdoutLine = (l) => [];", "the contract's name is parseStdoutLine"),
        ("export const parseStdoutLine = (l) => [{kind:'assistant',text:String(Math.random())}];",
         "not deterministic"),
        ("export const parseStdoutLine = () => { throw new Error('x') };", "throws on"),
    ],
)  # fmt: skip
def test_what_is_tolerated_is_a_warning(tmp_path: Path, source: str, warning: str) -> None:
    report = tried(tmp_path, source)
    assert report.state == "ready"
    assert any(warning in told for told in report.warnings)
    assert is_deterministic(report) == ("not deterministic" not in str(report.warnings))


def test_the_factory_has_priority_and_is_fresh_for_each_run() -> None:
    """T2: state belongs to one run; a module is evaluated afresh for each."""
    for _ in range(2):
        call, result, text = parsed(STATEFUL, "$ ls", "> a", "said")
        assert isinstance(call, ToolCall)
        assert isinstance(result, ToolResult)
        assert (call.tool_use_id, result.tool_use_id, result.tool_name) == ("t1", "t1", "shell")
        assert text.text == "1:said"


def test_host_notices_and_failing_lines_never_need_the_parser() -> None:
    """T3: notices are the host's; a line that makes the parser throw is shown as it is."""
    source = (
        "export function parseStdoutLine(l) { if (l === 'bad') throw new Error('x');"
        " return { kind: 'assistant', text: l } }"
    )
    entries = parsed(source, "[paperclip] note", "bad", "good")
    assert [type(entry).__name__ for entry in entries] == ["System", "Stdout", "Assistant"]


def test_a_parser_that_breaks_in_a_run_leaves_the_rest_generic() -> None:
    """U6: the limit ends the parser, not the transcript."""
    source = (
        "export function parseStdoutLine(l) { if (l === 'loop') for (;;) {}"
        " return { kind: 'user', text: l } }"
    )
    builder = TranscriptBuilder(JsParser(source))
    for text in (b"one\n", b"loop\n", b"two\n"):
        for line in LineSplitter().push(text):
            builder.feed("stdout", line, "t")
    assert "interrupted" in builder.failures[0]
    assert builder.coverage.understood == 1
    builder.finish(0)


def test_many_lines_are_asked_for_at_once() -> None:
    """D11: the pipe is crossed once for hundreds of lines, not once for each."""
    parser = JsParser(PLAIN)
    builder = TranscriptBuilder(parser)
    lines = [("stdout", line, "t") for line in LineSplitter().push(b"a line\n" * 1000)]
    records = builder.feed_all(lines)  # type: ignore[arg-type]
    assert (len(records), builder.coverage.understood) == (1000, 1000)
    assert parser.process._number == 3
    builder.finish(0)


@pytest.mark.parametrize(
    ("count", "size", "letter"), [(300, 200_000, "x"), (3, 16_000_000, "x"), (2, 4_000_000, "💬")]
)
def test_long_lines_find_room_in_the_engine(count: int, size: int, letter: str) -> None:
    """T4: up to 16 MiB of a line go to a parser, however many come at once."""
    source = KEEN.format("[{ kind: 'user', ts, text: String([...JSON.parse(l).t.slice(-8)][0]) }]")
    line = json.dumps({"t": letter * size}, ensure_ascii=False)
    parser = JsParser(source)
    parser.prepare([("stdout", line, TS)] * count)
    texts = {entry.text for _ in range(count) for entry in parser.parse_line(line, TS) or ()}
    parser.finish(TS)
    assert (parser.broken, texts) == (None, {letter})


def test_long_answers_come_in_parts() -> None:
    source = KEEN.format("[{ kind: 'user', ts, text: l.repeat(500000) }]")
    parser = JsParser(source)
    parser.prepare([("stdout", f"{n % 10}", TS) for n in range(60)])
    texts = [entry.text for n in range(60) for entry in parser.parse_line(f"{n % 10}", TS) or ()]
    parser.finish(TS)
    assert [(text[0], len(text)) for text in texts] == [(f"{n % 10}", 500_000) for n in range(60)]


def test_a_parser_reaches_nothing(tmp_path: Path) -> None:
    """U2: language globals only."""
    names = (
        "['fetch','XMLHttpRequest','process','require','setTimeout','document','Intl','std','os']"
    )
    source = (
        f"export const parseStdoutLine = (l) => ({{ kind: 'assistant', text: {names}"
        ".filter((n) => typeof globalThis[n] !== 'undefined').join() })"
    )
    (entry,) = parsed(source, "x")
    assert entry.text == ""


def test_wrong_things_are_dropped_and_counted() -> None:
    builder = TranscriptBuilder(
        JsParser("export const parseStdoutLine = () => [1, {kind: 'user'}]")
    )
    for line in LineSplitter().push(b"x\n"):
        builder.feed("stdout", line, "t")
    builder.finish(2)
    assert builder.dropped == 2


def test_odd_text_passes_unchanged() -> None:
    text = json.dumps({"t": "\ud800 \u2028 é 💬 \\u0000"})
    (entry,) = parsed(PLAIN, text)
    assert isinstance(entry, Assistant)
    assert entry.text == text


def test_a_plugins_parser_serves_transcript_replay_and_browser(
    plugins: Plugins, tmp_path: Path
) -> None:
    """U3, U6: one file for terminal, API and browsers, with an ETag that changes with it."""
    exports = {".": "./index.js", "./ui-parser": "./p.js"}
    folder = write_npm(tmp_path / "speaker", exports=exports, paperclip={"adapterUiParser": "1.0"})
    (folder / "p.js").write_text(PLAIN)
    plugins.install(str(folder))
    first = plugins.ui_parser("speaker")
    assert first is not None
    assert first.source == PLAIN
    entries = replay(plugins.load("speaker"), b"hello\n").entries
    assert [type(entry) for entry in entries] == [Assistant]
    (folder / "p.js").write_text(PLAIN.replace("assistant", "stdout"))
    plugins.reload("speaker")
    second = plugins.ui_parser("speaker")
    assert second is not None
    assert second.etag != first.etag
    assert [type(e) for e in replay(plugins.load("speaker"), b"hello\n").entries] == [Stdout]


def test_a_parser_that_was_changed_or_lost_on_disk_is_not_used(
    plugins: Plugins, tmp_path: Path
) -> None:
    """U3: only what was examined is served; a reload examines it anew."""
    exports = {".": "./index.js", "./ui-parser": "./p.js"}
    folder = write_npm(tmp_path / "speaker", exports=exports)
    (folder / "p.js").write_text(PLAIN)
    plugins.install(str(folder))
    kept = Path(plugins.describe("speaker").source, "p.js")
    kept.write_text("export const parseStdoutLine = 7;")
    assert plugins.ui_parser("speaker") is None
    kept.unlink()
    assert plugins.ui_parser("speaker") is None
    assert isinstance(plugins.load("speaker").create_parser(), GenericParser)
    plugins.reload("speaker")
    assert plugins.ui_parser("speaker") is not None


def test_a_refused_parser_is_generic_and_tells_why(plugins: Plugins, tmp_path: Path) -> None:
    """U5: generic goes on, the reason is shown."""
    folder = write_npm(tmp_path / "speaker", exports={".": "./index.js", "./ui-parser": "./p.js"})
    (folder / "p.js").write_text("import './x.js';")
    plugins.install(str(folder))
    assert plugins.ui_parser("speaker") is None
    assert "imports './x.js'" in (plugins.describe("speaker").parser.reason or "")
    assert {view.type: view.parser for view in plugins.list()}["speaker"] == "generic"
