"""Pasted output by HTTP: the entries of a run, and a true word on the parser that made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.plugins.conftest import write_npm

from .conftest import Served

SPOKEN = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello"}]}}


def parsed(served: Served, type: str, stdout: str, status: int = 200, **more: Any) -> Any:
    return served.post(f"/api/adapters/{type}/parse", {"stdout": stdout, **more}, status)


def install(served: Served, folder: Path, name: str, parser: str) -> None:
    served.client.headers.update(served.person)
    exports = {".": "./index.js", "./ui-parser": "./p.js"}
    package = write_npm(folder / name, name, exports=exports)
    (package / "p.js").write_text(parser)
    served.post("/api/adapters/install", {"spec": str(package)}, 201)


def test_pasted_lines_become_the_entries_of_a_run(served: Served) -> None:
    """T2, T4: the adapter's own parser reads them, and what it did not know is counted."""
    told = parsed(served, "claude_local", json.dumps(SPOKEN) + "\nnot json\n", stderr="careful\n")
    kinds = [entry["kind"] for entry in told["entries"]]
    assert kinds == ["assistant", "stdout", "stderr"]
    assert told["coverage"] == {"lines": 2, "understood": 1, "unknown": 1}
    assert (told["parser"]["kind"], told["parser"]["problem"]) == ("builtin", None)
    assert told["total"] == 3


def test_plain_text_says_that_it_is_read_generically(served: Served) -> None:
    """T3: no parser is no failure, and the reason is told; the end counts as in a run."""
    told = parsed(served, "process", "one\n[binderclip] noted\n", exitCode=3)
    assert [entry["kind"] for entry in told["entries"]] == ["assistant", "system"]
    assert told["parser"]["kind"] == "generic"
    assert "plain text" in told["parser"]["why"]
    assert (told["result"]["exitCode"], told["result"]["errorCode"]) == (3, "process_failed")


def test_a_foreign_parser_is_named_and_its_mistakes_are_counted(
    served: Served, tmp_path: Path
) -> None:
    """U6, T4: the ui-parser.js runs on the server; what it throws costs one line."""
    source = """export const parseStdoutLine = (line, ts) => {
      if (line === "throw") throw new Error("no such line");
      return line === "odd" ? 7 : [{ kind: "thinking", ts, text: line }];
    };"""
    install(served, tmp_path, "careless_agent", source)
    told = parsed(served, "careless_agent", "deep\nthrow\nodd\n")
    assert told["parser"]["kind"] == "ui-parser"
    assert "no such line" in " ".join(told["parser"]["failures"])
    assert told["parser"]["dropped"] == 1
    assert told["entries"][0] | {"text": "deep"} == told["entries"][0]


def test_a_parser_that_cannot_be_loaded_tells_its_reason(served: Served, tmp_path: Path) -> None:
    """U5: the generic rule stands in, with the reason."""
    install(served, tmp_path, "broken_agent", "export const parseStdoutLine = (;")
    told = parsed(served, "broken_agent", "still shown\n")
    assert told["parser"]["kind"] == "generic"
    assert "ui-parser.js is not used" in told["parser"]["why"]
    assert told["entries"][0]["text"] == "still shown"


def test_a_parser_that_never_ends_is_given_up(served: Served, tmp_path: Path) -> None:
    """U6: an endless loop is cut off; the lines are read generically from there on."""
    source = """export const parseStdoutLine = (line, ts) => {
      while (line === "stuck") {}
      return [{ kind: "thinking", ts, text: line }];
    };"""
    install(served, tmp_path, "endless_agent", source)
    told = parsed(served, "endless_agent", "one\nstuck\ntwo\n")
    assert "no longer used" in told["parser"]["problem"]
    kinds = [(entry["kind"], entry["text"]) for entry in told["entries"]]
    assert kinds == [("thinking", "one"), ("assistant", "stuck"), ("assistant", "two")]


def test_too_much_is_refused_and_many_entries_are_cut(served: Served) -> None:
    """Nobody fills the server's memory by pasting."""
    refused = parsed(served, "process", "x" * (512 * 1024 + 1), 422)
    assert "stdout" in refused["error"]["fields"]
    told = parsed(served, "process", "line\n" * 5000)
    assert (told["total"], len(told["entries"])) == (5000, 1000)
    parsed(served, "nobody_knows", "x", 404)
