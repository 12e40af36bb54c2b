"""Fixtures that start real supervisors and see to it that nothing is left of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binderclip.supervisor.spare import Spare
from tests.supervisor.attempts import Attempt


@pytest.fixture
def new_attempt(tmp_path: Path) -> Iterator[Callable[..., Attempt]]:
    made: list[Attempt] = []

    def make(folder: Path | None = None, nursery: str | Spare | None = None) -> Attempt:
        place = folder or tmp_path / f"attempt-{len(made) + 1}"
        made.append(Attempt(place, nursery))
        return made[-1]

    yield make
    for attempt in made:
        attempt.clean_up()


@pytest.fixture
def attempt(new_attempt: Callable[..., Attempt]) -> Attempt:
    return new_attempt()
