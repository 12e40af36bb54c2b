"""A snapshot holds everything and touches nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from binderclip.workspaces.git import Git
from binderclip.workspaces.snapshot import NoSnapshot, read, take
from tests.workspaces.conftest import commit, plain_git, status
from tests.workspaces.test_trip import messy


def test_equal_states_have_equal_ids_and_nothing_is_touched(repository: Path) -> None:
    messy(repository)
    index = (repository / ".git" / "index").read_bytes()
    refs, before = plain_git(repository, "for-each-ref"), status(repository)
    first = take(Git(repository))
    assert take(Git(repository)).id == first.id
    assert (repository / ".git" / "index").read_bytes() == index
    assert (plain_git(repository, "for-each-ref"), status(repository)) == (refs, before)
    (repository / "a").write_text("another\n")
    assert take(Git(repository)).id != first.id


def test_it_reads_back_as_it_was_taken(repository: Path) -> None:
    messy(repository)
    taken = take(Git(repository))
    assert read(Git(repository), taken.id) == taken
    assert taken.empty == ("deep/hollow",)
    assert taken.modes == {"secret": 0o600}
    with pytest.raises(NoSnapshot):
        read(Git(repository), plain_git(repository, "rev-parse", "HEAD"))


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_was_told_not_to_look_at_are_seen(repository: Path, flag: str) -> None:
    """W8: a flag in the index hides no work."""
    plain_git(repository, "update-index", flag, "a")
    (repository / "a").write_text("hidden work\n")
    taken = take(Git(repository))
    assert plain_git(repository, "show", f"{taken.id}:a") == "hidden work"
    assert plain_git(repository, "ls-files", "-v", "a")[0] in "hS"


def test_bytes_are_kept_as_they_are_on_the_disk(repository: Path) -> None:
    """No filter and no conversion of line ends changes what somebody wrote."""
    (repository / ".gitattributes").write_text("* text=auto eol=lf\n")
    commit(repository, "attributes")
    (repository / "dos").write_bytes(b"one\r\ntwo\r\n")
    taken = take(Git(repository))
    assert Git(repository)("cat-file", "blob", f"{taken.id}:dos") == b"one\r\ntwo\r\n"


def test_ignored_files_are_taken_along_only_when_asked_for(repository: Path) -> None:
    (repository / "x.log").write_text("noise")
    (repository / "build").mkdir()
    (repository / "build" / "y").write_text("made")
    git = Git(repository)

    def names(id: str) -> set[str]:
        return set(git.names("ls-tree", "-r", "-z", "--name-only", id))

    usual = names(take(git).id)
    assert names(take(git, paths=["build"]).id) - usual == {"build/y"}
    assert names(take(git, ignored=True).id) - usual == {"build/y", "x.log"}


YEAR_AGO = 1_700_000_000


def quick_change(repository: Path, index_age: int) -> None:
    """Write a file and add it, then write other bytes within the same second, as many as before.

    To git the file looks as it was added; its index is `index_age` seconds younger than the file.
    """
    path, index = repository / "quick", repository / ".git" / "index"
    first = second = 0
    while not first or first // 10**9 != second // 10**9 or first == second:
        path.write_text("before\n")
        os.utime(path, (YEAR_AGO, YEAR_AGO))
        plain_git(repository, "add", "quick")
        first = path.stat().st_ctime_ns
        path.write_text("theirs\n")
        os.utime(path, (YEAR_AGO, YEAR_AGO))
        second = path.stat().st_ctime_ns
    os.utime(index, (YEAR_AGO + index_age, YEAR_AGO + index_age))


@pytest.mark.parametrize("index_age", [0, 60])
def test_a_change_within_the_second_in_which_git_looked_is_seen(
    repository: Path, index_age: int
) -> None:
    """W8: neither size nor time tell it; git doubts such files only while its index is as old."""
    quick_change(repository, index_age)
    taken = take(Git(repository))
    assert plain_git(repository, "show", f"{taken.id}:quick") == "theirs"


def test_a_path_that_is_only_announced_stays_so(repository: Path) -> None:
    (repository / "later").write_text("not added yet\n")
    plain_git(repository, "add", "--intent-to-add", "later")
    (repository / "later").write_text("not added yet.\n")
    before = plain_git(repository, "write-tree")
    taken = take(Git(repository))
    assert taken.index == before
    assert plain_git(repository, "show", f"{taken.id}:later") == "not added yet."
