"""Repositories as people have them, made with plain git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.workspaces.sshd import Sshd, running

WHO = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def plain_git(directory: Path, *words: str, check: bool = True) -> str:
    """Git as a person runs it, without any of our care."""
    done = subprocess.run(
        ["git", "-C", str(directory), *words],
        env={**os.environ, **WHO},
        capture_output=True,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(os.fsdecode(done.stderr))
    return os.fsdecode(done.stdout).rstrip("\n")


def commit(directory: Path, message: str = "more", **files: str) -> str:
    """Write files, commit everything, tell the commit."""
    for name, text in files.items():
        (directory / name).write_text(text)
    plain_git(directory, "add", "-A")
    plain_git(directory, "commit", "-q", "--allow-empty", "-m", message)
    return plain_git(directory, "rev-parse", "HEAD")


def status(directory: Path) -> list[str]:
    """What `git status` shows a person."""
    out = plain_git(directory, "status", "--porcelain", "-z", "--untracked-files=all")
    return sorted(line for line in out.split("\0") if line)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of three files on `main`."""
    directory = tmp_path / "project"
    directory.mkdir()
    plain_git(directory, "init", "-q", "-b", "main")
    (directory / ".gitignore").write_text("*.log\nbuild/\n")
    commit(directory, "first", a="one\ntwo\nthree\n", b="bee\n")
    return directory


@pytest.fixture
def make_repository(tmp_path: Path) -> Callable[[str], Path]:
    """Makes further repositories by name."""

    def make(name: str) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        plain_git(directory, "init", "-q", "-b", "main")
        commit(directory, "first", a="one\n")
        return directory

    return make


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    """A real sshd on loopback for one test."""
    with running() as daemon:
        yield daemon
