"""Diff entries: one a line, bounded, by the LF alone."""

from __future__ import annotations

from binderclip.sdk.diff import MOST_COMPARED, MOST_LINES, edit_diff, patch_diff, written_diff

TS = "2026-01-01T00:00:00.000Z"


def test_an_edit_becomes_header_hunk_and_lines() -> None:
    """T1: diff entries carry their change, path and tool."""
    found = edit_diff(TS, "a.py", "one\ntwo\n", "one\n2\n", "t1")
    told = [(entry.change_type, entry.text) for entry in found]
    assert told[0] == ("file_header", "a.py")
    assert told[1][0] == "hunk"
    assert told[2:] == [("context", "one"), ("remove", "two"), ("add", "2")]
    assert {(entry.path, entry.tool_use_id) for entry in found} == {("a.py", "t1")}


def test_an_edit_that_changes_nothing_has_no_entries() -> None:
    assert edit_diff(TS, "a.py", "same", "same") == ()


def test_a_written_file_is_all_added_whatever_separators_it_holds() -> None:
    """T4: lines end at LF and nowhere else."""
    found = written_diff(TS, "a.txt", "one\u2028still one\ntwo\r")
    assert [entry.text for entry in found] == ["a.txt", "one\u2028still one", "two\r"]
    assert [entry.change_type for entry in found] == ["file_header", "add", "add"]


def test_a_long_file_is_cut_and_says_so() -> None:
    found = written_diff(TS, "a.txt", "x\n" * (MOST_LINES + 7))
    assert len(found) == MOST_LINES + 2
    assert (found[-1].change_type, found[-1].text) == ("truncation", "… 7 more lines")


def test_a_huge_edit_is_not_compared_line_by_line() -> None:
    old = "".join(f"{n}\n" for n in range(MOST_COMPARED + 1))
    found = edit_diff(TS, "a.txt", old, "new\n")
    assert found[1].change_type == "remove"
    assert len(found) == MOST_LINES + 2


def test_a_patch_of_the_runtime_loses_its_own_headers_and_odd_lines() -> None:
    patch = "Index: a\n--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n"
    found = patch_diff(TS, "a", patch)
    told = [(entry.change_type, entry.text) for entry in found]
    assert told == [
        ("file_header", "a"),
        ("hunk", "@@ -1 +1 @@"),
        ("remove", "old"),
        ("add", "new"),
    ]


def test_a_removed_line_that_looks_like_a_header_is_kept() -> None:
    patch = "--- a.sql\n+++ a.sql\n@@ -1,1 +1,1 @@\n--- a comment\n+++ more\n"
    found = patch_diff(TS, "a.sql", patch)
    assert [(entry.change_type, entry.text) for entry in found[2:]] == [
        ("remove", "-- a comment"),
        ("add", "++ more"),
    ]
