"""What the disk holds that the index does not: changed, new and deleted files, byte for byte.

It also runs on remote hosts: Python 3.9, standard library.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from binderclip.workspaces.git import Git

LINK, FILE, PROGRAM, REPOSITORY = "120000", "100644", "100755", "160000"
_ARGUMENTS = 400
_USUAL = (0o644, 0o755, 0o664, 0o775)


class CannotSave(Exception):
    """Something in the directory cannot be read, so it cannot be kept; the message names it."""


@dataclass
class Found:
    """What `gather` found: entries for an index, and what an index cannot hold."""

    entries: dict[str, tuple[str, str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    modes: dict[str, int] = field(default_factory=dict)
    nested: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether the files are others than those of the index."""
        return bool(self.entries or self.gone)

    def index_info(self, width: int) -> bytes:
        """Input of `update-index --index-info`: what is gone first, since a file may follow it."""
        lines = [f"0 {'0' * width}\t{path}" for path in self.gone]
        lines += [f"{mode} {id}\t{path}" for path, (mode, id) in self.entries.items()]
        return b"".join(os.fsencode(line) + b"\0" for line in lines)


def gather(git: Git, top: Path, *, ignored: bool, paths: Sequence[str], index: str | None) -> Found:
    """Everything on the disk that differs from the index of `git`, whose tree is `index`."""
    found = Found()
    files: list[str] = []
    for path in _candidates(git, top, ignored, paths, found):
        kind = _kind(top / path)
        if kind == "file":
            files.append(path)
        elif kind == "link":
            target = os.fsencode((top / path).readlink())
            found.entries[path] = (LINK, git.text("hash-object", "-w", "--stdin", stdin=target))
        elif kind == "special":
            found.special.append(path)
        else:
            found.gone.append(path)
    _hash(git, top, files, found)
    _note_modes(top, [*files, *_staged(git, index)], found)
    _find_empty(git, top, found)
    return found


def _candidates(
    git: Git, top: Path, ignored: bool, paths: Sequence[str], found: Found
) -> Iterator[str]:
    seen: set[str] = set()
    for path in [*_changed(git, top, found), *_others(git, ignored, paths)]:
        inside = _inside(top, path[:-1], found) if path.endswith("/") else [path]
        for name in inside:
            if name not in seen:
                seen.add(name)
                yield name


def _changed(git: Git, top: Path, found: Found) -> Iterator[str]:
    """Paths of the index whose file is another one now; submodules are noted by their commit."""
    fields = git("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty")
    parts = fields.split(b"\0")
    for at in range(0, len(parts) - 1, 2):
        about, path = parts[at].split(b" "), os.fsdecode(parts[at + 1])
        if about[-1] == b"D":
            # Git's word counts: a link may stand where its directory was.
            found.gone.append(path)
            continue
        if about[0] != b":160000":
            yield path
            continue
        commit = Git(top / path).resolve("HEAD") if (top / path / ".git").exists() else None
        if commit is not None:
            found.entries[path] = (REPOSITORY, commit)


def _others(git: Git, ignored: bool, paths: Sequence[str]) -> list[str]:
    names = git.names("ls-files", "-z", "--others", "--exclude-standard")
    if ignored or paths:
        only = ["--", *(f":(literal){path}" for path in paths)] if not ignored else []
        command = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
        names += git.names(*command, *only)
    return names


def _inside(top: Path, path: str, found: Found) -> Iterator[str]:
    """Files of a repository inside this one; git shows it as one name."""
    found.nested.append(path)
    for folder, folders, files in os.walk(top / path):
        if ".git" in folders:
            folders.remove(".git")
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*files, *links]:
            if name != ".git":
                yield str((Path(folder) / name).relative_to(top))


def _kind(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "gone"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    return "gone" if stat.S_ISDIR(mode) else "special"


def _hash(git: Git, top: Path, files: list[str], found: Found) -> None:
    for path, id in _write_blobs(git, top, files):
        mode = (top / path).lstat().st_mode
        found.entries[path] = (PROGRAM if mode & 0o100 else FILE, id)


def _note_modes(top: Path, paths: list[str], found: Found) -> None:
    for path in paths:
        if _kind(top / path) == "file":
            mode = stat.S_IMODE((top / path).lstat().st_mode) & 0o777
            if mode not in _USUAL:
                found.modes[path] = mode


def _staged(git: Git, index: str | None) -> list[str]:
    committed = git.maybe("rev-parse", "--quiet", "--verify", "HEAD^{tree}")
    if committed is None:
        return git.names("ls-files", "-z")
    if committed == index:
        return []
    words = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=d")
    return git.names(*words, "HEAD")


def _write_blobs(git: Git, top: Path, files: list[str]) -> Iterator[tuple[str, str]]:
    """The files with their ids in the object database, their bytes as they are."""
    unreadable = [path for path in files if not os.access(top / path, os.R_OK)]
    if unreadable:
        raise CannotSave(f"{unreadable[0]!r} cannot be read, so it cannot be kept.")
    for start in range(0, len(files), _ARGUMENTS):
        part = files[start : start + _ARGUMENTS]
        # As arguments, since a name on standard input cannot hold a newline.
        ids = git.text("hash-object", "-w", "--no-filters", "--", *part).split("\n")
        yield from ((path, ids[at]) for at, path in enumerate(part))


def _find_empty(git: Git, top: Path, found: Found) -> None:
    command = ("ls-files", "-z", "--others", "--directory", "--exclude-standard")
    roots = [name for name in git.names(*command) if name.endswith("/")]
    for root in roots:
        for folder, folders, files in os.walk(top / root):
            if ".git" in folders:
                folders.remove(".git")
            if not folders and not files:
                found.empty.add(str(Path(folder).relative_to(top)))
    for path in found.gone:
        parent = (top / path).parent
        if parent.is_dir() and parent != top and not any(parent.iterdir()):
            found.empty.add(str(parent.relative_to(top)))
