"""What a run changed, as a diff of bounded size: the directory before it against the one after.

The repository is only read: new files are looked at through an index and objects of our own.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from binderclip.contract.wire import Wire
from binderclip.workspaces.disk import CannotSave
from binderclip.workspaces.git import Git, GitFailed
from binderclip.workspaces.snapshot import copy_index, take
from binderclip.workspaces.standing import Standing

MOST_FILES = 1000
MOST_LINES = 3000
"""Of one file; a longer diff is told by its numbers only."""
MOST_BYTES = 1024 * 1024
PATIENCE_SEC = 20.0
_LITERAL = ":(top,literal)"


class FileChange(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One file that differs; `status` is git's letter, numbers are null for a binary file."""

    status: str
    path: str
    added: int | None
    removed: int | None
    shown: bool
    """Whether its lines are in the diff."""


class RunChanges(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a run changed in the directory that it worked in."""

    basis: Literal["workspace", "directory", "none"]
    """What it was compared with: an exact state, a commit, or nothing."""
    reason: str | None = None
    """Why nothing can be told, or what to know about the comparison."""
    files: tuple[FileChange, ...] = ()
    left_out: int = 0
    """Further files that differ."""
    diff: str = ""


_ALSO = (
    "Compared with the commit that the directory was on when the run began: a file that had "
    "uncommitted edits before shows them too."
)


def untold(reason: str) -> RunChanges:
    return RunChanges(basis="none", reason=reason)


def compare(before: Standing) -> RunChanges:
    """The changes since; any problem becomes the reason why they cannot be told."""
    if before.top is None:
        return untold(before.reason or "The directory is in no git repository.")
    if not Path(before.top).is_dir():
        return untold(f"{before.top} is gone.")
    try:
        return _compared(before, before.top)
    except subprocess.TimeoutExpired:
        return untold(f"Comparing {before.top} took more than {PATIENCE_SEC:.0f} s.")
    except (GitFailed, CannotSave, OSError, ValueError) as problem:
        return untold(f"{before.top} cannot be compared: {problem}")


def _compared(before: Standing, top: str) -> RunChanges:
    git = Git(top)
    if before.tree is not None:
        asker = _Asker(git, {}, (before.tree, take(git).tree))
        return asker.changes("workspace", None, asker.names())
    with _own_index(git) as env:
        asker = _Asker(git, env, (before.head or _nothing(git),))
        fresh = asker.lines("ls-files", "--others", "--exclude-standard")
        new = [path for path in fresh if _since(Path(top) / path, before.at)]
        if new:
            stdin = "\0".join(new[:MOST_FILES]).encode("utf-8", "surrogateescape")
            asker.ask("add", "--intent-to-add", *_FROM_STDIN, stdin=stdin)
        touched = [path for path in asker.names() if _since(Path(top) / path, before.at)]
        return asker.changes("directory", _ALSO, touched)


_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


def _since(path: Path, at: float) -> bool:
    """Whether a file was touched since; of one that is gone its folder tells."""
    try:
        return path.lstat().st_ctime >= at
    except OSError:
        folder = next(one for one in path.parents if one.is_dir())
        return folder.stat().st_ctime >= at


def _nothing(git: Git) -> str:
    return git.text("hash-object", "-t", "tree", "--stdin", stdin=b"")


@contextmanager
def _own_index(git: Git) -> Iterator[dict[str, str]]:
    """Variables by which git writes to a folder of ours and reads from the repository."""
    objects = git.text("rev-parse", "--path-format=absolute", "--git-path", "objects")
    with tempfile.TemporaryDirectory(prefix="binderclip-") as folder:
        copy = Path(folder) / "index"
        copy_index(git, copy)
        (Path(folder) / "objects").mkdir()
        yield {
            "GIT_INDEX_FILE": str(copy),
            "GIT_OBJECT_DIRECTORY": str(Path(folder) / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
            "GIT_LITERAL_PATHSPECS": "0",
        }


class _Asker:
    """Asks git about one comparison, within one deadline."""

    def __init__(self, git: Git, env: dict[str, str], sides: tuple[str, ...]) -> None:
        self._git = git
        self._env = {**git.environment(), **env}
        self._sides = ("--no-renames", "--ignore-submodules=dirty", *sides)
        self._deadline = time.monotonic() + PATIENCE_SEC

    def changes(
        self, basis: Literal["workspace", "directory"], reason: str | None, paths: Sequence[str]
    ) -> RunChanges:
        named = [f"{_LITERAL}{path}" for path in paths[:MOST_FILES]]
        files = self._files(named) if named else []
        shown = [f"{_LITERAL}{one.path}" for one in files if one.shown]
        diff, whole = self._diff(shown) if shown else (b"", True)
        text = diff.decode("utf-8", "replace")
        if not whole:
            files = _without_lost(files, text)
        return RunChanges(
            basis=basis,
            reason=reason,
            files=tuple(files),
            left_out=max(0, len(paths) - MOST_FILES),
            diff=text,
        )

    def names(self) -> list[str]:
        return self.lines("diff", "--name-only", *self._sides)

    def lines(self, verb: str, *words: str) -> list[str]:
        said = self.ask(verb, "-z", *words).decode("utf-8", "surrogateescape")
        return [name for name in said.split("\0") if name]

    def ask(self, *words: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            self._git.command(*words),
            input=stdin,
            capture_output=True,
            env=self._env,
            timeout=max(0.1, self._deadline - time.monotonic()),
        )
        if done.returncode:
            raise GitFailed(words, done.returncode, done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def _files(self, named: list[str]) -> list[FileChange]:
        letters = self.lines("diff", "--name-status", *self._sides, "--", *named)
        status = dict(zip(letters[1::2], letters[::2], strict=True))
        found = []
        for line in self.lines("diff", "--numstat", *self._sides, "--", *named):
            added, removed, path = line.split("\t", 2)
            found.append(_file(status.get(path, "M"), path, _number(added), _number(removed)))
        return found

    def _diff(self, named: list[str]) -> tuple[bytes, bool]:
        """The diff as far as it is wanted, and whether that is all of it; whole files only."""
        words = ("diff", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", *self._sides)
        command = self._git.command(*words, "--", *named)
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self._env
        ) as process:
            assert process.stdout is not None
            said = process.stdout.read(MOST_BYTES + 1)
            if len(said) <= MOST_BYTES:
                return said, True
            process.kill()
        return said[: max(0, said.rfind(b"\ndiff --git ") + 1)], False


def _file(status: str, path: str, added: int | None, removed: int | None) -> FileChange:
    name = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    few = added is not None and removed is not None and added + removed <= MOST_LINES
    # A name that is no text cannot be asked for by what is shown of it.
    return FileChange(
        status=status, path=name, added=added, removed=removed, shown=few and name == path
    )


def _number(text: str) -> int | None:
    """Git tells none of a binary file."""
    return int(text) if text.isdecimal() else None


def _without_lost(files: list[FileChange], diff: str) -> list[FileChange]:
    """Say of which files the diff did not reach the lines; it tells them in the same order."""
    left = diff.count("\ndiff --git ") + diff.startswith("diff --git ")
    told = []
    for one in files:
        shown = one.shown and left > 0
        left -= one.shown
        told.append(msgspec.structs.replace(one, shown=shown))
    return told
