"""A run starts before the database is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = ["home", "jsonfile", "runfile", "runlog", "transcripts", "watch"]
CODE = """
import sys
import binderclip.store.{name}
print([name for name in ("sqlalchemy", "alembic") if name in sys.modules])
"""


@pytest.mark.parametrize("name", LIGHT)
def test_a_module_that_runs_need_does_not_load_the_database(name: str) -> None:
    """D11: `run` spawns before it imports the store."""
    command = [sys.executable, "-c", CODE.format(name=name)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"
