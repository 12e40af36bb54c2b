"""The part of a round trip that runs on the other machine: a copy of a workspace, and its verbs.

It is sent there as one file and run by Python 3.9 or newer with nothing but the standard library;
a question is a JSON line and a body on standard input, the answer the same on standard output.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from binderclip.supervisor.launch import LaunchRefused
from binderclip.workspaces import bundles, remote_runs
from binderclip.workspaces.changing import Changer, Unsafe, changes
from binderclip.workspaces.disk import CannotSave
from binderclip.workspaces.git import Git, GitFailed, version
from binderclip.workspaces.snapshot import NoSnapshot, Snapshot, read, take, tree_of_nothing

SENT = "refs/binderclip/parcel/sent"
RETURNED = "refs/binderclip/parcel/returned"
_RECEIVING = "binderclip-receiving"
_SAVED = "refs/binderclip/saved/copy"


class Refused(Exception):
    """The other side asked for something that would lose work, or that cannot be."""


class Copy:
    """A working directory on this machine that stands for one somewhere else."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory).expanduser()
        self.git = Git(self.directory)

    @property
    def exists(self) -> bool:
        return (self.directory / ".git").is_dir()

    @property
    def receiving(self) -> Path:
        """Stands while files are being put in place; until it is gone, no agent may run here."""
        return self.directory / ".git" / _RECEIVING

    def state(self, paths: list[str]) -> dict[str, Any]:
        """What is here: the state of the files, and commits that need not be sent again."""
        if not self.exists:
            return {"exists": False, "snapshot": None, "tips": [], "receiving": False}
        now = self._now(paths)
        ids = self.git.text("for-each-ref", "--format=%(objectname)").split()
        tips = sorted({*ids, *([now.id] if now else [])})
        return {
            "exists": True,
            "snapshot": now.id if now else None,
            "tips": tips,
            "receiving": self.receiving.exists(),
        }

    def receive(self, asked: dict[str, Any], bundle: Path | None) -> dict[str, Any]:
        """Become the state that was sent; what was here before is kept under a ref."""
        self._make(asked)
        if bundle is not None:
            bundles.fetch(self.git, bundle, {asked["ref"]: SENT})
        target = read(self.git, asked["snapshot"])
        now = self._now(asked["paths"])
        if not self.receiving.exists() and (now.id if now else None) != asked["expect"]:
            raise Refused("The copy has changed since it was looked at.")
        self.receiving.touch()
        if now is not None:
            self.git("update-ref", f"{_SAVED}/{now.id[:16]}", now.id)
        self._become(now, target)
        self.receiving.unlink()
        return {"received": target.id}

    def send(self, asked: dict[str, Any], into: Path) -> dict[str, Any]:
        """Tell the state of the copy, with a bundle of all that the other side does not have."""
        now = self._now(asked["paths"], asked.get("ignored", False))
        if now is None or self.receiving.exists():
            raise Refused("There is no finished copy to bring back.")
        self.git("update-ref", RETURNED, now.id)
        refs = self._refs()
        made = bundles.create(self.git, into, [RETURNED, *refs], asked["have"])
        return {"snapshot": now.id, "refs": refs, "bundle": made}

    def remove(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Delete the copy if all of it is on the other side."""
        if not self.directory.exists():
            return {"removed": True}
        now = self._now(asked["paths"], ignored=True)
        if now is not None and (now.id != asked["snapshot"] or now.nested or now.special):
            raise Refused("The copy holds something that was not brought back; it stays.")
        shutil.rmtree(self.directory.parent)
        return {"removed": True}

    def _now(self, paths: list[str], ignored: bool = False) -> Snapshot | None:
        if not self.exists:
            return None
        if self.git.resolve("HEAD") is None and [*self.directory.iterdir()] == [
            self.directory / ".git"
        ]:
            return None
        return take(self.git, paths=paths, ignored=ignored)

    def _make(self, asked: dict[str, Any]) -> None:
        if not self.exists:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(self.directory.iterdir()):
                raise Refused(f"{self.directory} is there already and is no copy.")
            self.git("init", "--quiet", f"--object-format={asked['format']}", ".")
        for key, value in asked["identity"].items():
            self.git("config", key, value)
        if asked["shallow"]:
            (self.directory / ".git" / "shallow").write_text("\n".join(asked["shallow"]) + "\n")

    def _become(self, now: Snapshot | None, target: Snapshot) -> None:
        start = now.tree if now else self._checked_out(target)
        with Changer(self.git, self.directory) as changer:
            disturbed = changer.make(changes(self.git, start, target.tree))
            for path in target.empty:
                changer.make_directory(path)
            for path in sorted(set(now.empty if now else ()) - set(target.empty), reverse=True):
                changer.remove_directory(path)
            for path, mode in target.modes.items():
                changer.set_mode(path, mode)
        if disturbed:
            raise Refused(f"Something is in the way on the other machine: {disturbed[0]!r}.")
        self._point(target)
        self.git("read-tree", "--reset", target.index or f"{target.head}^{{tree}}")
        self.git("update-index", "-q", "--refresh", ok=(0, 1))

    def _checked_out(self, target: Snapshot) -> str:
        """The fast way for a new copy: git writes the files, and what differs comes after."""
        tree = target.index or target.tree
        self._point(target)
        self.git("read-tree", "--reset", "-u", tree)
        return tree or tree_of_nothing(self.git)

    def _point(self, target: Snapshot) -> None:
        if target.branch is not None:
            self.git("symbolic-ref", "HEAD", target.branch)
        if target.head is not None:
            deref = ["--no-deref"] if target.branch is None else []
            self.git("update-ref", *deref, "HEAD", target.head)

    def _refs(self) -> dict[str, str]:
        """Branches, tags and stashed work; HEAD is part of the state."""
        words = ("for-each-ref", "--format=%(objectname) %(refname)")
        lines = self.git.text(*words, "refs/heads", "refs/tags", "refs/stash").split("\n")
        return {line.split(" ", 1)[1]: line.split(" ", 1)[0] for line in lines if line}


def probe(asked: dict[str, Any]) -> dict[str, Any]:
    """What this machine has: for the environment test (E4)."""
    root = Path(asked["root"]).expanduser()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=root):
        free = shutil.disk_usage(root).free
    found = version()
    places = os.pathsep.join([*asked.get("path", []), os.environ.get("PATH", os.defpath)])
    return {
        "root": str(root),
        "python": platform.python_version(),
        "system": platform.system(),
        "git": ".".join(map(str, found)) if found else None,
        "free": free,
        "user": os.environ.get("USER") or str(os.getuid()),
        "uid": os.getuid(),
        "commands": {name: shutil.which(name, path=places) for name in asked.get("commands", [])},
        "directories": {name: Path(name).is_dir() for name in asked.get("directories", [])},
    }


def answer(asked: dict[str, Any], body: Path | None, into: Path) -> dict[str, Any]:
    """Do what was asked for."""
    verb = asked["verb"]
    if verb == "probe":
        return probe(asked)
    if verb in _RUN_VERBS:
        return _RUN_VERBS[verb](asked, body)
    copy = Copy(asked["directory"])
    if verb == "state":
        return copy.state(asked["paths"])
    if verb == "receive":
        return copy.receive(asked, body)
    if verb == "send":
        return copy.send(asked, into)
    if verb == "remove":
        return copy.remove(asked)
    raise Refused(f"Nobody here knows how to {verb}.")


_RUN_VERBS: dict[str, Callable[[dict[str, Any], Path | None], dict[str, Any]]] = {
    "launch": remote_runs.launch,
    "cancel": remote_runs.cancel,
    "finish": remote_runs.finish,
}


_EXPECTED = (Refused, Unsafe, CannotSave, NoSnapshot, GitFailed, LaunchRefused, OSError)


def main() -> None:
    """Answer one question."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    with tempfile.TemporaryDirectory(prefix="binderclip-") as folder:
        asked = json.loads(source.readline())
        if asked["verb"] == "follow":
            remote_runs.follow(asked)
            return
        body = _kept(source, Path(folder) / "body", asked.get("bytes", 0))
        into = Path(folder) / "answer"
        try:
            told = {"ok": True, **answer(asked, body, into)}
        except _EXPECTED as problem:
            told = {"ok": False, "kind": type(problem).__name__, "message": str(problem)}
        size = into.stat().st_size if into.exists() else 0
        sink.write(json.dumps({**told, "bytes": size}).encode() + b"\n")
        if size:
            with into.open("rb") as file:
                shutil.copyfileobj(file, sink, 1 << 20)
        sink.flush()


def _kept(source: BinaryIO, path: Path, size: int) -> Path | None:
    if not size:
        return None
    with path.open("wb") as file:
        while size:
            part = source.read(min(size, 1 << 20))
            if not part:
                raise SystemExit("The connection ended in the middle of a question.")
            size -= len(part)
            file.write(part)
    return path
