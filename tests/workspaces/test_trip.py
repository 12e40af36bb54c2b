"""Round trips between two directories: everything arrives, both ways, or is told as a conflict."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binderclip.contract.errors import RestoreConflict, WorkspaceError
from binderclip.workspaces import outpost
from binderclip.workspaces.far import Far, Refusal, start_locally
from binderclip.workspaces.git import Git
from binderclip.workspaces.trip import Trip
from tests.workspaces.conftest import commit, plain_git, status
from tests.workspaces.test_cleaning import contents

NAME = "01890000-0000-7000-8000-000000000001"


class Crash(BaseException):
    """Somebody killed the process here."""


class Near(Far):
    """An outpost in this process, which is faster; it can be cut off before or after answering."""

    def __init__(self) -> None:
        super().__init__([])
        self.reached: Callable[[str], None] = lambda _point: None

    def ask(
        self, verb: str, body: Path | None = None, into: Path | None = None, **asked: Any
    ) -> dict[str, Any]:
        self.reached(f"before {verb}")
        with TemporaryDirectory() as folder:
            answer = into or Path(folder) / "answer"
            try:
                told = outpost.answer({"verb": verb, **asked}, body, answer)
            except outpost.Refused as problem:
                raise Refusal(str(problem), "Refused") from problem
        self.reached(f"after {verb}")
        return told


@dataclass
class Sides:
    """A checkout, its copy elsewhere, and the way between them."""

    here: Path
    there: Path
    journal: Path
    far: Far
    paths: tuple[str, ...] = ()
    step: Callable[[str], None] = field(default=lambda _step: None)

    @property
    def trip(self) -> Trip:
        git = Git(self.here)
        return Trip(
            git, NAME, self.far, str(self.there), self.journal, paths=self.paths, step=self.step
        )


def sides_in(tmp_path: Path, here: Path, far: Far | None = None) -> Sides:
    return Sides(here, tmp_path / "remote" / "copy", tmp_path / "restore.json", far or Near())


@pytest.fixture
def sides(tmp_path: Path, repository: Path) -> Sides:
    return sides_in(tmp_path, repository)


def messy(directory: Path) -> None:
    """All that a working directory can hold besides commits."""
    (directory / "a").write_text("one\nTWO\nthree\n")
    plain_git(directory, "rm", "-q", "b")
    (directory / "staged").write_text("staged\n")
    plain_git(directory, "add", "staged")
    (directory / "staged").write_text("staged, then changed\n")
    (directory / "new\nline").write_text("untracked")
    (directory / "späte Datei").write_bytes(b"\xff\0\xfe")
    (directory / "link").symlink_to("a")
    (directory / "secret").write_text("x")
    (directory / "secret").chmod(0o600)
    (directory / "run.sh").write_text("#!/bin/sh\n")
    (directory / "run.sh").chmod(0o755)
    (directory / "deep" / "hollow").mkdir(parents=True)
    (directory / "noise.log").write_text("ignored")


def test_a_copy_shows_what_the_person_sees(sides: Sides) -> None:
    """W6: commits, staged, dirty, untracked and deleted files, modes, links, empty directories."""
    messy(sides.here)
    sides.trip.out()
    assert status(sides.there) == status(sides.here)
    wanted = contents(sides.here)
    del wanted["noise.log"]
    assert contents(sides.there) == wanted
    assert (sides.there / "deep" / "hollow").is_dir()
    assert (sides.there / "secret").stat().st_mode & 0o777 == 0o600
    assert plain_git(sides.there, "log", "--format=%H") == plain_git(
        sides.here, "log", "--format=%H"
    )
    assert plain_git(sides.there, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_work_done_there_lands_here(sides: Sides) -> None:
    """W6: a commit made only on the remote lands locally, and the index is right afterwards."""
    sides.trip.out()
    done = commit(sides.there, "done there", a="changed there\n", fresh="new\n")
    messy(sides.there)
    sides.trip.back()
    assert plain_git(sides.here, "rev-parse", "main") == done
    assert status(sides.here) == status(sides.there)
    wanted = contents(sides.there)
    del wanted["noise.log"]
    assert contents(sides.here) == wanted
    assert (sides.here / "deep" / "hollow").is_dir()
    assert plain_git(sides.here, "remote") == plain_git(sides.there, "remote") == ""
    assert plain_git(sides.here, "fsck", "--strict", "--no-dangling") == ""


def test_ignored_files_travel_only_when_asked_for(sides: Sides) -> None:
    (sides.here / "build").mkdir()
    (sides.here / "build" / "cache").write_text("warm")
    (sides.here / "x.log").write_text("noise")
    sides.paths = ("build",)
    sides.trip.out()
    assert (sides.there / "build" / "cache").read_text() == "warm"
    assert not (sides.there / "x.log").exists()
    (sides.there / "build" / "cache").write_text("warmer")
    sides.trip.back()
    assert (sides.here / "build" / "cache").read_text() == "warmer"
    assert (sides.here / "x.log").read_text() == "noise"


def test_work_on_both_sides_is_merged(sides: Sides) -> None:
    """W6: concurrent work is merged, commits and files."""
    sides.trip.out()
    theirs = commit(sides.there, "theirs", a="zero\none\ntwo\nthree\n")
    (sides.there / "their file").write_text("theirs")
    ours = commit(sides.here, "ours", b="buzz\n")
    (sides.here / "our file").write_text("ours")
    done = sides.trip.back()
    assert done.merged
    assert plain_git(sides.here, "log", "-1", "--format=%P").split() == [ours, theirs]
    assert (sides.here / "a").read_text() == "zero\none\ntwo\nthree\n"
    assert status(sides.here) == ["?? our file", "?? their file"]


def test_a_conflict_keeps_both_sides_and_can_be_resolved(sides: Sides) -> None:
    """W6: ours in place, theirs under a ref and listed; resolved without the other machine."""
    sides.trip.out()
    commit(sides.there, "theirs", a="theirs\n")
    (sides.there / "extra").write_text("more of theirs")
    commit(sides.here, "ours", a="ours\n")
    before = contents(sides.here)
    for _ in range(2):
        with pytest.raises(RestoreConflict) as conflict:
            sides.trip.back()
        assert list(conflict.value.fields) == ["a"]
        assert contents(sides.here) == before
    assert plain_git(sides.here, "show", f"{sides.trip.theirs_ref}:a") == "theirs"
    sides.trip.resolve("theirs")
    assert (sides.here / "a").read_text() == "theirs\n"
    assert (sides.here / "extra").exists()
    assert status(sides.here) == ["?? extra"]
    with pytest.raises(WorkspaceError, match="no conflict"):
        sides.trip.resolve("ours")
    sides.trip.out()
    assert contents(sides.there) == contents(sides.here)


def test_an_ignored_file_in_the_way_is_not_overwritten(sides: Sides) -> None:
    """W8: it is in no commit and no snapshot, so it stays."""
    sides.trip.out()
    (sides.here / "x.log").write_text("precious")
    (sides.there / "x.log").write_text("theirs")
    plain_git(sides.there, "add", "-f", "x.log")
    with pytest.raises(RestoreConflict, match=r"x\.log"):
        sides.trip.back()
    assert (sides.here / "x.log").read_text() == "precious"


def test_branches_tags_and_stashes_made_there_arrive(sides: Sides) -> None:
    sides.trip.out()
    (sides.there / "a").write_text("stashed\n")
    plain_git(sides.there, "stash", "-q")
    plain_git(sides.there, "checkout", "-q", "-b", "feature/ü")
    feature = commit(sides.there, "on the branch", f="eff\n")
    plain_git(sides.there, "tag", "v1")
    plain_git(sides.there, "branch", "spare", "HEAD~1")
    sides.trip.back()
    assert plain_git(sides.here, "symbolic-ref", "--short", "HEAD") == "feature/ü"
    assert plain_git(sides.here, "rev-parse", "v1", "HEAD").split() == [feature, feature]
    assert plain_git(sides.here, "rev-parse", "spare") == plain_git(sides.here, "rev-parse", "main")
    stash = f"refs/binderclip/kept/{NAME}/stash"
    assert plain_git(sides.here, "show", f"{stash}:a") == "stashed"
    assert status(sides.here) == []


def test_a_rewritten_history_is_taken_and_the_old_one_saved(sides: Sides) -> None:
    old = commit(sides.here, "second", c="sea\n")
    sides.trip.out()
    plain_git(sides.there, "reset", "-q", "--soft", "HEAD~1")
    new = commit(sides.there, "amended", c="see\n")
    sides.trip.back()
    assert plain_git(sides.here, "rev-parse", "HEAD") == new
    saved = plain_git(
        sides.here, "for-each-ref", "--contains", old, f"refs/binderclip/saved/{NAME}"
    )
    assert saved


def test_the_second_trip_carries_only_what_is_new(sides: Sides, tmp_path: Path) -> None:
    """W6: thin bundles both ways."""
    big = random.Random(1).randbytes(400_000)
    (sides.here / "big").write_bytes(big)
    (sides.here / "big untracked").write_bytes(big[::-1])
    plain_git(sides.here, "add", "big")
    commit(sides.here, "big")
    (sides.here / "big untracked 2").write_bytes(big[1:])
    far = Far(start_locally(sys.executable, tmp_path))
    trip = sides_in(tmp_path, sides.here, far).trip
    trip.out()
    first = far.sent
    (sides.there / "small").write_text("small")
    trip.back()
    (sides.here / "a").write_text("changed\n")
    trip.out()
    assert first > 400_000
    assert far.sent - first < 5_000
    assert far.received < 5_000


def test_a_repository_within_is_brought_back_as_files_and_the_copy_stays(
    sides: Sides, make_repository: Callable[[str], Path]
) -> None:
    sides.trip.out()
    make_repository("inner").rename(sides.there / "inner")
    sides.trip.back()
    assert (sides.here / "inner" / "a").read_text() == "one\n"
    assert not (sides.here / "inner" / ".git").exists()
    with pytest.raises(Refusal, match="it stays"):
        sides.trip.remove_copy()


def test_a_copy_is_removed_only_when_all_of_it_is_here(sides: Sides) -> None:
    """W8: ignored files of the copy get a saved ref."""
    sides.trip.out()
    (sides.there / "work").write_text("work")
    (sides.there / "x.log").write_text("an agent's log")
    with pytest.raises(WorkspaceError, match="not brought back"):
        sides.trip.remove_copy()
    sides.trip.back()
    sides.trip.remove_copy()
    assert not sides.there.exists()
    refs = plain_git(sides.here, "for-each-ref", "--format=%(refname)", "refs/binderclip/saved")
    logs = [plain_git(sides.here, "show", f"{ref}:x.log", check=False) for ref in refs.split()]
    assert "an agent's log" in logs
    sides.trip.out()
    assert contents(sides.there)["work"] == contents(sides.here)["work"]


def test_a_shallow_repository_travels(tmp_path: Path, repository: Path) -> None:
    commit(repository, "second", c="sea\n")
    plain_git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    plain_git(tmp_path / "shallow", "symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    plain_git(tmp_path / "shallow", "remote", "remove", "origin")
    sides = sides_in(tmp_path, tmp_path / "shallow")
    sides.trip.out()
    done = commit(sides.there, "there", d="dee\n")
    sides.trip.back()
    assert plain_git(sides.here, "rev-parse", "HEAD") == done
    assert plain_git(sides.here, "fsck", "--no-dangling") == ""


def test_a_merge_in_progress_and_a_repository_without_commits_travel(
    tmp_path: Path, sides: Sides
) -> None:
    plain_git(sides.here, "checkout", "-q", "-b", "other")
    commit(sides.here, "other", a="other\n")
    plain_git(sides.here, "checkout", "-q", "main")
    commit(sides.here, "main", a="main\n")
    plain_git(sides.here, "merge", "other", check=False)
    sides.trip.out()
    assert contents(sides.there) == contents(sides.here)
    empty = tmp_path / "empty"
    empty.mkdir()
    plain_git(empty, "init", "-q", "-b", "main")
    (empty / "f").write_text("no commit yet")
    young = Sides(empty, tmp_path / "young" / "copy", tmp_path / "young.json", Near())
    young.trip.out()
    first = commit(young.there, "first")
    young.trip.back()
    assert (plain_git(empty, "rev-parse", "HEAD"), status(empty)) == (first, [])


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "x/../../y", ".git/config"])
def test_a_link_that_points_outside_fails_the_restore(sides: Sides, target: str) -> None:
    """W6: hostile content changes nothing here, and is kept under a ref."""
    sides.trip.out()
    (sides.there / "innocent").symlink_to(target)
    before = contents(sides.here)
    with pytest.raises(WorkspaceError, match="points outside"):
        sides.trip.back()
    assert contents(sides.here) == before
    assert plain_git(sides.here, "rev-parse", sides.trip.theirs_ref)


def test_a_path_through_a_link_is_not_written(sides: Sides, tmp_path: Path) -> None:
    """W6: whatever stands there now, nothing outside is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    sides.trip.out()
    (sides.there / "dir").mkdir()
    (sides.there / "dir" / "f").write_text("hostile")
    (sides.here / "dir").symlink_to(outside)
    with pytest.raises(RestoreConflict):
        sides.trip.back()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".g\u200cit", ".git "])
def test_a_path_inside_a_repository_s_own_files_fails_the_restore(sides: Sides, name: str) -> None:
    """W6: by git's own check of objects, or by ours."""
    sides.trip.out()
    blob = plain_git(sides.there, "hash-object", "-w", "a")
    inner = Git(sides.there).text("mktree", stdin=f"100644 blob {blob}\tconfig\n".encode())
    listing = f"100644 blob {blob}\ta\n040000 tree {inner}\t{name}\n".encode()
    tree = Git(sides.there).text("mktree", stdin=listing)
    head = plain_git(sides.there, "commit-tree", tree, "-p", "HEAD", "-m", "forged")
    plain_git(sides.there, "update-ref", "HEAD", head)
    config = (sides.here / ".git" / "config").read_text()
    with pytest.raises(WorkspaceError):
        sides.trip.back()
    assert (sides.here / ".git" / "config").read_text() == config
    assert plain_git(sides.here, "rev-parse", "main") != head


def test_a_forged_state_is_refused(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """W6: what the other machine says is checked, not believed."""
    sides.trip.out()
    told: dict[str, Any] = {"snapshot": plain_git(sides.there, "rev-parse", "HEAD"), "refs": {}}
    monkeypatch.setattr(outpost.Copy, "send", lambda *_: told)
    with pytest.raises(WorkspaceError, match="not a snapshot"):
        sides.trip.back()


WORDS = st.integers(0, 10**6)
NAMES = ("a", "b", "c", "dir/d", "dir/e", "new\nline")
ACTIONS = ("write", "insert", "append", "delete", "stage", "commit", "link", "program", "rm")


def change(directory: Path, rng: random.Random, mark: str) -> None:
    """One random thing that somebody does; every line that is written is unique."""
    action, path = rng.choice(ACTIONS), directory / rng.choice(NAMES)
    line = f"{mark}{rng.random()}\n"
    if action in ("stage", "commit"):
        plain_git(directory, "add", "-A")
        if action == "commit":
            plain_git(directory, "commit", "-q", "--allow-empty", "-m", mark)
        return
    if action in ("delete", "rm"):
        if action == "rm":
            plain_git(directory, "rm", "-q", "--cached", str(path), check=False)
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.is_file() else ""
    path.unlink(missing_ok=True)
    if action == "link":
        path.symlink_to(f"{mark}{rng.random()}")
        return
    path.write_text({"insert": line + text, "append": text + line}.get(action, line))
    path.chmod(0o755 if action == "program" else 0o644)


def check_union(base: Any, ours: Any, theirs: Any, now: Any) -> None:
    """Every path as whoever changed it left it; changed by both, every new line exactly once."""
    for path in {*base, *ours, *theirs, *now}:
        was, mine, yours, is_ = (side.get(path) for side in (base, ours, theirs, now))
        if yours in (was, mine):
            assert is_ == mine, path
        elif mine == was:
            assert is_ == yours, path
        else:
            old = set(was[1].splitlines()) if was else set()
            added = {*mine[1].splitlines(), *yours[1].splitlines()} - old
            lines = is_[1].splitlines()
            assert [lines.count(line) for line in sorted(added)] == [1] * len(added), path


class Crashes:
    """Kills the process at one of the points that it passes, once."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, _point: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


def surely(sides: Sides, at: int, verb: Callable[[Trip], object]) -> None:
    """Do something that is killed at one point, then once more."""
    crashes = Crashes(at)
    sides.step = crashes
    assert isinstance(sides.far, Near)
    sides.far.reached = crashes
    try:
        verb(sides.trip)
    except Crash:
        verb(sides.trip)
    finally:
        sides.step = sides.far.reached = lambda _point: None


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=WORDS, crash_out=st.integers(1, 14), crash_back=st.integers(1, 14))
def test_no_work_is_lost_or_doubled_wherever_it_is_killed(
    seed: int, crash_out: int, crash_back: int
) -> None:
    """W6, W8: random repositories, random edits on both sides, random crash points."""
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        here.mkdir()
        plain_git(here, "init", "-q", "-b", "main")
        commit(here, "first", a="a1\na2\na3\na4\na5\n", b="b1\nb2\n")
        sides = sides_in(Path(folder), here)
        for _ in range(2):
            for _ in range(rng.randrange(5)):
                change(here, rng, "before ")
            surely(sides, crash_out, Trip.out)
            base = contents(here)
            assert contents(sides.there) == base
            assert status(sides.there) == status(here)
            for directory, mark in ((sides.there, "theirs "), (here, "ours ")):
                for _ in range(rng.randrange(5)):
                    change(directory, rng, mark)
            go_back(sides, crash_back, base)
            assert plain_git(here, "fsck", "--strict", "--no-dangling") == ""
            assert plain_git(here, "remote") == ""


def go_back(sides: Sides, crash_at: int, base: Any) -> None:
    ours, theirs = contents(sides.here), contents(sides.there)
    head = plain_git(sides.there, "rev-parse", "HEAD")
    try:
        surely(sides, crash_at, Trip.back)
    except RestoreConflict:
        assert contents(sides.here) == ours
        tree = f"{sides.trip.theirs_ref}^{{tree}}"
        names = plain_git(sides.here, "ls-tree", "-r", "-z", "--name-only", tree)
        assert {name for name in names.split("\0") if name} == set(theirs)
        sides.trip.resolve("theirs")
    else:
        check_union(base, ours, theirs, contents(sides.here))
    plain_git(sides.here, "merge-base", "--is-ancestor", head, "HEAD")
