"""The index, record by record."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from binderclip.supervisor.index import IndexWriter, read_index
from tests.supervisor.attempts import eventually


def note_and_wait(index: IndexWriter, letter: str, end: int) -> None:
    def written() -> bool:
        index.flush()
        return not index.waiting

    index.note(letter, end)
    eventually(written, "a record")


def test_a_clock_that_is_set_back_holds_no_record_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2: readers see what was printed at once, and times never go back."""
    path = str(tmp_path / "index")
    index = IndexWriter(path)
    note_and_wait(index, "o", 10)
    hour = 3600 * 10**9
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - hour)
    note_and_wait(index, "o", 20)
    note_and_wait(index, "e", 5)
    index.close()
    again = IndexWriter(path)
    note_and_wait(again, "o", 30)
    again.close()
    records, _ = read_index(path)
    assert [(letter, end) for _, letter, end in records] == [
        ("o", 10),
        ("o", 20),
        ("e", 5),
        ("o", 30),
    ]
    times = [micros for micros, _, _ in records]
    assert times == sorted(times)
    assert times[-1] - times[0] < hour // 1000


def test_a_stream_has_one_record_per_millisecond_at_most(tmp_path: Path) -> None:
    """D2: however often it is noted."""
    path = str(tmp_path / "index")
    index = IndexWriter(path)
    for end in range(1, 3000):
        index.note("o", end)
    index.flush(final=True)
    index.close()
    records, _ = read_index(path)
    stamps = [micros // 1000 for micros, _, _ in records]
    assert len(set(stamps)) == len(stamps)
    assert records[-1][2] == 2999
