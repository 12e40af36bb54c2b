"""Foreign entries become entries of the contract by the rules that the browser follows too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.wire import to_plain
from binderclip.plugins.repair import MOST_ENTRIES, Repair

VECTORS = json.loads(
    (Path(__file__).resolve().parents[1] / "vectors" / "foreign-entries.json").read_text("utf-8")
)["cases"]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_the_shared_vectors_hold(case: dict[str, Any]) -> None:
    """T4, D3: equal values in, equal entries out, in Python and in TypeScript."""
    repair = Repair(renumber=case.get("renumber", False))
    for step in case["steps"]:
        assert to_plain(repair.entries(step["raw"], step["ts"])) == step["entries"]
    assert repair.dropped == case.get("dropped", 0)


def test_a_flood_of_entries_for_one_line_is_cut() -> None:
    repair = Repair()
    flood = [{"kind": "assistant", "text": "x"}] * 5000
    assert len(repair.entries(flood, "t")) == MOST_ENTRIES
