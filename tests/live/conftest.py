"""An agent per test: the CLI that the test is parametrized with, in a scratch home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.agent import Agent, missing


@pytest.fixture
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    if problem := missing(request.param):
        pytest.fail(problem)
    made = Agent(request.param, tmp_path / "agent")
    yield made
    made.stop()
