"""Bringing another state into a working directory: merged first, then made, then noted as done.

Before the first file changes, our state has a saved ref and the plan stands in a journal; a restore
that was interrupted goes on from there, whatever step it was in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from binderclip.contract.errors import RestoreConflict, WorkspaceError
from binderclip.workspaces.changing import (
    Change,
    Changer,
    Unsafe,
    changes,
    check_path,
    check_safe,
)
from binderclip.workspaces.git import Git
from binderclip.workspaces.holding import directory_held
from binderclip.workspaces.merging import Choice, Merged, merge, merge_heads
from binderclip.workspaces.snapshot import Snapshot, take, tree_of_nothing

SAVED = "refs/binderclip/saved"
THEIRS = "refs/binderclip/theirs"
_DOING = "bringing work into it"
Step = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What a restore is about to make of a working directory, and of which state."""

    theirs: str
    ours_tree: str
    ours_head: str | None
    ours_branch: str | None
    theirs_head: str | None
    head: str | None
    branch: str | None
    tree: str
    index: str
    make: list[str]
    """Directories to make although they are empty."""
    remove: list[str]
    modes: dict[str, int]


@dataclass(frozen=True)
class Restored:
    """How a restore went."""

    changed: tuple[str, ...]
    head: str | None
    merged: bool
    """Whether both sides had commits of their own."""


class Restore:
    """One restore into the directory of `git`; `name` is part of its refs, `journal` its plan."""

    def __init__(
        self,
        git: Git,
        name: str,
        journal: Path,
        step: Step = lambda _step: None,
        done: Callable[[Plan], None] = lambda _plan: None,
        paths: Sequence[str] = (),
    ) -> None:
        self._git = git
        self._name = name
        self._journal = journal
        self._step = step
        self._done = done
        self._paths = paths

    @property
    def theirs_ref(self) -> str:
        """Where the other side's state is kept until it is brought in."""
        return f"{THEIRS}/{self._name}"

    def bring(self, base: Snapshot, theirs: Snapshot, choice: Choice | None = None) -> Restored:
        """Merge theirs into the directory; RestoreConflict leaves it as it is."""
        with directory_held(self._git, _DOING):
            return self._bring(base, theirs, choice)

    def resume(self) -> Restored:
        """Carry out the plan of the journal; what was done before is not done twice."""
        with directory_held(self._git, _DOING):
            return self._carry_out()

    def _bring(self, base: Snapshot, theirs: Snapshot, choice: Choice | None) -> Restored:
        if self._journal.exists():
            return self._carry_out()
        self._git("update-ref", self.theirs_ref, theirs.id)
        ours = take(self._git, paths=self._paths)
        merged = merge(self._git, base, ours, theirs, choice)
        if merged.conflicts:
            raise self._conflict(merged.conflicts)
        wanted = changes(self._git, ours.tree, merged.tree)
        self._check(base, theirs, merged, wanted)
        with Changer(self._git, self._git.directory) as changer:
            blocked = changer.in_the_way(wanted)
        if blocked:
            raise self._conflict(tuple(blocked))
        plan = _plan(base, ours, theirs, merged)
        save(self._git, ours, self._name)
        self._step("saved")
        self._write(plan)
        self._step("planned")
        return self._carry_out()

    def _carry_out(self) -> Restored:
        plan = Plan(**json.loads(self._journal.read_text("utf-8")))
        wanted = changes(self._git, plan.ours_tree, plan.tree)
        with Changer(self._git, self._git.directory) as changer:
            disturbed = changer.make(wanted)
            self._step("files")
            _fit(changer, plan, wanted)
        self._step("directories")
        self._git("read-tree", "--reset", plan.index)
        self._step("index")
        head = self._move_head(plan)
        self._step("head")
        self._git("update-index", "-q", "--refresh", ok=(0, 1))
        if disturbed:
            self._journal.unlink()
            raise self._conflict(tuple(disturbed))
        self._done(plan)
        self._step("agreed")
        self._git("update-ref", "-d", self.theirs_ref)
        self._journal.unlink()
        paths = tuple(change.path for change in wanted)
        return Restored(paths, head, head not in (plan.ours_head, plan.theirs_head))

    def _check(
        self, base: Snapshot, theirs: Snapshot, merged: Merged, wanted: list[Change]
    ) -> None:
        """Whatever came from elsewhere is looked at before it gets near a file (W6)."""
        nothing = tree_of_nothing(self._git)
        heads = [head and f"{head}^{{tree}}" for head in (base.head, theirs.head)]
        came = [*wanted, *changes(self._git, base.index or base.tree, merged.index)]
        if heads[1] is not None:
            came += changes(self._git, heads[0] or nothing, heads[1])
        try:
            check_safe(self._git, came)
            for path in theirs.empty:
                check_path(path)
        except Unsafe as problem:
            raise WorkspaceError(
                f"The work was not brought back: {problem}",
                hint=f"It is kept under {self.theirs_ref}; nothing here was changed.",
            ) from problem

    def _move_head(self, plan: Plan) -> str | None:
        now, head = self._git.resolve("HEAD"), plan.head
        if now not in (plan.ours_head, head):
            # Somebody committed since the plan was made; their commit counts as ours.
            head, conflicts = merge_heads(self._git, plan.ours_head, now, head)
            if conflicts:
                raise self._conflict(conflicts)
        if plan.branch != plan.ours_branch and self._may_be_on(plan.branch, head):
            self._go_to(plan.branch, head)
        elif head is not None and head != now:
            self._git("update-ref", "-m", "binderclip: restore", "HEAD", head, now or "")
        return head

    def _may_be_on(self, branch: str | None, head: str | None) -> bool:
        """Whether HEAD can go there without moving a branch that has work of its own."""
        if branch is None or head is None:
            return head is not None
        at = self._git.resolve(branch)
        used = self._git("worktree", "list", "--porcelain", "-z").split(b"\0")
        if f"branch {branch}".encode() in used:
            return self._git.maybe("symbolic-ref", "--quiet", "HEAD") == branch
        return at is None or self._git.yes("merge-base", "--is-ancestor", at, head)

    def _go_to(self, branch: str | None, head: str | None) -> None:
        assert head is not None
        if branch is None:
            self._git("update-ref", "--no-deref", "-m", "binderclip: restore", "HEAD", head)
            return
        self._git("update-ref", "-m", "binderclip: restore", branch, head)
        self._git("symbolic-ref", "-m", "binderclip: restore", "HEAD", branch)

    def _write(self, plan: Plan) -> None:
        scratch = self._journal.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(plan)), "utf-8")
        scratch.rename(self._journal)

    def _conflict(self, paths: tuple[str, ...]) -> RestoreConflict:
        shown = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        return RestoreConflict(
            f"Both sides changed {shown}. Ours is in place, theirs is kept: {self.theirs_ref}.",
            hint="`binderclip workspaces resolve` takes one side, or both with markers.",
            fields=dict.fromkeys(paths, "changed on both sides"),
        )


def save(git: Git, snapshot: Snapshot, name: str) -> str:
    """Keep a state under a ref of its own; equal states share one (W8)."""
    ref = f"{SAVED}/{name}/{snapshot.id[:16]}"
    git("update-ref", ref, snapshot.id)
    return ref


def _plan(base: Snapshot, ours: Snapshot, theirs: Snapshot, merged: Merged) -> Plan:
    return Plan(
        theirs=theirs.id,
        ours_tree=ours.tree,
        ours_head=ours.head,
        ours_branch=ours.branch,
        theirs_head=theirs.head,
        head=merged.head,
        branch=merged.branch,
        tree=merged.tree,
        index=merged.index,
        make=sorted({*theirs.empty} - {*base.empty}),
        remove=sorted(({*base.empty} - {*theirs.empty}) & {*ours.empty}, reverse=True),
        modes={path: mode for path, mode in theirs.modes.items() if base.modes.get(path) != mode},
    )


def _fit(changer: Changer, plan: Plan, wanted: list[Change]) -> None:
    """What a tree does not hold: empty directories, and permissions of files that came."""
    for path in plan.make:
        changer.make_directory(path)
    for path in plan.remove:
        changer.remove_directory(path)
    for change in wanted:
        if change.new is not None and change.path in plan.modes:
            changer.set_mode(change.path, plan.modes[change.path])
