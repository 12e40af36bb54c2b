"""One at a time: whoever merges into a directory, restores or removes it holds its lock meanwhile.

A lock ends with the process that holds it, so nobody waits for the dead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binderclip.contract.errors import Conflict
from binderclip.supervisor import locks
from binderclip.workspaces.git import Git

LOCK = "lock"
_GIT_LOCK = "binderclip.lock"
PATIENCE_SEC = 20.0
_LOOK_SEC = 0.05


@contextmanager
def held(path: Path, name: str, doing: str) -> Iterator[None]:
    """Hold a lock while the block lasts; Conflict tells who has `name` if that takes too long."""
    deadline = time.monotonic() + PATIENCE_SEC
    while (fd := locks.take(path)) is None:
        if time.monotonic() >= deadline:
            raise Conflict(
                f"{name} is in use: {_holder(path)}.",
                hint="Try again when that is over.",
                code="workspace_busy",
            )
        time.sleep(_LOOK_SEC)
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()} is {doing}\n".encode(), 0)
        yield
    finally:
        locks.release(fd)


@contextmanager
def directory_held(git: Git, doing: str) -> Iterator[None]:
    """Hold a working directory, whichever workspace the change is for."""
    path = git.text("rev-parse", "--path-format=absolute", "--git-path", _GIT_LOCK)
    with held(Path(path), git.directory, doing):
        yield


def _holder(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip() or "somebody holds it"
    except OSError:
        return "somebody holds it"
