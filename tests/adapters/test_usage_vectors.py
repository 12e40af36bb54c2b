"""The tables of usage in the documentation say what the recordings prove (D10)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generate import ADAPTERS

BUCKETS = {
    "fresh input": "inputTokens",
    "cache read": "cachedInputTokens",
    "cache write": "cacheWriteTokens",
    "output": "outputTokens",
    "of which reasoning": "reasoningTokens",
}
IN_ONE = "what binderclip reports"
REPORTED = re.compile(r"(\d+) / (\d+) / (\d+) / (\d+) \((\d+|unknown)\)(?:, (?:cost )?(.+))?")


def rows() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Adapter, recording and cells of each row that names recordings and nothing else."""
    for page in sorted(ADAPTERS.glob("*/usage.md")):
        head: list[str] = []
        for line in page.read_text("utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| recording"):
                head = cells
            elif line.startswith("|") and not cells[0].startswith("---"):
                names = cells[0].replace("`", "").split(", ")
                if all(expected(page.parent.name, name).is_file() for name in names):
                    told = dict(zip(head, cells, strict=True))
                    yield from ((page.parent.name, name, told) for name in names)


def expected(adapter: str, recording: str) -> Path:
    return ADAPTERS / adapter / "fixtures" / recording / "expected.json"


def number(cell: str) -> float | None:
    return None if cell == "unknown" else float(cell.removeprefix("$"))


def promised(told: dict[str, str]) -> dict[str, float | None]:
    """What a row says that binderclip reports."""
    if IN_ONE not in told:
        wanted = {BUCKETS[name]: number(cell) for name, cell in told.items() if name in BUCKETS}
        return wanted | ({"costUsd": number(told["cost"])} if "cost" in told else {})
    if told[IN_ONE].startswith("unknown"):
        return dict.fromkeys(BUCKETS.values())
    *counts, rest = REPORTED.fullmatch(told[IN_ONE]).groups()  # type: ignore[union-attr]
    wanted = dict(zip(BUCKETS.values(), map(number, counts), strict=True))
    return wanted | ({"costUsd": number(rest)} if rest not in (None, "derived") else {})


ROWS = list(rows())


@pytest.mark.parametrize(
    ("adapter", "recording", "told"), ROWS, ids=[f"{row[0]}-{row[1]}" for row in ROWS]
)
def test_a_row_says_what_its_recording_proves(
    adapter: str, recording: str, told: dict[str, str]
) -> None:
    """D10: expected results are those of the conformance suite."""
    result: dict[str, Any] = json.loads(expected(adapter, recording).read_text())["result"]
    found = {**(result.get("usage") or {}), "costUsd": result.get("costUsd")}
    wanted = promised(told)
    assert {name: found.get(name) for name in wanted} == wanted


def test_every_runtime_has_rows() -> None:
    """D10: test vectors for each built-in adapter with events of its own."""
    runtimes = {path.parent.name for path in ADAPTERS.glob("*/shapes.json")}
    assert {adapter for adapter, _, _ in ROWS} == runtimes
