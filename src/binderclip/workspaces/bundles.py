"""Commits on their way between two repositories: thin bundles, checked where they arrive (W6).

It also runs on remote hosts: Python 3.9, standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from binderclip.workspaces.git import Git, GitFailed

_TREES = 64


def create(git: Git, path: Path, refs: Iterable[str], have: Iterable[str]) -> bool:
    """Write what the refs reach and `have` does not; False if that is nothing."""
    known = _present(git, have)
    if not known:
        # Nothing to be a delta of; looking for one among all files takes most of the time.
        git = git.with_settings("pack.window=0")
    wanted = list(refs)
    if not git("rev-list", "--max-count=1", *wanted, "--not", *known):
        return False
    # Git leaves out the history of what is known; that its files are known must be said too.
    files = [f"^{id}^{{tree}}" for id in known[:_TREES]]
    lines = [*wanted, *(f"^{id}" for id in known), *files]
    try:
        git("bundle", "create", "--quiet", str(path), "--stdin", stdin="\n".join(lines).encode())
    except GitFailed as problem:
        if "empty bundle" in problem.said:
            return False
        raise
    return True


def fetch(git: Git, path: Path, refs: Mapping[str, str]) -> None:
    """Take the objects in, each one checked, and set refs (from, to) that the bundle has."""
    specs = [f"+{source}:{target}" for source, target in refs.items()]
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    git("fetch", *options, "--no-recurse-submodules", str(path), *specs)


def _present(git: Git, ids: Iterable[str]) -> list[str]:
    asked = sorted(set(ids))
    if not asked:
        return []
    said = git("cat-file", "--batch-check", stdin="\n".join(asked).encode() + b"\n").decode()
    answers = said.splitlines()
    return [line.split()[0] for line in answers if line.split()[1:2] == ["commit"]]
