"""Where a directory stood in its repository when a run began, read without starting git.

Reading is all it does: a run starts before anything slow is imported or asked.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from binderclip.contract.wire import Wire

_COMMIT = re.compile("[0-9a-f]{40,64}")
_CLOCK_SLACK_SEC = 0.02
"""File systems stamp by a clock that may lag a little behind."""


class Standing(Wire, frozen=True, kw_only=True):
    """A directory before a run: what its later state is compared with."""

    at: float
    """Files that changed later were changed since."""
    top: str | None = None
    """The root of the working directory; None if it is in no repository."""
    head: str | None = None
    """The commit that it was on; None where there was none yet."""
    tree: str | None = None
    """The exact state of the files, where a snapshot was taken."""
    reason: str | None = None
    """Why nothing can be compared."""


def standing(directory: str) -> Standing:
    """Where a directory stands now; never raises for what it finds there."""
    at = time.time() - _CLOCK_SLACK_SEC
    try:
        found = _repository(Path(directory).resolve())
        if found is None:
            reason = f"{directory} is in no git repository, so there is nothing to compare with."
            return Standing(at=at, reason=reason)
        top, own = found
        head = _head(own)
        if head is not None and not _COMMIT.fullmatch(head):
            raise ValueError("its HEAD names no commit")
        return Standing(at=at, top=str(top), head=head)
    except (OSError, ValueError) as problem:
        return Standing(at=at, reason=f"The repository of {directory} cannot be read: {problem}")


def _repository(directory: Path) -> tuple[Path, Path] | None:
    """The working directory's root and its own git directory."""
    for folder in (directory, *directory.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return folder, mark
        if mark.is_file():
            named = mark.read_text("utf-8").removeprefix("gitdir:").strip()
            return folder, (folder / named).resolve()
    return None


def _head(own: Path) -> str | None:
    said = (own / "HEAD").read_text("utf-8").strip()
    if not said.startswith("ref:"):
        return said
    shared = own / "commondir"
    common = (own / shared.read_text("utf-8").strip()).resolve() if shared.exists() else own
    if (common / "reftable").exists():
        raise ValueError("its refs are kept in a table")
    name = said.removeprefix("ref:").strip()
    loose = common / name
    if loose.is_file():
        return loose.read_text("utf-8").strip()
    return _packed(common / "packed-refs", name)


def _packed(file: Path, name: str) -> str | None:
    if not file.exists():
        return None
    for line in file.read_text("utf-8", "replace").splitlines():
        id, _, named = line.partition(" ")
        if named == name:
            return id
    return None
