"""A data directory of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()
