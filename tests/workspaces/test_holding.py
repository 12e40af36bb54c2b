"""Two who change the same directory do it one after the other, and nobody's work is skipped."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.ids import new_id
from binderclip.workspaces import holding, restoring, reviewing
from binderclip.workspaces.cleaning import clean
from binderclip.workspaces.git import Git
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.worktrees import Wanted, prepare
from tests.workspaces.conftest import commit, plain_git, status
from tests.workspaces.test_cleaning import EAGER, NOW, THEN


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "home" / "worktrees")


@pytest.fixture
def make(workspaces: Workspaces, repository: Path) -> Callable[[str], Workspace]:
    return lambda key: prepare(workspaces, Wanted(key, str(repository)), NOW)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "PATIENCE_SEC", 0.0)


def test_merges_at_once_bring_everything_once(
    workspaces: Workspaces, repository: Path, make: Callable[[str], Workspace]
) -> None:
    """W8: of two workspaces, each merged twice, into one checkout."""
    both = [make("T-1"), make("T-2")]
    for at, one in enumerate(both):
        commit(Path(one.tree), f"work {at}", **{f"made{at}": f"{at}\n"})
        (Path(one.tree) / f"loose{at}").write_text("not committed")
    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(reviewing.merge_into_source, workspaces, one) for one in both * 2]
        done = [job.result() for job in jobs]
    assert sorted(path for each in done for path in each.changed) == [
        "loose0",
        "loose1",
        "made0",
        "made1",
    ]
    assert status(repository) == ["?? loose0", "?? loose1"]
    assert plain_git(repository, "fsck", "--strict", "--no-dangling") == ""
    told = plain_git(repository, "log", "--format=%s").split("\n")
    assert sorted(told) == sorted({"first", "work 0", "work 1", "Merge what a run did elsewhere"})


@pytest.mark.usefixtures("impatient")
def test_whoever_waits_too_long_is_told_who_has_it(
    workspaces: Workspaces, repository: Path, make: Callable[[str], Workspace]
) -> None:
    one = make("T-1")
    (Path(one.tree) / "new").write_text("new")
    with workspaces.held(one.id, "reading it"):
        with pytest.raises(Conflict, match=f"process {os.getpid()} is reading it") as busy:
            reviewing.merge_into_source(workspaces, one)
        with pytest.raises(Conflict):
            reviewing.archive(workspaces, one)
        (verdict,) = clean(workspaces, EAGER, THEN)
    assert busy.value.code == "workspace_busy"
    assert not verdict.removes
    with holding.directory_held(Git(repository), "tidying up"), pytest.raises(Conflict, match="up"):
        reviewing.merge_into_source(workspaces, one)
    assert not (repository / "new").exists()
    reviewing.merge_into_source(workspaces, one)
    assert (repository / "new").read_text() == "new"


def test_work_done_after_an_interrupted_merge_is_merged_as_well(
    workspaces: Workspaces,
    repository: Path,
    make: Callable[[str], Workspace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W8: the merge that was begun is finished first, and the rest counts as new."""

    class Killed(BaseException):
        """Somebody killed the process here."""

    def die(*_: object) -> None:
        raise Killed

    one = make("T-1")
    (Path(one.tree) / "early").write_text("early")
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(restoring, "_fit", die)
        reviewing.merge_into_source(workspaces, one)
    (Path(one.tree) / "late").write_text("late")
    done = reviewing.merge_into_source(workspaces, workspaces.get(one.id))
    assert done.changed == ("late",)
    assert ((repository / "early").read_text(), (repository / "late").read_text()) == (
        "early",
        "late",
    )


def test_a_workspace_that_is_gone_is_not_waited_for(workspaces: Workspaces) -> None:
    with pytest.raises(NotFound):
        workspaces.held(new_id(), "nothing")
