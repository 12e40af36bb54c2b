"""Changing a working directory from one tree to another, and nothing that is not as expected.

No path leads outside, into `.git` or through a link; a file that somebody changed meanwhile stays.
It also runs on remote hosts: Python 3.9, standard library.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from binderclip.workspaces.disk import FILE, LINK, PROGRAM, REPOSITORY
from binderclip.workspaces.git import Git, GitFailed

_INVISIBLE = dict.fromkeys(map(ord, "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff"))
_CHUNK = 1 << 20
_SCRATCH = ".binderclip-new"


class Unsafe(Exception):
    """A path or a link that a restore must not make."""


@dataclass(frozen=True)
class Entry:
    """A file in a tree: its kind and the id of its bytes."""

    mode: str
    id: str


@dataclass(frozen=True)
class Change:
    """What one path was and shall be; None is nothing."""

    path: str
    old: Entry | None
    new: Entry | None


def changes(git: Git, old: str, new: str) -> list[Change]:
    """What differs between two trees."""
    raw = git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    parts = raw.split(b"\0")
    found = []
    for at in range(0, len(parts) - 1, 2):
        mode, new_mode, id, new_id, _ = parts[at][1:].decode().split(" ")
        before = Entry(mode, id) if mode != "000000" else None
        after = Entry(new_mode, new_id) if new_mode != "000000" else None
        found.append(Change(os.fsdecode(parts[at + 1]), before, after))
    return found


def check_safe(git: Git, wanted: Iterable[Change]) -> None:
    """Refuse changes that would write outside, into a repository's own files, or a bad link."""
    for change in wanted:
        if change.new is None:
            continue
        check_path(change.path)
        if change.new.mode == LINK:
            target = os.fsdecode(git("cat-file", "blob", change.new.id))
            if _leads_outside(change.path, target):
                raise Unsafe(f"The link {change.path!r} points outside, to {target!r}.")


def check_path(path: str) -> None:
    """Refuse a path that is absolute, climbs up, or lies in a repository's own files."""
    if any(_forbidden(part) for part in path.split("/")):
        raise Unsafe(f"The path {path!r} may not be restored.")


def _forbidden(part: str) -> bool:
    plain = part.translate(_INVISIBLE).lower().rstrip(" .").partition(":")[0]
    return part in ("", ".", "..") or plain in (".git", "git~1") or "\0" in part


def _leads_outside(path: str, target: str) -> bool:
    if target.startswith("/"):
        return True
    depth = path.count("/")
    for part in target.split("/"):
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            return True
        if _forbidden(part) and part not in ("", ".", ".."):
            return True
    return False


class Changer:
    """Makes changes in one directory, each path reached without following a link."""

    def __init__(self, git: Git, top: str | Path) -> None:
        self._git = git
        self._root = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
        self._new = hashlib.sha256 if len(git.text("mktree", stdin=b"")) == 64 else hashlib.sha1

    def __enter__(self) -> Changer:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def make(self, wanted: list[Change]) -> list[str]:
        """Make the changes; paths that were neither as before nor as wanted are told and stay."""
        disturbed, writes = [], []
        for change in sorted(wanted, key=lambda change: change.path, reverse=True):
            if not self._is_in_the_way(change):
                if change.new is not None:
                    writes.append(change)
                elif self.entry(change.path) is not None:
                    self._remove(change.path)
            else:
                disturbed.append(change.path)
        with _Blobs(self._git) as blobs:
            for change in reversed(writes):
                if not self._write(change, blobs):
                    disturbed.append(change.path)
        return sorted(disturbed)

    def in_the_way(self, wanted: Iterable[Change]) -> list[str]:
        """Paths where something else is than what the changes expect."""
        found = (change.path for change in wanted if self._is_in_the_way(change))
        return sorted(found)

    def entry(self, path: str) -> Entry | None:
        """What is on the disk; a directory or nothing is None."""
        with self._parent(path) as (folder, name):
            if folder is None:
                return None
            try:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if stat.S_ISLNK(found.st_mode):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                return Entry(LINK, self._id(len(target), [target]))
            if not stat.S_ISREG(found.st_mode):
                return None if stat.S_ISDIR(found.st_mode) else Entry("special", "")
            mode = PROGRAM if found.st_mode & 0o100 else FILE
            return Entry(mode, self._id(found.st_size, self._content(folder, name)))

    def make_directory(self, path: str) -> None:
        """A directory that shall be there although it is empty."""
        with self._parent(f"{path}/x", make=True) as (_folder, _name):
            return

    def remove_directory(self, path: str) -> None:
        """Remove a directory if there is nothing in it."""
        with self._parent(path) as (folder, name):
            if folder is not None:
                _rmdir_if_empty(name, folder)

    def set_mode(self, path: str, mode: int) -> None:
        """Give a regular file the permissions that it had on the other side."""
        with self._parent(path) as (folder, name):
            if folder is None:
                return
            try:
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            except OSError:
                return
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    os.fchmod(fd, mode & 0o777)
            finally:
                os.close(fd)

    def _is_in_the_way(self, change: Change) -> bool:
        if REPOSITORY in {change.old and change.old.mode, change.new and change.new.mode}:
            # The index keeps it; its files belong to another repository.
            return False
        found = self.entry(change.path)
        return found is not None and found not in (change.old, change.new)

    def _write(self, change: Change, blobs: _Blobs) -> bool:
        assert change.new is not None
        if change.new.mode == REPOSITORY or self.entry(change.path) == change.new:
            return True
        with self._parent(change.path, make=True) as (folder, name):
            if folder is None:
                return False
            if _is_directory(name, folder) and not _rmdir_if_empty(name, folder):
                return False
            _clear(folder)
            self._put(folder, change.new, blobs)
            os.rename(_SCRATCH, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True

    def _put(self, folder: int, new: Entry, blobs: _Blobs) -> None:
        parts = blobs.read(new.id)
        if new.mode == LINK:
            os.symlink(b"".join(parts), _SCRATCH, dir_fd=folder)
            return
        mode = 0o777 if new.mode == PROGRAM else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = os.open(_SCRATCH, flags, mode, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                for part in parts:
                    file.write(part)
        except OSError:
            # A full disk is no reason to leave half a file behind.
            _clear(folder)
            raise

    def _remove(self, path: str) -> None:
        with self._parent(path) as (folder, name):
            if folder is not None:
                os.unlink(name, dir_fd=folder)
        while "/" in path:
            path = path.rpartition("/")[0]
            with self._parent(path) as (folder, name):
                if folder is None or not _rmdir_if_empty(name, folder):
                    return

    @contextmanager
    def _parent(self, path: str, make: bool = False) -> Iterator[tuple[int | None, str]]:
        """The directory of a path as a descriptor; None where a part is missing or no directory."""
        *folders, name = path.split("/")
        held = os.dup(self._root)
        try:
            for part in folders:
                step = _step(held, part, make)
                os.close(held)
                held = -1
                if step is None:
                    yield None, name
                    return
                held = step
            yield held, name
        finally:
            if held >= 0:
                os.close(held)

    def _id(self, size: int, parts: Iterable[bytes]) -> str:
        digest = self._new(b"blob %d\0" % size)
        for part in parts:
            digest.update(part)
        return digest.hexdigest()

    def _content(self, folder: int, name: str) -> Iterator[bytes]:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        with os.fdopen(fd, "rb") as file:
            while part := file.read(_CHUNK):
                yield part


def _step(held: int, part: str, make: bool) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    for _ in range(2):
        try:
            return os.open(part, flags, dir_fd=held)
        except FileNotFoundError:
            if not make:
                return None
            os.mkdir(part, dir_fd=held)
        except OSError:
            # A file or a link stands where a directory should be.
            return None
    return None


def _clear(folder: int) -> None:
    try:
        os.unlink(_SCRATCH, dir_fd=folder)
    except FileNotFoundError:
        return


def _is_directory(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _rmdir_if_empty(name: str, folder: int) -> bool:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return False
    return True


class _Blobs:
    """Reads many blobs by one git process."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def __enter__(self) -> _Blobs:
        self._process = subprocess.Popen(
            self._git.command("cat-file", "--batch"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._git.environment(),
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def read(self, id: str) -> Iterator[bytes]:
        """The bytes of a blob; all of them must be taken."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(id.encode() + b"\n")
        self._process.stdin.flush()
        head = self._process.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise GitFailed(["cat-file"], 0, f"{id} is missing")
        left = int(head[2])
        while left:
            part = self._process.stdout.read(min(left, _CHUNK))
            if not part:
                raise GitFailed(["cat-file"], 0, f"{id} is cut off")
            left -= len(part)
            yield part
        self._process.stdout.read(1)
