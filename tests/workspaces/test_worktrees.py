"""A worktree per task: made from the person's state, used again, never silently another's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.contract.errors import NotFound, RestoreConflict, WorkspaceError
from binderclip.workspaces import reviewing
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.repository import find, reason_against_worktree
from binderclip.workspaces.worktrees import Wanted, prepare
from tests.workspaces.conftest import commit, plain_git, status

NOW = "2026-01-02T03:04:05.000Z"


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "home" / "worktrees")


def made(workspaces: Workspaces, directory: Path, task: str = "T-1", **more: object) -> Workspace:
    return prepare(workspaces, Wanted(task, str(directory), **more), NOW)  # type: ignore[arg-type]


def test_a_task_gets_a_worktree_on_a_branch_of_its_own(
    workspaces: Workspaces, repository: Path
) -> None:
    """W1: the person's checkout is not touched."""
    (repository / "a").write_text("mine\n")
    one = made(workspaces, repository)
    assert one.branch == "binderclip/T-1"
    assert Path(one.cwd).name == "project"
    assert (Path(one.cwd) / "a").read_text() == "one\ntwo\nthree\n"
    assert status(repository) == [" M a"]
    assert plain_git(repository, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_later_runs_of_the_task_use_it_again(workspaces: Workspaces, repository: Path) -> None:
    """W1: what a run left there is there for the next one."""
    one = made(workspaces, repository)
    (Path(one.cwd) / "new").write_text("work")
    again = made(workspaces, repository)
    assert again.id == one.id
    assert (Path(again.cwd) / "new").read_text() == "work"
    assert made(workspaces, repository, "T-2").id != one.id


def test_uncommitted_files_come_along_when_asked_for(
    workspaces: Workspaces, repository: Path
) -> None:
    (repository / "a").write_text("changed\n")
    (repository / "b").unlink()
    (repository / "new\nname").write_text("untracked")
    (repository / "link").symlink_to("a")
    (repository / "hollow").mkdir()
    (repository / "tool").write_text("#!/bin/sh\n")
    (repository / "tool").chmod(0o700)
    plain_git(repository, "add", "tool")
    one = made(workspaces, repository, dirty=True)
    tree = Path(one.tree)
    assert status(tree) == status(repository)
    assert (tree / "new\nname").read_text() == "untracked"
    assert (tree / "link").readlink() == Path("a")
    assert (tree / "hollow").is_dir()
    assert (tree / "tool").stat().st_mode & 0o777 == 0o700


def test_a_base_can_be_named(workspaces: Workspaces, repository: Path) -> None:
    first = plain_git(repository, "rev-parse", "HEAD")
    commit(repository, "second", c="sea\n")
    one = made(workspaces, repository, base=first)
    assert not (Path(one.tree) / "c").exists()
    with pytest.raises(WorkspaceError, match="no commit called"):
        made(workspaces, repository, "T-2", base="nowhere")
    with pytest.raises(WorkspaceError, match="same commit"):
        made(workspaces, repository, "T-3", base=first, dirty=True)


@pytest.mark.parametrize(
    ("label", "template", "branch"),
    [
        ("Grüße/日本", "binderclip/{task}", "binderclip/Grüße/日本"),
        ("fix: a ~bug^ [now]", "{task}", "fix-a-bug-now"),
        ("..//x.lock", "work/{task}", "work/x"),
        ("???", "{agent}/{task}", "ada/task"),
    ],
)
def test_any_label_becomes_a_branch(
    workspaces: Workspaces, repository: Path, label: str, template: str, branch: str
) -> None:
    one = made(workspaces, repository, label=label, template=template, agent_id="ada")
    assert one.branch == branch
    assert plain_git(Path(one.tree), "symbolic-ref", "--short", "HEAD") == branch


def test_a_branch_that_is_taken_is_left_alone(workspaces: Workspaces, repository: Path) -> None:
    plain_git(repository, "branch", "binderclip/T-1")
    plain_git(repository, "branch", "binderclip/T-2/deeper")
    assert made(workspaces, repository).branch == "binderclip/T-1-2"
    assert made(workspaces, repository, "T-2").branch == "binderclip/T-2-2"
    plain_git(repository, "branch", "work")
    with pytest.raises(WorkspaceError, match="name of a branch"):
        made(workspaces, repository, "T-3", template="work/{task}")


def test_a_directory_inside_the_repository_is_the_same_one_there(
    workspaces: Workspaces, repository: Path
) -> None:
    inner = repository / "pkg" / "core"
    inner.mkdir(parents=True)
    one = made(workspaces, inner)
    assert Path(one.cwd) == Path(one.tree) / "pkg" / "core"
    assert Path(one.cwd).is_dir()


def test_a_worktree_whose_directory_vanished_comes_back_with_its_commits(
    workspaces: Workspaces, repository: Path
) -> None:
    one = made(workspaces, repository)
    commit(Path(one.tree), "work", c="sea\n")
    shutil.rmtree(one.tree)
    again = made(workspaces, repository)
    assert (Path(again.tree) / "c").read_text() == "sea\n"


def test_something_else_in_its_place_is_not_overwritten(
    workspaces: Workspaces, repository: Path
) -> None:
    """W8: what a person put there stays."""
    one = made(workspaces, repository)
    shutil.rmtree(one.tree)
    Path(one.tree).mkdir()
    (Path(one.tree) / "precious").write_text("x")
    with pytest.raises(WorkspaceError, match="no worktree any more"):
        made(workspaces, repository)
    assert (Path(one.tree) / "precious").read_text() == "x"


def test_a_preparation_that_was_interrupted_goes_on(
    workspaces: Workspaces, repository: Path
) -> None:
    (repository / "a").write_text("dirty\n")
    one = made(workspaces, repository, dirty=True)
    workspaces.change(one, state="preparing")
    (Path(one.tree) / "a").write_text("one\ntwo\nthree\n")
    again = made(workspaces, repository, dirty=True)
    assert (again.id, again.state) == (one.id, "active")
    assert (Path(one.tree) / "a").read_text() == "dirty\n"


def test_another_agent_in_another_environment_is_refused(
    workspaces: Workspaces, repository: Path
) -> None:
    """W5: unless the task names the environment."""
    made(workspaces, repository, agent_id="ada", environment_id="e1")
    made(workspaces, repository, agent_id="bob", environment_id="e1")
    with pytest.raises(WorkspaceError, match="belongs to environment e1"):
        made(workspaces, repository, agent_id="ada", environment_id="e2")
    named = made(
        workspaces, repository, agent_id="ada", environment_id="e2", environment_named=True
    )
    assert named.environment_id == "e2"
    workspaces.change(named, away=True)
    with pytest.raises(WorkspaceError, match="not brought back"):
        made(workspaces, repository, agent_id="ada", environment_id="e3", environment_named=True)


class TestOddRepositories:
    """Each is handled, or refused with a reason."""

    def test_not_a_repository(self, workspaces: Workspaces, tmp_path: Path) -> None:
        assert "not in a git repository" in str(reason_against_worktree(tmp_path))
        with pytest.raises(WorkspaceError, match="not in a git repository"):
            made(workspaces, tmp_path)
        assert "not a directory" in str(reason_against_worktree(tmp_path / "gone"))

    def test_no_commit(self, workspaces: Workspaces, tmp_path: Path) -> None:
        plain_git(tmp_path, "init", "-q")
        assert "no commit" in str(reason_against_worktree(tmp_path))
        with pytest.raises(WorkspaceError, match="no commit"):
            made(workspaces, tmp_path)

    def test_the_repositorys_own_files(self, repository: Path) -> None:
        assert "own files" in str(reason_against_worktree(repository / ".git"))

    def test_a_config_that_points_elsewhere(self, repository: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        plain_git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))
        assert reason_against_worktree(repository) is not None

    def test_bare(self, workspaces: Workspaces, repository: Path, tmp_path: Path) -> None:
        plain_git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
        one = made(workspaces, tmp_path / "bare.git")
        assert (Path(one.cwd).name, (Path(one.cwd) / "b").read_text()) == ("bare", "bee\n")
        with pytest.raises(WorkspaceError, match="no other checkout"):
            reviewing.merge_into_source(workspaces, one)

    def test_detached_head_and_linked_worktree(
        self, workspaces: Workspaces, repository: Path, tmp_path: Path
    ) -> None:
        linked = tmp_path / "linked"
        plain_git(repository, "worktree", "add", "-q", "--detach", str(linked))
        one = made(workspaces, linked)
        assert find(linked).linked
        assert Path(one.repository) == repository / ".git"
        assert (Path(one.cwd) / "a").exists()

    def test_submodules_are_told(
        self, workspaces: Workspaces, repository: Path, make_repository: Callable[[str], Path]
    ) -> None:
        inner = make_repository("inner")
        allow = ("-c", "protocol.file.allow=always")
        plain_git(repository, *allow, "submodule", "--quiet", "add", str(inner), "sub")
        commit(repository, "submodule")
        one = made(workspaces, repository)
        assert one.notes == ("submodules are not checked out: sub",)
        assert list((Path(one.tree) / "sub").iterdir()) == []

    def test_lfs_files_stay_pointers(self, workspaces: Workspaces, repository: Path) -> None:
        (repository / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
        (repository / "x.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
        commit(repository, "lfs")
        plain_git(repository, "config", "filter.lfs.smudge", "false")
        plain_git(repository, "config", "filter.lfs.required", "true")
        one = made(workspaces, repository)
        assert (Path(one.tree) / "x.bin").read_text().startswith("version")
        assert "Git LFS" in one.notes[0]

    def test_sparse_checkout(self, workspaces: Workspaces, repository: Path) -> None:
        for name in ("in", "out"):
            (repository / name).mkdir()
            (repository / name / "f").write_text(name)
        commit(repository, "folders")
        plain_git(repository, "sparse-checkout", "set", "in")
        (repository / "in" / "f").write_text("changed")
        one = made(workspaces, repository, dirty=True)
        assert (Path(one.tree) / "in" / "f").read_text() == "changed"
        assert status(Path(one.tree)) == [" M in/f"]

    def test_shallow(self, workspaces: Workspaces, repository: Path, tmp_path: Path) -> None:
        commit(repository, "second")
        address = f"file://{repository}"
        plain_git(tmp_path, "clone", "-q", "--depth=1", address, "shallow")
        assert made(workspaces, tmp_path / "shallow").notes == ("the history is shallow",)


class TestReview:
    def test_diff_patch_and_work_count_untracked_files(
        self, workspaces: Workspaces, repository: Path
    ) -> None:
        one = made(workspaces, repository)
        tree = Path(one.tree)
        commit(tree, "a commit", a="one\n2\nthree\n")
        (tree / "fresh").write_bytes(b"\0binary")
        work = reviewing.work_of(one)
        assert work.files == (("M", "a"), ("A", "fresh"))
        assert (len(work.commits), work.uncommitted) == (1, 1)
        assert b"+2" in reviewing.diff(one)
        patch = repository.parent / "p.patch"
        patch.write_bytes(reviewing.export(one))
        plain_git(repository, "apply", str(patch))
        assert (repository / "fresh").read_bytes() == b"\0binary"
        assert status(tree) == ["?? fresh"]

    def test_merging_brings_commits_and_files_and_keeps_the_persons_own(
        self, workspaces: Workspaces, repository: Path
    ) -> None:
        one = made(workspaces, repository)
        tree = Path(one.tree)
        done = commit(tree, "agent's", c="sea\n")
        (tree / "loose").write_text("uncommitted")
        (repository / "mine").write_text("person's")
        (repository / "a").write_text("edited\n")
        reviewing.merge_into_source(workspaces, one)
        assert plain_git(repository, "rev-parse", "main") == done
        assert status(repository) == [" M a", "?? loose", "?? mine"]
        assert reviewing.work_of(workspaces.get(one.id)).files == ()

    def test_diverged_work_is_merged(self, workspaces: Workspaces, repository: Path) -> None:
        one = made(workspaces, repository)
        theirs = commit(Path(one.tree), "agent's", a="zero\none\ntwo\nthree\n")
        ours = commit(repository, "person's", b="buzz\n")
        reviewing.merge_into_source(workspaces, one)
        parents = plain_git(repository, "log", "-1", "--format=%P").split()
        assert parents == [ours, theirs]
        assert (status(repository), (repository / "b").read_text()) == ([], "buzz\n")
        assert (repository / "a").read_text().startswith("zero")

    @pytest.mark.parametrize(("choice", "text"), [("ours", "mine\n"), ("theirs", "yours\n")])
    def test_a_conflict_changes_nothing_until_a_person_chooses(
        self, workspaces: Workspaces, repository: Path, choice: str, text: str
    ) -> None:
        one = made(workspaces, repository)
        (Path(one.tree) / "a").write_text("yours\n")
        (repository / "a").write_text("mine\n")
        with pytest.raises(RestoreConflict, match="changed a") as conflict:
            reviewing.merge_into_source(workspaces, one)
        assert conflict.value.fields == {"a": "changed on both sides"}
        assert (repository / "a").read_text() == "mine\n"
        reviewing.merge_into_source(workspaces, one, choice)  # type: ignore[arg-type]
        assert (repository / "a").read_text() == text

    def test_markers_show_both_sides(self, workspaces: Workspaces, repository: Path) -> None:
        one = made(workspaces, repository)
        (Path(one.tree) / "a").write_text("yours\n")
        (repository / "a").write_text("mine\n")
        reviewing.merge_into_source(workspaces, one, "markers")
        text = (repository / "a").read_text()
        assert "<<<<<<<" in text
        assert "mine" in text
        assert "yours" in text


def test_a_workspace_is_found_by_task_branch_or_the_end_of_its_id(
    workspaces: Workspaces, repository: Path
) -> None:
    one = made(workspaces, repository)
    for text in ("T-1", "binderclip/T-1", one.id[-8:], one.id):
        assert workspaces.find(text).id == one.id
    with pytest.raises(NotFound):
        workspaces.find("nothing")
    with pytest.raises(NotFound):
        workspaces.get("../x")


def test_no_remote_appears(workspaces: Workspaces, repository: Path) -> None:
    """W7: a repository without a remote has none afterwards."""
    one = made(workspaces, repository)
    commit(Path(one.tree), "work", c="sea\n")
    reviewing.merge_into_source(workspaces, one)
    assert plain_git(repository, "remote") == ""
    assert plain_git(repository, "config", "--get-regexp", "^(remote|branch)", check=False) == ""
