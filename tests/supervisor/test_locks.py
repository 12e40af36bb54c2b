"""Locks that can be asked about without being taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from binderclip.supervisor import locks


def test_a_taken_lock_is_refused_and_seen(tmp_path: Path) -> None:
    """D1: ownership is by lock."""
    fd = locks.take(tmp_path / "lock")
    assert fd is not None
    assert locks.take(tmp_path / "lock") is None
    assert locks.held(tmp_path / "lock")
    locks.release(fd)
    assert not locks.held(tmp_path / "lock")


def test_a_missing_lock_is_free_and_asking_does_not_make_it(tmp_path: Path) -> None:
    """D1: asking changes nothing."""
    assert not locks.held(tmp_path / "lock")
    assert not (tmp_path / "lock").exists()


def test_asking_takes_nothing(tmp_path: Path) -> None:
    """D1: with somebody asking all the time, no honest taker is refused."""
    path = tmp_path / "lock"
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from binderclip.supervisor import locks\n"
        "print('asking', flush=True)\n"
        "while True: locks.held(sys.argv[1])\n"
    )
    source = Path(locks.__file__).parents[2]
    command = [sys.executable, "-I", "-S", "-c", code, str(path), str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as asker:
        try:
            assert asker.stdout is not None and asker.stdout.readline() == b"asking\n"
            for _ in range(500):
                fd = locks.take(path)
                assert fd is not None
                locks.release(fd)
        finally:
            asker.kill()


def test_closing_another_descriptor_of_the_file_keeps_the_lock(tmp_path: Path) -> None:
    """D1: unlike POSIX locks, which any close of the file drops."""
    fd = locks.take(tmp_path / "lock")
    assert fd is not None
    os.close(os.open(tmp_path / "lock", os.O_RDWR))
    assert locks.held(tmp_path / "lock")
    locks.release(fd)


def test_a_program_started_meanwhile_does_not_inherit_the_lock(tmp_path: Path) -> None:
    """D1: close-on-exec, so the lock dies with its owner."""
    fd = locks.take(tmp_path / "lock")
    assert fd is not None
    with subprocess.Popen(["sleep", "60"], close_fds=False) as sleeper:
        locks.release(fd)
        assert not locks.held(tmp_path / "lock")
        sleeper.kill()


def test_where_locks_cannot_be_queried_flock_answers_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D1: weaker, but the same answers."""
    monkeypatch.setattr(locks, "_SETLK", None)
    monkeypatch.setattr(locks, "_GETLK", None)
    monkeypatch.setattr(locks, "_PROBE_PATIENCE_SEC", 0.05)
    fd = locks.take(tmp_path / "lock")
    assert fd is not None
    assert locks.take(tmp_path / "lock") is None
    assert locks.held(tmp_path / "lock")
    locks.release(fd)
    assert not locks.held(tmp_path / "lock")
