"""Clean-up removes directories, never the only copy of anything."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binderclip.contract.errors import RestoreConflict
from binderclip.workspaces.cleaning import Policy, clean, disk_use
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.reviewing import merge_into_source
from binderclip.workspaces.worktrees import Wanted, prepare
from tests.workspaces.conftest import commit, plain_git

NOW = "2026-01-02T03:04:05.000Z"
THEN = 1767323045.0
EAGER = Policy(idle_days=0)


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "home" / "worktrees")


@pytest.fixture
def one(workspaces: Workspaces, repository: Path) -> Workspace:
    return prepare(workspaces, Wanted("T-1", str(repository)), NOW, run_id="r1")


def contents(directory: Path) -> dict[str, tuple[str, bytes]]:
    """Everything on a disk that has bytes: kind and content by path."""
    found = {}
    for folder, folders, files in os.walk(directory):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*files, *folders]:
            path = Path(folder) / name
            mode = path.lstat().st_mode
            key = str(path.relative_to(directory))
            if key == ".git":
                continue
            if stat.S_ISLNK(mode):
                found[key] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(mode):
                found[key] = ("program" if mode & 0o100 else "file", path.read_bytes())
    return found


def kept(repository: Path, ref: str, tmp: Path) -> dict[str, tuple[str, bytes]]:
    """What a saved ref gives back to somebody who checks it out."""
    plain_git(repository, "worktree", "add", "-q", "--detach", str(tmp / "back"), ref)
    try:
        return contents(tmp / "back")
    finally:
        plain_git(repository, "worktree", "remove", "--force", str(tmp / "back"))


def test_a_dry_run_tells_and_touches_nothing(workspaces: Workspaces, one: Workspace) -> None:
    (Path(one.tree) / "x").write_text("work")
    (verdict,) = clean(workspaces, EAGER, THEN, dry_run=True)
    assert (verdict.removes, verdict.reason) == (True, "not used for 0 days")
    assert verdict.bytes >= 4096
    assert (Path(one.tree) / "x").exists()


def test_merged_work_goes_without_a_trace(workspaces: Workspaces, one: Workspace) -> None:
    (verdict,) = clean(workspaces, EAGER, THEN)
    assert (verdict.removes, verdict.saved) == (True, None)
    assert not workspaces.folder(one.id).exists()
    assert workspaces.list() == []


def test_what_stays_is_told_with_its_reason(
    workspaces: Workspaces, one: Workspace, make_repository: Callable[[str], Path]
) -> None:
    """W8: what cannot be saved is not deleted."""
    assert clean(workspaces, Policy(), THEN)[0].reason == "in use"
    assert clean(workspaces, EAGER, THEN, busy={"r1"})[0].reason == "a run works in it"
    workspaces.journal(one.id).write_text("{}")
    assert clean(workspaces, EAGER, THEN)[0].reason == "a restore is unfinished"
    workspaces.journal(one.id).unlink()
    workspaces.change(one, away=True)
    told = "work of a remote run has not been brought back"
    assert clean(workspaces, EAGER, THEN)[0].reason == told
    workspaces.write(one)
    make_repository("inner").rename(Path(one.tree) / "inner")
    (verdict,) = clean(workspaces, EAGER, THEN)
    assert (verdict.removes, verdict.reason) == (False, "it holds another repository: inner")


def test_a_merge_that_was_refused_keeps_nothing_from_going(
    workspaces: Workspaces, one: Workspace, repository: Path
) -> None:
    """W8: the work is saved; work of a remote run would keep the workspace."""
    (Path(one.tree) / "a").write_text("theirs\n")
    (repository / "a").write_text("ours\n")
    with pytest.raises(RestoreConflict):
        merge_into_source(workspaces, one)
    elsewhere = f"refs/binderclip/theirs/{one.id}"
    plain_git(repository, "update-ref", elsewhere, "HEAD")
    assert not clean(workspaces, EAGER, THEN)[0].removes
    plain_git(repository, "update-ref", "-d", elsewhere)
    (verdict,) = clean(workspaces, EAGER, THEN)
    assert verdict.removes
    assert plain_git(repository, "show", f"{verdict.saved}:a").strip() == "theirs"


def test_too_many_ignored_bytes_keep_the_workspace(workspaces: Workspaces, one: Workspace) -> None:
    (Path(one.tree) / "big.log").write_bytes(b"x" * 5000)
    (verdict,) = clean(workspaces, Policy(idle_days=0, ignored_bytes=4000), THEN)
    assert not verdict.removes
    assert "ignored files" in verdict.reason
    assert (Path(one.tree) / "big.log").exists()


def test_space_is_bounded_by_letting_the_oldest_go(
    workspaces: Workspaces, one: Workspace, repository: Path
) -> None:
    prepare(workspaces, Wanted("T-2", str(repository)), "2026-01-03T00:00:00.000Z")
    bound = disk_use(workspaces.root) - 1
    verdicts = clean(workspaces, Policy(max_bytes=bound), THEN + 3600)
    assert [verdict.removes for verdict in verdicts] == [True, False]
    assert [left.task_key for left in workspaces.list()] == ["T-2"]


def test_commits_that_only_the_reflog_knows_are_saved(
    workspaces: Workspaces, one: Workspace, repository: Path
) -> None:
    """W8: an amended or abandoned commit was written by an agent too."""
    tree = Path(one.tree)
    lost = commit(tree, "lost", c="sea\n")
    plain_git(tree, "reset", "-q", "--hard", "HEAD~1")
    clean(workspaces, EAGER, THEN)
    refs = plain_git(repository, "for-each-ref", "--contains", lost, "refs/binderclip/saved")
    assert lost in refs


def test_a_removal_that_was_interrupted_goes_on(
    workspaces: Workspaces, one: Workspace, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W8: killed at any step, nothing is lost and the rest is done by the next clean-up."""
    (Path(one.tree) / "x").write_text("work")

    really = shutil.rmtree

    def killed(path: Path, **options: Any) -> None:
        if path == workspaces.folder(one.id):
            raise KeyboardInterrupt
        really(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            clean(workspaces, EAGER, THEN)
    (verdict,) = clean(workspaces, EAGER, THEN)
    assert verdict.removes
    assert verdict.saved
    assert plain_git(repository, "show", f"{verdict.saved}:x") == "work"


NAMES = st.sampled_from(
    ["a", "b", "new", "dir/x", "dir/y", "ünï", "new\nline", "x.log", "build/out", "-n", 'q"uote']
)
CONTENTS = st.binary(max_size=30)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "link", "program", "stage", "commit", "ignore"]),
        NAMES,
        CONTENTS,
    ),
    max_size=8,
)


def edit(tree: Path, verb: str, name: str, content: bytes) -> None:
    """One thing that an agent does."""
    path = tree / name
    if verb in ("write", "program", "link"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if verb == "link":
            path.symlink_to("a")
        else:
            path.write_bytes(content)
            path.chmod(0o755 if verb == "program" else 0o644)
    elif verb == "delete":
        path.unlink(missing_ok=True)
    elif verb == "stage":
        plain_git(tree, "add", "-A")
    elif verb == "ignore":
        with (tree / ".gitignore").open("a") as file:
            file.write(f"/{name}\n" if "\n" not in name else "")
    else:
        plain_git(tree, "add", "-A")
        plain_git(tree, "commit", "-q", "--allow-empty", "-m", "agent")


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits=EDITS)
def test_nothing_that_was_written_is_lost(
    repository: Path, edits: list[tuple[str, str, bytes]]
) -> None:
    """W8: after clean-up, a branch or a saved ref gives every byte back."""
    with TemporaryDirectory() as folder:
        tmp = Path(folder)
        workspaces = Workspaces(tmp / "worktrees")
        one = prepare(workspaces, Wanted("T-1", str(repository)), NOW)
        for verb, name, content in edits:
            edit(Path(one.tree), verb, name, content)
        before = contents(Path(one.tree))
        (verdict,) = clean(workspaces, EAGER, THEN)
        assert verdict.removes, verdict.reason
        assert one.branch
        assert kept(repository, verdict.saved or one.branch, tmp) == before
        assert plain_git(repository, "fsck", "--strict", "--no-dangling") == ""
