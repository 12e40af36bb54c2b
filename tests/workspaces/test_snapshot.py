"""A snapshot holds everything and touches nothing."""

from __future__ import annotations

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
