"""The cable is pulled before, during and after a run and its restore; nothing is lost (W6).

The other machine is a network namespace: packets vanish without a word, as when a network fails.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from binderclip.workspaces.far import Unreachable
from binderclip.workspaces.git import Git
from binderclip.workspaces.ssh import Ssh
from binderclip.workspaces.trip import Trip
from tests.supervisor.attempts import eventually
from tests.workspaces.conftest import commit, plain_git, status
from tests.workspaces.network import Cable, cable
from tests.workspaces.sshd import running
from tests.workspaces.test_cleaning import contents
from tests.workspaces.test_ssh import WAITING, exit_of, relayed, remote_run
from tests.workspaces.test_trip import NAME

pytestmark = pytest.mark.slow
BIG = 48 << 20


@pytest.fixture
def link() -> Iterator[Cable]:
    with cable() as laid:
        yield laid


@pytest.fixture
def ssh(link: Cable, tmp_path: Path) -> Iterator[Ssh]:
    with running(link.host, link.inside) as sshd:
        yield sshd.target(tmp_path / "there" / "root", python=sys.executable)
        link.plug()


@pytest.fixture
def copy(ssh: Ssh) -> Path:
    return Path(ssh.root) / "copies" / NAME / "project"


def trip(ssh: Ssh, repository: Path, tmp_path: Path) -> Trip:
    """The way there, connected anew."""
    directory = f"{ssh.root}/copies/{NAME}/project"
    return Trip(Git(repository), NAME, ssh.far(), directory, tmp_path / "restore.json")


def big(path: Path) -> None:
    path.write_bytes(random.Random(str(path)).randbytes(BIG))


def test_before_the_run_nothing_has_left_and_it_goes_when_the_network_is_back(
    link: Cable, ssh: Ssh, copy: Path, repository: Path, tmp_path: Path
) -> None:
    (repository / "dirty").write_text("dirty")
    before = contents(repository)
    link.pull()
    with pytest.raises(Unreachable):
        trip(ssh, repository, tmp_path)
    assert contents(repository) == before
    link.plug()
    trip(ssh, repository, tmp_path).out()
    assert contents(copy) == before


def test_on_the_way_out_the_copy_is_finished_by_the_next_attempt(
    link: Cable, ssh: Ssh, copy: Path, repository: Path, tmp_path: Path
) -> None:
    big(repository / "big")
    way = trip(ssh, repository, tmp_path)
    with link.pulled_after(BIG // 8), pytest.raises(Unreachable):
        way.out()
    link.plug()
    trip(ssh, repository, tmp_path).out()
    assert contents(copy) == contents(repository)
    assert status(copy) == status(repository) == ["?? big"]


def test_during_the_run_the_agent_works_on_and_is_heard_when_the_network_is_back(
    link: Cable, ssh: Ssh, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir(exist_ok=True)
    run = remote_run(ssh, there, WAITING)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        link.pull()
        (there / "go").touch()
        eventually(lambda: exit_of(run) is not None, 60)
        link.plug()
        out, _ = process.communicate(timeout=100)
    assert (out, process.returncode) == (b"done\n", 0)


def test_after_the_run_its_work_waits_over_there(
    link: Cable, ssh: Ssh, copy: Path, repository: Path, tmp_path: Path
) -> None:
    way = trip(ssh, repository, tmp_path)
    way.out()
    done = commit(copy, "over there", c="sea\n")
    (copy / "loose").write_text("loose")
    before = contents(repository)
    link.pull()
    with pytest.raises(Unreachable):
        way.back()
    assert contents(repository) == before
    link.plug()
    trip(ssh, repository, tmp_path).back()
    assert plain_git(repository, "rev-parse", "HEAD") == done
    assert contents(repository) == contents(copy)


def test_during_the_restore_ours_stays_as_it_is_until_all_of_theirs_is_here(
    link: Cable, ssh: Ssh, copy: Path, repository: Path, tmp_path: Path
) -> None:
    way = trip(ssh, repository, tmp_path)
    way.out()
    big(copy / "big")
    (repository / "ours").write_text("made meanwhile")
    before = contents(repository)
    with link.pulled_after(BIG // 8), pytest.raises(Unreachable):
        way.back()
    assert contents(repository) == before
    link.plug()
    trip(ssh, repository, tmp_path).back()
    assert contents(repository) == {**contents(copy), "ours": ("file", b"made meanwhile")}
    assert status(repository) == ["?? big", "?? ours"]
    assert plain_git(repository, "fsck", "--strict", "--no-dangling") == ""
