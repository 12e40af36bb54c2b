"""Round trips that are really killed, and a machine whose disk is full."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from binderclip.contract.errors import WorkspaceError
from binderclip.workspaces.far import Far, start_locally
from tests.workspaces.conftest import commit, plain_git, status
from tests.workspaces.test_cleaning import contents
from tests.workspaces.test_trip import NAME, Sides, sides_in

DOOMED = """
import os, signal, sys
from pathlib import Path
from binderclip.workspaces.far import Far
from binderclip.workspaces.git import Git
from binderclip.workspaces.trip import Trip
name, verb, at, here, there, journal, *start = sys.argv[1:]
def step(point):
    if point == at:
        os.kill(os.getpid(), signal.SIGKILL)
trip = Trip(Git(here), name, Far(start), there, Path(journal), step=step)
getattr(trip, verb)()
"""


@pytest.fixture
def sides(tmp_path: Path, repository: Path) -> Sides:
    return sides_in(tmp_path, repository, Far(start_locally(sys.executable, tmp_path)))


def killed(sides: Sides, tmp_path: Path, verb: str, at: str) -> None:
    """Go one way in a process that is killed with SIGKILL at one point."""
    places = (str(sides.here), str(sides.there), str(sides.journal))
    words = (NAME, verb, at, *places, *start_locally(sys.executable, tmp_path))
    done = subprocess.run([sys.executable, "-c", DOOMED, *words], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize("at", ["taken", "packed", "delivered"])
def test_a_way_out_that_was_killed_is_gone_again(sides: Sides, tmp_path: Path, at: str) -> None:
    """W6: kill -9 at each step; the copy ends up right and nothing comes back by mistake."""
    (sides.here / "a").write_text("dirty\n")
    killed(sides, tmp_path, "out", at)
    (sides.here / "a").write_text("dirtier\n")
    sides.trip.out()
    assert contents(sides.there) == contents(sides.here)
    assert (sides.here / "a").read_text() == "dirtier\n"


@pytest.mark.parametrize(
    "at", ["fetched", "saved", "planned", "files", "directories", "index", "head", "agreed"]
)
def test_a_restore_that_was_killed_goes_on(sides: Sides, tmp_path: Path, at: str) -> None:
    """W6: an interrupted restore resumes, and ends as if nothing had happened."""
    sides.trip.out()
    done = commit(sides.there, "there", a="one\nTWO\nthree\n", c="sea\n")
    (sides.there / "b").unlink()
    (sides.here / "mine").write_text("mine")
    killed(sides, tmp_path, "back", at)
    sides.trip.back()
    assert plain_git(sides.here, "rev-parse", "HEAD") == done
    assert status(sides.here) == [" D b", "?? mine"]
    assert not sides.journal.exists()
    assert plain_git(sides.here, "fsck", "--strict", "--no-dangling") == ""


def cramped(tmp_path: Path) -> Far:
    """An outpost on a disk that takes only small files."""
    shell = 'trap "" XFSZ; ulimit -f 200; exec "$@"'
    return Far(["bash", "-c", shell, "outpost", *start_locally(sys.executable, tmp_path)])


def test_a_full_disk_over_there_fails_the_way_out_and_harms_nothing(
    sides: Sides, tmp_path: Path
) -> None:
    """W6: told as an error; done again when there is space."""
    (sides.here / "big").write_bytes(random.Random(1).randbytes(600_000))
    before, roomy = contents(sides.here), sides.far
    sides.far = cramped(tmp_path)
    with pytest.raises(WorkspaceError):
        sides.trip.out()
    assert contents(sides.here) == before
    sides.far = roomy
    sides.trip.out()
    assert contents(sides.there) == before


def test_a_full_disk_over_there_fails_the_way_back_and_loses_nothing(
    sides: Sides, tmp_path: Path
) -> None:
    """W6: a failed restore can be tried again."""
    sides.trip.out()
    (sides.there / "big").write_bytes(random.Random(1).randbytes(600_000))
    roomy, sides.far = sides.far, cramped(tmp_path)
    with pytest.raises(WorkspaceError):
        sides.trip.back()
    sides.far = roomy
    sides.trip.back()
    assert contents(sides.here) == contents(sides.there)
