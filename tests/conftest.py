"""Fixtures that many tests share: a home on either database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from binderclip.store.home import Home

if TYPE_CHECKING:
    from tests.postgres import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of this test process; started when the first test asks for it."""
    from tests import postgres as server

    with server.running() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def any_home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """A home whose database is SQLite, then one on PostgreSQL."""
    if request.param == "sqlite":
        yield Home(tmp_path / "home").ensure()
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.database()
    yield Home(tmp_path / "home", url).ensure()
    server.drop(url)
