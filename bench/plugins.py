"""What it costs that an adapter is a plugin: a whole run against the same adapter built in, and a
`ui-parser.js` in its process against the same rules as a Python parser.

The built-in side is `process` with the same command; the plugin sides run it from an adapter host.
Parsers are compared by the CPU time of both processes, start of the engine included.
"""

from __future__ import annotations

import json
import resource
import subprocess
import time
from pathlib import Path

from _measure import BINDERCLIP, alternating, finish, report, scratch, seconds

from binderclip.plugins.parsing import JsParser
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.parser import Parser
from binderclip.sdk.transcript import TranscriptBuilder

ROUNDS = 5
LINES = 20_000
TS = "2026-01-01T00:00:00.000Z"
HERMES = Path(__file__).resolve().parents[1] / "examples" / "hermes"
PYTHON = """
from binderclip.sdk import CliAdapter, Command, Manifest

class Plain(CliAdapter):
    manifest = Manifest(id="bench_python", label="Bench", structured=False)

    def command(self, call):
        return Command(["true"])

def create_adapter():
    return Plain()
"""
NODE = """
import { spawn } from "node:child_process";
export const createServerAdapter = () => ({
  type: "bench_node",
  execute: (ctx) => new Promise((done) => {
    const child = spawn("true");
    child.on("close", (exitCode) => done({ exitCode, signal: null, timedOut: false }));
  }),
});
"""


def main() -> None:
    with scratch() as directory:
        _runs(directory)
    _parsers()
    finish()


def _runs(directory: Path) -> None:
    (directory / "bench_python.py").write_text(PYTHON)
    package = directory / "bench-node"
    package.mkdir()
    facts = {"name": "bench-node", "version": "1.0.0", "type": "module", "exports": "./index.js"}
    (package / "package.json").write_text(json.dumps(facts))
    (package / "index.js").write_text(NODE)
    for spec in (directory / "bench_python.py", package):
        words = [BINDERCLIP, "adapters", "install", str(spec)]
        subprocess.run(words, check=True, capture_output=True)
    built_in, python, node = alternating(
        ROUNDS,
        lambda: _run("process", "--", "true"),
        lambda: _run("bench_python", "x"),
        lambda: _run("bench_node", "x"),
    )
    for name, taken in (("Python", python), ("npm", node)):
        detail = f"{(taken - built_in) * 1000:.0f} ms more than {built_in * 1000:.0f} ms"
        report(f"a run of a {name} plugin against built in", taken / built_in, detail, limit=4.0)


def _run(adapter: str, *words: str) -> float:
    return seconds([BINDERCLIP, "run", "--adapter", adapter, *words], stdout=subprocess.DEVNULL)


def _parsers() -> None:
    adapter = load_adapter_from(str(HERMES))
    source = (HERMES / "ui-parser.js").read_text("utf-8")
    sample = (HERMES / "fixtures" / "resumed" / "stdout.txt").read_bytes()
    data = sample * (LINES // sample.count(b"\n"))
    python, javascript = alternating(
        3,
        lambda: _parsed(adapter.create_parser(), data),
        lambda: _parsed(JsParser(source), data),
    )
    detail = f"{LINES / javascript / 1000:.0f} k lines/s, in Python {LINES / python / 1000:.0f} k"
    report(
        "ui-parser.js against the same parser in Python", javascript / python, detail, limit=12.0
    )


def _parsed(parser: Parser, data: bytes) -> float:
    builder = TranscriptBuilder(parser)
    begin = _cpu()
    lines = list(LineSplitter().push(data))
    for at in range(0, len(lines), 1000):
        builder.feed_all([("stdout", line, TS) for line in lines[at : at + 1000]])
    builder.finish(len(data))
    return _cpu() - begin


def _cpu() -> float:
    """CPU seconds of this process and of the children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


main()
