"""What the tool calls of agent CLIs have in common."""

from __future__ import annotations

from typing import Any

import pytest

from binderclip.sdk.tools import Titles, diff_from, title_from, with_todo_items

TITLES: Titles = {"read": ("file_path", "path"), "shell": ("command",)}


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ({"file_path": "a.py", "path": "b.py"}, "a.py"),
        ({"file_path": "", "path": "b.py"}, "b.py"),
        ({"file_path": ["a.py"], "path": "b.py"}, "b.py"),
        ({"command": "ls"}, None),
    ],
)
def test_a_title_is_the_first_argument_that_is_a_text(
    given: dict[str, Any], title: str | None
) -> None:
    assert title_from(TITLES, "read", given) == title


def test_a_plan_keeps_its_input_and_gains_items() -> None:
    """T1: todo lists in the one form that renderers know, whatever the runtime printed."""
    given = {"todos": [{"description": "one", "status": "done"}, "junk", {"status": 3}]}
    assert with_todo_items(given, "description") == {
        **given,
        "items": [{"text": "one", "status": "done"}, {"text": "", "status": ""}],
    }
    assert with_todo_items({"todos": "none"}) == {"todos": "none", "items": []}


def test_only_writes_and_edits_of_a_named_file_are_diffs() -> None:
    """T1: file edits as `diff`, made of the call's own arguments."""
    written = diff_from("write", {"file_path": "a", "content": "x\ny\n"}, "t1", "0")
    assert [line.text for line in written if line.change_type == "add"] == ["x", "y"]
    edited = diff_from("edit", {"file_path": "a", "old_string": "x", "new_string": "z"}, "t1", "0")
    kinds = [line.change_type for line in edited]
    assert "remove" in kinds and "add" in kinds
    assert diff_from("edit", {"old_string": "x", "new_string": "z"}, "t1", "0") == ()
    assert diff_from("read", {"file_path": "a"}, "t1", "0") == ()
