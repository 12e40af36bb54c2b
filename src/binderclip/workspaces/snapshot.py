"""A working directory as git objects: its commit, its index, its files as they are on the disk.

A snapshot never changes the directory, its index or its refs; equal states give equal ids.
It also runs on remote hosts: Python 3.9, standard library.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binderclip.workspaces.disk import Found, gather
from binderclip.workspaces.git import EMAIL, NAME, Git, GitFailed, identity

_EPOCH = "@1 +0000"
_TITLE = "A working directory, kept by binderclip"
_FACTS = "facts.json"
_LISTED = re.compile(
    rb"([A-Za-z?]) (\d+) ([0-9a-f]+) (\d)\t([^\0]+)\0"
    rb"(?:  ctime: \d+:(\d+)\n(?:  .*\n)*?  .*flags: ([0-9a-f]+)\n)?"
)
"""Tag, mode, id, stage and name of an entry; the fraction of its change time, and its flags."""
_FILES = (b"100644", b"100755", b"120000")
_INTENDED = 1 << 29
"""Git's flag of a path that is only announced; its entry has no content yet."""


class NoSnapshot(Exception):
    """A commit that was said to be a snapshot is none."""


@dataclass(frozen=True)
class Snapshot:
    """A state of a working directory; `id` is a commit that reaches all of it."""

    id: str
    tree: str
    """The files on the disk, ignored ones left out unless they were asked for."""
    head: str | None
    branch: str | None
    """The full name of the ref that HEAD points to; None when it is detached."""
    index: str | None
    """The tree of the index; None while a merge is unfinished in it."""
    empty: tuple[str, ...] = ()
    """Directories with nothing in them."""
    modes: dict[str, int] = field(default_factory=dict)
    """Permissions of changed and untracked files where they are not the usual ones."""
    nested: tuple[str, ...] = ()
    """Repositories inside: their files are here, their history is not."""
    special: tuple[str, ...] = ()
    """Sockets, pipes and devices, which have no content to keep."""


def take(git: Git, *, ignored: bool = False, paths: Sequence[str] = ()) -> Snapshot:
    """The state of the working directory now.

    `ignored` takes every ignored file along, `paths` only what lies there.
    """
    top = Path(git.text("rev-parse", "--show-toplevel"))
    git = git if git.directory == str(top) else Git(top)
    with _copied_index(git) as own:
        unmerged = _see_everything(own, top)
        index = None if unmerged else own.text("write-tree")
        found = gather(own, top, ignored=ignored, paths=paths, index=index)
        tree = index if index and not found.differs else _written(own, found)
    return _commit(git, tree, index, found)


def read(git: Git, id: str) -> Snapshot:
    """A snapshot by its id, which may come from another machine: every fact is checked."""
    try:
        parents = git.text("rev-list", "--parents", "--max-count=1", id, "--").split()[1:]
        facts = json.loads(git("cat-file", "blob", f"{parents[-1]}:{_FACTS}"))
        trees = {git.text("rev-parse", f"{parent}^{{tree}}") for parent in parents}
        return Snapshot(
            id=id,
            tree=git.text("rev-parse", "--verify", f"{id}^{{tree}}"),
            head=_one_of(facts["head"], parents),
            branch=_ref(facts["branch"]),
            index=_one_of(facts["index"], trees),
            empty=tuple(map(str, facts["empty"])),
            modes={str(path): int(mode) & 0o777 for path, mode in facts["modes"].items()},
            nested=tuple(map(str, facts["nested"])),
            special=tuple(map(str, facts["special"])),
        )
    except (GitFailed, IndexError, KeyError, TypeError, ValueError, AttributeError) as problem:
        raise NoSnapshot(f"{id} is not a snapshot of a working directory.") from problem


def tree_of_nothing(git: Git) -> str:
    """The id of the empty tree, as long as every id of this repository."""
    return git.text("mktree", stdin=b"")


def _one_of(value: Any, known: Container[str]) -> str | None:
    if value is None:
        return None
    if str(value) not in known:
        raise ValueError(value)
    return str(value)


def _ref(value: Any) -> str | None:
    if value is not None and not str(value).startswith("refs/heads/"):
        raise ValueError(value)
    return None if value is None else str(value)


def _commit(git: Git, tree: str, index: str | None, found: Found) -> Snapshot:
    """Tie everything together: a commit of the files, whose parents reach the rest."""
    head = git.resolve("HEAD")
    branch = git.maybe("symbolic-ref", "--quiet", "HEAD")
    facts = {
        "head": head,
        "branch": branch,
        "index": index,
        "empty": sorted(found.empty),
        "modes": dict(sorted(found.modes.items())),
        "nested": sorted(found.nested),
        "special": sorted(found.special),
    }
    parents = [] if head is None else [head]
    if index is not None:
        parents.append(commit_tree(git, index, parents))
    blob = git.text("hash-object", "-w", "--stdin", stdin=json.dumps(facts).encode())
    side = git.text("mktree", stdin=f"100644 blob {blob}\t{_FACTS}\n".encode())
    parents.append(commit_tree(git, side, []))
    id = commit_tree(git, tree, parents)
    return Snapshot(id=id, tree=tree, **_frozen(facts))


def _frozen(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
    }


def commit_tree(
    git: Git, tree: str, parents: Sequence[str], message: str = _TITLE, **who: str
) -> str:
    """A commit of a tree; without `name` and `email` it is ours, and the same at any time."""
    env = identity(**who) if who else identity(NAME, EMAIL, _EPOCH)
    words = [word for parent in parents for word in ("-p", parent)]
    said = git("commit-tree", tree, *words, "-F", "-", stdin=message.encode(), env=env)
    return said.decode().strip()


def copy_index(git: Git, copy: Path) -> None:
    """Copy the index of a repository, if it has one, as old as it is."""
    own = Path(git.text("rev-parse", "--path-format=absolute", "--git-path", "index"))
    if own.exists():
        found = own.stat()
        shutil.copyfile(own, copy)
        # Git doubts a file that is not older than its index; a younger copy would end that.
        os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))


@contextmanager
def _copied_index(git: Git) -> Iterator[Git]:
    with tempfile.TemporaryDirectory(prefix="binderclip-") as folder:
        copy = Path(folder) / "index"
        copy_index(git, copy)
        yield git.with_index(str(copy))


def _written(own: Git, found: Found) -> str:
    width = len(tree_of_nothing(own))
    own("update-index", "-z", "--index-info", stdin=found.index_info(width))
    return own.text("write-tree")


def _see_everything(own: Git, top: Path) -> bool:
    """Take back, in the copy, what tells git not to look; whether a merge is unfinished in it."""
    listed = _LISTED.findall(own("ls-files", "-v", "--stage", "--debug", "-z"))
    marked = [(tag, name) for tag, _, _, _, name, _, _ in listed if tag != b"H"]
    assumed = [name for tag, name in marked if tag.islower()]
    skipped = [name for tag, name in marked if tag in b"Ss"]
    skipped = [name for name in skipped if os.path.lexists(top / os.fsdecode(name))]
    for flag, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if names:
            own("update-index", flag, "-z", "--stdin", stdin=b"\0".join(names) + b"\0")
    doubtful = list(_doubtful(listed, top))
    if doubtful:
        own("update-index", "-z", "--index-info", stdin=b"\0".join(doubtful) + b"\0")
    own("update-index", "-q", "--refresh", ok=(0, 1))
    return any(stage != b"0" for _, _, _, stage, _, _, _ in listed)


def _doubtful(listed: list[tuple[bytes, ...]], top: Path) -> Iterator[bytes]:
    """Entries whose file was touched since git looked, by a clock finer than git's seconds."""
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _, mode, id, stage, name, part, flags in listed:
            if stage != b"0" or mode not in _FILES or part in (b"", b"0"):
                continue
            try:
                touched = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
            except (FileNotFoundError, NotADirectoryError):
                continue
            if touched % 10**9 != int(part) and not int(flags, 16) & _INTENDED:
                yield b"%s %s 0\t%s" % (mode, id, name)
    finally:
        os.close(folder)
