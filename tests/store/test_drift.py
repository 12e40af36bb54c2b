"""Findings about a runtime's output are kept once per version."""

from __future__ import annotations

from pathlib import Path

import msgspec

from binderclip.store.drift import MOST_VERSIONS, Drift, note_drift, read_drift
from binderclip.store.home import Home

FIRST = Drift(version="1.0", found=("event a",), run_id="r1", at="2026-01-01T00:00:00.000Z")


def test_a_finding_is_kept_once_per_version(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    assert read_drift(home, "x") == ()
    assert note_drift(home, "x", FIRST) is True
    assert note_drift(home, "x", msgspec.structs.replace(FIRST, run_id="r2")) is False
    more = msgspec.structs.replace(FIRST, run_id="r3", found=("event a", "field b of c"))
    assert note_drift(home, "x", more) is True
    (kept,) = read_drift(home, "x")
    assert (kept.found, kept.run_id) == (("event a", "field b of c"), "r1")
    assert note_drift(home, "x", msgspec.structs.replace(FIRST, version="1.1")) is True
    assert [drift.version for drift in read_drift(home, "x")] == ["1.0", "1.1"]
    assert read_drift(home, "y") == ()


def test_the_file_stays_small_and_a_damaged_one_is_begun_anew(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    for number in range(MOST_VERSIONS + 5):
        note_drift(home, "x", msgspec.structs.replace(FIRST, version=f"1.{number}"))
    assert len(read_drift(home, "x")) == MOST_VERSIONS
    (home.path / "drift" / "x.json").write_text("{")
    assert read_drift(home, "x") == ()
    assert note_drift(home, "x", FIRST) is True
