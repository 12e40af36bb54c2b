"""A workspace's round trip to another machine and back (W6), each way only what the other lacks.

`base` is the last state that both sides had; whatever either did since then is work, and is merged.
A step may be interrupted anywhere: the refs say how far it got, and doing it again finishes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from binderclip.contract.errors import WorkspaceError
from binderclip.workspaces import bundles
from binderclip.workspaces.disk import CannotSave
from binderclip.workspaces.far import Far
from binderclip.workspaces.git import Git, GitFailed, person
from binderclip.workspaces.merging import Choice
from binderclip.workspaces.outpost import RETURNED
from binderclip.workspaces.restoring import Plan, Restore, Restored, Step, save
from binderclip.workspaces.snapshot import NoSnapshot, Snapshot, read, take

BASE = "refs/binderclip/base"
FAR = "refs/binderclip/far"
KEPT = "refs/binderclip/kept"
_HEADS = "refs/heads/"


class Trip:
    """The round trip of one workspace; `name` is its id, `directory` the copy over there."""

    def __init__(
        self,
        git: Git,
        name: str,
        far: Far,
        directory: str,
        journal: Path,
        *,
        paths: Sequence[str] = (),
        step: Step = lambda _step: None,
    ) -> None:
        self.git = git
        self._name = name
        self._far = far
        self._directory = directory
        self._paths = list(paths)
        self._step = step
        self._restore = Restore(git, name, journal, step, self._agreed, paths)
        self._journal = journal

    @property
    def theirs_ref(self) -> str:
        """Where work is kept that came back and is not merged yet."""
        return self._restore.theirs_ref

    def out(self) -> str:
        """Make the copy equal to the workspace; work that is still there comes back first."""
        if self._journal.exists():
            self._resume()
        with _explained(), ThreadPoolExecutor(1) as beside:
            # Looking takes both sides a while, so they do it at the same time.
            looked = beside.submit(take, self.git, paths=self._paths)
            state, ours = self._ask("state"), looked.result()
        if state["exists"] and not state["receiving"] and not self._is_agreed(state["snapshot"]):
            self.back()
            state = self._ask("state")
            ours = self._taken()
        with _explained():
            self.git("update-ref", self._ref("sent"), ours.id)
            self._step("taken")
            self._deliver(ours, state)
            self._step("delivered")
            self.git("update-ref", self._base_ref, ours.id)
        return ours.id

    def back(self, choice: Choice | None = None) -> Restored:
        """Bring the work of the copy into the workspace; RestoreConflict leaves that as it is."""
        if self._journal.exists():
            return self._resume()
        with _explained():
            theirs = self._fetch()
            self._step("fetched")
            base = self._base()
            done = self._restore.bring(base, theirs, choice)
            self._adopt_refs(theirs)
        return done

    def _taken(self) -> Snapshot:
        with _explained():
            return take(self.git, paths=self._paths)

    def resolve(self, choice: Choice) -> Restored:
        """Settle a conflict with what was fetched; the other machine is not needed."""
        if self._journal.exists():
            return self._resume()
        with _explained():
            id = self.git.resolve(self.theirs_ref)
            if id is None:
                raise WorkspaceError("There is no conflict to resolve.")
            theirs = read(self.git, id)
            done = self._restore.bring(self._base(), theirs, choice)
            self._adopt_refs(theirs)
        return done

    def remove_copy(self) -> None:
        """Delete the copy over there, once everything in it is here; ignored files get a ref."""
        state = self._ask("state")
        if state["exists"]:
            if state["snapshot"] is not None and not self._is_agreed(state["snapshot"]):
                raise WorkspaceError("The copy holds work that was not brought back; it stays.")
            with _explained():
                whole = self._fetch(ignored=True)
                save(self.git, whole, self._name)
            self._ask("remove", snapshot=whole.id)
        for ref in self.git.text("for-each-ref", "--format=%(refname)", self._ref("")).split("\n"):
            if ref:
                self.git("update-ref", "-d", ref)
        self.git("update-ref", "-d", self._base_ref)

    @property
    def _base_ref(self) -> str:
        return f"{BASE}/{self._name}"

    def _ref(self, part: str) -> str:
        return f"{FAR}/{self._name}/{part}"

    def _ask(self, verb: str, body: Path | None = None, **asked: Any) -> dict[str, Any]:
        asked = {"directory": self._directory, "paths": self._paths, **asked}
        return self._far.ask(verb, body, **asked)

    def _is_agreed(self, id: str | None) -> bool:
        """Whether the copy is as we know it: as agreed, or as we sent it and heard no answer."""
        if id is not None and id == self.git.resolve(self._ref("sent")):
            self.git("update-ref", self._base_ref, id)
        return id is None or id == self.git.resolve(self._base_ref)

    def _base(self) -> Snapshot:
        id = self.git.resolve(self._base_ref)
        if id is None:
            message = "Nobody knows what the copy on the other machine was made from."
            raise WorkspaceError(message, hint="Look at it there, and remove it by hand.")
        return read(self.git, id)

    def _deliver(self, ours: Snapshot, state: dict[str, Any]) -> None:
        name, email = person(self.git.directory)
        with TemporaryDirectory(prefix="binderclip-") as folder:
            path = Path(folder) / "bundle"
            made = bundles.create(self.git, path, [self._ref("sent")], state["tips"])
            self._step("packed")
            self._ask(
                "receive",
                path if made else None,
                ref=self._ref("sent"),
                snapshot=ours.id,
                expect=state["snapshot"],
                shallow=self._shallow(),
                format=self.git.text("rev-parse", "--show-object-format"),
                identity={"user.name": name, "user.email": email, "gc.auto": "0"},
            )

    def _shallow(self) -> list[str]:
        path = self.git.text("rev-parse", "--path-format=absolute", "--git-path", "shallow")
        return Path(path).read_text().split() if Path(path).exists() else []

    def _fetch(self, ignored: bool = False) -> Snapshot:
        have = [self.git.resolve(ref) for ref in (self._base_ref, self._ref("sent"), "HEAD")]
        with TemporaryDirectory(prefix="binderclip-") as folder:
            path = Path(folder) / "bundle"
            known = [id for id in have if id]
            told = self._ask("send", have=known, ignored=ignored, into=path)
            if path.exists():
                refs = {"refs/*": self._ref("in/*")}
                bundles.fetch(self.git, path, refs)
        theirs = read(self.git, str(told["snapshot"]))
        self.git("update-ref", self._ref("in/" + RETURNED.removeprefix("refs/")), theirs.id)
        for ref, id in told["refs"].items():
            self._note(str(ref), str(id))
        return theirs

    def _note(self, ref: str, id: str) -> None:
        """Remember a ref of the other side whose commit may have been here already."""
        target = self._ref("in/" + ref.removeprefix("refs/"))
        if not ref.startswith("refs/") or self.git.maybe("check-ref-format", target) is None:
            raise WorkspaceError(f"The other machine has a ref of an impossible name: {ref!r}.")
        self.git("update-ref", target, id)

    def _resume(self) -> Restored:
        with _explained():
            done = self._restore.resume()
            returned = self.git.resolve(self._base_ref)
            if returned is not None:
                self._adopt_refs(read(self.git, returned))
        return done

    def _agreed(self, plan: Plan) -> None:
        self.git("update-ref", self._base_ref, plan.theirs)

    def _adopt_refs(self, theirs: Snapshot) -> None:
        """Give branches and tags that were made over there a name here, if it is free."""
        prefix = self._ref("in/")
        words = ("for-each-ref", "--format=%(objectname) %(refname)", prefix.rstrip("/"))
        for line in self.git.text(*words).split("\n"):
            id, _, ref = line.partition(" ")
            name = "refs/" + ref.removeprefix(prefix)
            if ref and name not in (RETURNED, theirs.branch):
                self._adopt(name, id)
            if ref:
                self.git("update-ref", "-d", ref)

    def _adopt(self, name: str, id: str) -> None:
        here = self.git.maybe("rev-parse", "--quiet", "--verify", name)
        if here == id:
            return
        target = name if self._may_move(name, here, id) else self._spare(name)
        self.git("update-ref", "-m", "binderclip: restore", target, id)

    def _may_move(self, name: str, here: str | None, id: str) -> bool:
        if not name.startswith((_HEADS, "refs/tags/")):
            return False
        if here is None:
            return True
        used = self.git("worktree", "list", "--porcelain", "-z").split(b"\0")
        if not name.startswith(_HEADS) or f"branch {name}".encode() in used:
            return False
        return self.git.yes("merge-base", "--is-ancestor", here, id)

    def _spare(self, name: str) -> str:
        return f"{KEPT}/{self._name}/{name.removeprefix('refs/')}"


class _explained:
    """Turns what git and the disk say into a WorkspaceError."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, GitFailed | NoSnapshot | CannotSave):
            raise WorkspaceError(f"The workspace could not travel: {problem}") from problem
        if isinstance(problem, OSError):
            raise WorkspaceError(f"The disk refused: {problem}") from problem
