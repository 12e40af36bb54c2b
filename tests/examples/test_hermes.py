"""The example adapter: it passes every check, and both of its parsers give the same entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binderclip.contract.entry import apply
from binderclip.contract.wire import to_plain
from binderclip.plugins.check import check_path
from binderclip.plugins.parsing import JsParser
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.parser import Parser
from binderclip.sdk.testing.conformance import requirements
from binderclip.sdk.transcript import TranscriptBuilder
from tests.plugins.conftest import home, plugins, run

__all__ = ["home", "plugins", "run"]

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "hermes"
ADAPTER = load_adapter_from(str(FOLDER))
SOURCE = (FOLDER / "ui-parser.js").read_text("utf-8")
SAMPLES = sorted(FOLDER.glob("fixtures/*/stdout.txt"))
TS = "2026-01-01T00:00:00.000Z"

PIECES = (
    *(
        "┊",
        "💬",
        "$",
        "[done]",
        "[error]",
        "—",
        "read",
        "ls -l",
        "0.3s",
        "12s",
        " ",
        "\t",
        "é",
        "x",
    ),
    *("[hermes]", "Session resumed: a1", "session_id: b2", "tokens: 3 in, 4 out", "\u2028", "_"),
)
WORDS = st.sampled_from(PIECES)
LINES = st.lists(st.lists(WORDS, max_size=7).map(" ".join), min_size=1, max_size=12)


def entries(parser: Parser, data: bytes) -> Any:
    builder = TranscriptBuilder(parser)
    lines = [("stdout", line, TS) for line in LineSplitter().push(data)]
    records = builder.feed_all(lines)  # type: ignore[arg-type]
    return to_plain(apply([], records))


@pytest.mark.parametrize("requirement", requirements(ADAPTER), ids=str)
def test_the_example_conforms(requirement: Callable[[], None]) -> None:
    requirement()


def test_the_example_reaches_every_tier() -> None:
    """U7: what `adapters check` says of it."""
    report = check_path(FOLDER)
    assert [finding.message for finding in report.findings if finding.level != "ok"] == []
    assert [tier.missing for tier in report.tiers] == [(), (), ()]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.parent.name)
def test_both_parsers_agree_on_the_samples(sample: Path) -> None:
    """D3: one transcript, whichever engine made it."""
    data = sample.read_bytes()
    assert entries(ADAPTER.create_parser(), data) == entries(JsParser(SOURCE), data)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES)
def test_both_parsers_agree_on_anything(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    python, javascript = ADAPTER.create_parser(), JsParser(SOURCE)
    try:
        assert entries(python, data) == entries(javascript, data)
    finally:
        javascript.process.close()


def test_the_contracts_own_sample_is_a_rich_transcript() -> None:
    (sample,) = [path for path in SAMPLES if path.parent.name == "resumed"]
    kinds = [entry["kind"] for entry in entries(ADAPTER.create_parser(), sample.read_bytes())]
    assert kinds == [
        *("init", "thinking", "tool_call", "tool_result", "thinking"),
        *("tool_call", "tool_result", "assistant", "assistant", "assistant"),
    ]


def test_the_example_is_installed_and_runs(plugins: Any, run: Any, tmp_path: Path) -> None:
    """P1: a complete external adapter, with a stand-in for its CLI."""
    sample = next(path for path in SAMPLES if path.parent.name == "plain")
    (tmp_path / "hermes").write_text(f"#!/bin/sh\ncat {sample}\n")
    (tmp_path / "hermes").chmod(0o755)
    plugins.install(str(FOLDER))
    done = run("hermes", command=str(tmp_path / "hermes"), env={"PATH": os.environ["PATH"]})
    assert done.outcome.state == "succeeded"
    assert done.result.summary == "All twelve tests pass."
    assert done.result.session_params["sessionId"] == "s-77"
    assert done.result.usage.input_tokens == 1200
