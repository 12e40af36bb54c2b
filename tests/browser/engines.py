"""The same lines through both engines: the sandbox in Chromium, and QuickJS on the host."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from binderclip.contract.entry import Stream, apply, clip
from binderclip.contract.wire import to_plain
from binderclip.plugins.parsing import JsParser
from binderclip.sdk.lines import Line, LineSplitter
from binderclip.sdk.parser import Parser
from binderclip.sdk.transcript import TranscriptBuilder
from binderclip.store.jsonfile import encode

WEB = Path(__file__).parents[2] / "web"
PARTS = """
export { SandboxFrame } from "./src/sandbox/frame";
export { Book, isParsed } from "./src/sandbox/build";
"""
READ = """async ({ source, lines, renumber }) => {
  const { SandboxFrame, Book, isParsed } = window.sandboxParts;
  const frame = new SandboxFrame();
  const book = new Book(renumber);
  try {
    await frame.load(source);
    for (let at = 0; at < lines.length; at += 100) {
      const part = lines.slice(at, at + 100);
      const asked = part.filter(isParsed).map((line) => [line.text, line.ts]);
      const answers = await frame.parse(asked);
      for (const line of part) book.add(line, isParsed(line) ? answers.shift() : null);
    }
  } finally {
    frame.close();
  }
  return JSON.stringify({ entries: book.entries, dropped: book.dropped, thrown: book.thrown });
}"""
Printed = dict[str, Any]


@lru_cache(maxsize=1)
def parts() -> str:
    """The web app's own modules, as one script that leaves them at the window."""
    words = [WEB / "node_modules/.bin/esbuild", "--bundle", "--format=iife", "--loader=ts"]
    words += ["--loader:.js=text", "--global-name=parts"]
    made = subprocess.run(words, cwd=WEB, input=PARTS, check=True, capture_output=True, text=True)
    return f"(() => {{ {made.stdout}; window.sandboxParts = parts; }})()"


def printed(
    data: bytes, stream: Stream = "stdout", ts: str = "2026-01-01T00:00:00.000Z"
) -> list[Printed]:
    """Output as the API hands it to a browser."""
    splitter = LineSplitter()
    lines = [*splitter.push(data), *splitter.finish()]
    return [_printed(n, line, stream, ts) for n, line in enumerate(lines)]


def in_browser(
    page: Page, source: str, lines: Sequence[Printed], *, renumber: bool = False
) -> dict[str, Any]:
    """Entries and counts by the sandboxed worker and the viewer's own rules."""
    page.evaluate(parts())
    told = page.evaluate(READ, {"source": source, "lines": list(lines), "renumber": renumber})
    return dict(json.loads(told))


def on_host(
    source: str, lines: Sequence[Printed], *, renumber: bool = False, parser: Parser | None = None
) -> dict[str, Any]:
    """The same by QuickJS, or by another parser, as the driver of a run does it."""
    parser = parser or JsParser(source, renumber=renumber)
    builder = TranscriptBuilder(parser)
    records = builder.feed_all([(each["stream"], _line(each), each["ts"]) for each in lines])
    parser.finish("")
    entries = [clip(entry) for entry in apply([], records)]
    # Written and read as a transcript is: what cannot be stored shows here.
    kept = json.loads(encode(to_plain(entries)))
    return {"entries": kept, "dropped": builder.dropped, "thrown": len(builder.failures)}


def _printed(n: int, line: Line, stream: Stream, ts: str) -> Printed:
    size = line.size if line.cut else None
    told = {"n": n, "ts": ts, "stream": stream, "text": line.text, "attempt": 1}
    return {**told, "offset": line.offset, "bytes": size}


def _line(each: Printed) -> Line:
    return Line(each["offset"], each["text"], each["bytes"] or 0, each["bytes"] is not None)
