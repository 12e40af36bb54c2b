"""Three-way merge of working directories: commits, files and index, in the object database only.

Nothing is overwritten: where both sides changed the same thing, the result is a conflict.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from binderclip.workspaces.git import Git, person
from binderclip.workspaces.snapshot import Snapshot, commit_tree, tree_of_nothing

Choice = Literal["ours", "theirs", "markers"]
"""How a person settles a conflict: one side's version, or both with conflict markers."""


@dataclass(frozen=True)
class Merged:
    """The state that holds the work of both sides, unless `conflicts` names paths."""

    head: str | None
    branch: str | None
    tree: str
    index: str
    conflicts: tuple[str, ...] = ()


def merge(
    git: Git, base: Snapshot, ours: Snapshot, theirs: Snapshot, choice: Choice | None = None
) -> Merged:
    """What both sides made of the same beginning."""
    head, wrong = merge_heads(git, base.head, ours.head, theirs.head, choice)
    tree, bad = three_way(git, (base.tree, ours.tree, theirs.tree), choice)
    conflicts = () if choice else tuple(sorted({*wrong, *bad}))
    staged = _index(git, (base, ours, theirs), head)
    return Merged(head, _branch(base, ours, theirs), tree, staged, conflicts)


def merge_heads(
    git: Git, base: str | None, ours: str | None, theirs: str | None, choice: Choice | None = None
) -> tuple[str | None, tuple[str, ...]]:
    """The commit that has both histories, and the paths in conflict."""
    if theirs is None or theirs in (ours, base) or (ours and _reaches(git, ours, theirs)):
        return ours, ()
    # Where ours stood still, theirs may also have rewritten history: that was their intent.
    if ours is None or ours == base or _reaches(git, theirs, ours):
        return theirs, ()
    tree, conflicts = _merge_commits(git, ours, theirs, choice)
    if conflicts and choice is None:
        return ours, conflicts
    name, email = person(git.directory)
    told = f"Merge what a run did elsewhere\n\nTheirs: {theirs}\n"
    return commit_tree(git, tree, [ours, theirs], told, name=name, email=email), conflicts


def three_way(
    git: Git, trees: tuple[str, str, str], choice: Choice | None = None
) -> tuple[str, tuple[str, ...]]:
    """Merge two trees that came from a third: base, ours, theirs."""
    base, ours, theirs = trees
    if ours == theirs or theirs == base:
        return ours, ()
    if ours == base:
        return theirs, ()
    root = commit_tree(git, base, [])
    sides = [commit_tree(git, tree, [root]) for tree in (ours, theirs)]
    return _merge_commits(git, sides[0], sides[1], choice)


def _merge_commits(
    git: Git, ours: str, theirs: str, choice: Choice | None
) -> tuple[str, tuple[str, ...]]:
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--allow-unrelated-histories")
    parts = git(*words, ours, theirs, ok=(0, 1)).split(b"\0")
    tree = parts[0].decode()
    end = parts.index(b"", 1)
    conflicts = tuple(sorted({os.fsdecode(name) for name in parts[1:end]}))
    if conflicts and choice in ("ours", "theirs"):
        tree = _choose(git, tree, conflicts, ours if choice == "ours" else theirs)
    return tree, conflicts


def _choose(git: Git, tree: str, conflicts: tuple[str, ...], side: str) -> str:
    """The merged tree with one side's version of every path in conflict."""
    gone = "0" * len(tree)
    lines = []
    for path in conflicts:
        found = git("ls-tree", "-z", side, "--", f":(literal){path}").split(b"\0")[0]
        mode, _, rest = found.partition(b" ")
        id = rest.split(b" ")[1].partition(b"\t")[0].decode() if found else gone
        lines.append(f"{mode.decode() or 0} {id}\t{path}")
    with TemporaryDirectory(prefix="binderclip-") as folder:
        own = git.with_index(str(Path(folder) / "index"))
        own("read-tree", tree)
        text = b"".join(os.fsencode(line) + b"\0" for line in lines)
        own("update-index", "-z", "--index-info", stdin=text)
        return own.text("write-tree")


def _reaches(git: Git, descendant: str, ancestor: str) -> bool:
    return git.yes("merge-base", "--is-ancestor", ancestor, descendant)


def _index(git: Git, sides: tuple[Snapshot, Snapshot, Snapshot], head: str | None) -> str:
    """What is staged on either side; with a conflict in it, nothing is."""
    trees = [side.index for side in sides]
    if all(trees):
        tree, conflicts = three_way(git, tuple(trees))  # type: ignore[arg-type]
        if not conflicts:
            return tree
    return git.text("rev-parse", f"{head}^{{tree}}") if head else tree_of_nothing(git)


def _branch(base: Snapshot, ours: Snapshot, theirs: Snapshot) -> str | None:
    """The branch to be on: theirs if only they went to another one."""
    return theirs.branch if ours.branch == base.branch else ours.branch
