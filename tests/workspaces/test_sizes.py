"""Sizes of workspaces are counted aside: nobody waits for a large one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from binderclip.workspaces.cleaning import disk_use
from binderclip.workspaces.sizes import KEPT_SECONDS, Place, Sizes

FIRST = "2026-01-01T00:00:00.000Z"
LATER = "2026-01-02T00:00:00.000Z"


class Scales:
    """Weighs at once what is small, and what is large when it may."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.may = threading.Event()
        self.weighed: list[str] = []

    def clock(self) -> float:
        return self.now

    def measure(self, folder: Path) -> int:
        self.weighed.append(folder.name)
        if folder.name == "large":
            self.may.wait(60)
        return len(self.weighed)


@pytest.fixture
def scales() -> Iterator[Scales]:
    scales = Scales()
    yield scales
    scales.may.set()


def places(*names: str, used_at: str = FIRST) -> dict[str, Place]:
    return {name: Place(Path("/nowhere") / name, used_at) for name in names}


def test_what_is_small_is_told_at_once_and_then_kept(scales: Scales) -> None:
    sizes = Sizes(scales.clock, scales.measure, wait=60)
    assert sizes.of(places("a", "b")) == {"a": 1, "b": 2}
    assert sizes.of(places("b", "a")) == {"b": 2, "a": 1}
    assert sizes.of(places("a", used_at=LATER)) == {"a": 3}
    scales.now += KEPT_SECONDS + 1
    assert sizes.of(places("b")) == {"b": 4}


def test_a_large_one_is_not_measured_until_it_is_and_keeps_nobody_waiting(scales: Scales) -> None:
    """However many it are and however often they are asked for, each is counted once."""
    sizes = Sizes(scales.clock, scales.measure, wait=0.05)
    several = places("large", *map(str, range(50)))
    for _ in range(3):
        assert set(sizes.of(several).values()) == {None}
    assert scales.weighed == ["large"]
    scales.may.set()
    sizes._wait = 60
    told = sizes.of(several)
    assert (told["large"], None in told.values(), len(scales.weighed)) == (1, False, 51)


def test_an_old_size_is_told_while_the_new_one_is_counted(scales: Scales) -> None:
    scales.may.set()
    sizes = Sizes(scales.clock, scales.measure, wait=60)
    assert sizes.of(places("large")) == {"large": 1}
    scales.may.clear()
    sizes._wait = 0.05
    assert sizes.of(places("large", used_at=LATER)) == {"large": 1}


def test_what_is_asked_for_last_is_counted_first(scales: Scales) -> None:
    """One workspace that a person opens does not wait for the whole list."""
    sizes = Sizes(scales.clock, scales.measure, wait=0.05)
    sizes.of(places("large", "a", "b"))
    sizes.of(places("b"))
    scales.may.set()
    sizes._wait = 60
    assert sizes.of(places("b")) == {"b": 2}
    assert scales.weighed[:2] == ["large", "b"]


def test_a_directory_is_counted_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert 100_000 <= disk_use(tmp_path) < 130_000
    assert disk_use(tmp_path / "nowhere") == 0
