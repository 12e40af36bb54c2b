"""Standing instructions before the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.sdk import ConfigError
from binderclip.sdk.instructions import with_instructions


def test_instructions_stand_before_the_prompt(tmp_path: Path) -> None:
    """C1: instructionsFilePath."""
    file = tmp_path / "AGENTS.md"
    file.write_text("\nBe brief.\n\n")
    assert with_instructions("go", str(file)) == "Be brief.\n\ngo"
    file.write_text(" \n")
    assert with_instructions("go", str(file)) == "go"
    assert with_instructions("go", None) == "go"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """F1: bad config names field, problem and fix."""
    broken = tmp_path / "AGENTS.md"
    broken.write_bytes(b"\xff\xfe")
    for path in (broken, tmp_path / "none.md"):
        with pytest.raises(ConfigError) as caught:
            with_instructions("go", str(path))
        assert caught.value.fields == {"instructionsFilePath": "cannot be read"}
        assert str(path) in caught.value.message
