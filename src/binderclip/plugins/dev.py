"""Watching an author's folder: a saved file is noticed within half a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LOOK_SECONDS = 0.3
_IGNORED = frozenset(("node_modules", ".git", "__pycache__", ".venv"))
State = dict[str, tuple[int, int]]


def state_of(path: Path) -> State:
    """Size and time of change of every file that belongs to an adapter."""
    files = [path] if path.is_file() else _files(path)
    found: State = {}
    for file in files:
        try:
            facts = file.stat()
        except OSError:
            continue
        found[str(file)] = (facts.st_mtime_ns, facts.st_size)
    return found


def watch_folder(
    path: Path, seen: State, changed: Callable[[], None], *, once: bool = False
) -> None:
    """Call `changed` when files are no longer as they were `seen`, until interrupted.

    `once` returns after the first change.
    """
    while True:
        time.sleep(LOOK_SECONDS)
        now = state_of(path)
        if now == seen:
            continue
        seen = now
        changed()
        if once:
            return


def _files(folder: Path) -> list[Path]:
    found = []
    for path in folder.iterdir():
        if path.name in _IGNORED or path.is_symlink():
            continue
        found.extend(_files(path) if path.is_dir() else [path])
    return found
