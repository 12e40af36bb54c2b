"""Removing workspaces that nobody needs, and never the only copy of anything (W8).

What is not in a commit that stays reachable is kept under `refs/binderclip/saved/<workspace>/`
before the first file goes; what cannot be kept there stays where it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from binderclip.contract.errors import Conflict, WorkspaceError
from binderclip.workspaces.disk import CannotSave
from binderclip.workspaces.git import Git, GitFailed
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.restoring import SAVED, THEIRS, save
from binderclip.workspaces.reviewing import MERGE_JOURNAL
from binderclip.workspaces.snapshot import Snapshot, take

_GOING = "going"
_KEPT = "kept"
"""Says that all was saved, so that a removal that was interrupted can go on."""
_DAY = 86400.0


@dataclass(frozen=True)
class Policy:
    """Which workspaces may go."""

    idle_days: float = 14.0
    """After so many days without a run, even if nobody archived them."""
    max_bytes: int | None = None
    """Above so much on the disk, the ones used longest ago go first; None is no bound."""
    ignored_bytes: int = 256 << 20
    """More than this in ignored files is not put into a repository; the workspace stays."""


@dataclass(frozen=True)
class Verdict:
    """What clean-up does, or would do, with one workspace."""

    workspace: Workspace
    removes: bool
    reason: str
    bytes: int
    saved: str | None = None
    """The ref that has what was not committed or not merged."""


def disk_use(path: str | Path) -> int:
    """Bytes that a directory takes on the disk, as far as it can be read."""
    total = 0
    waiting = [os.fspath(path)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    continue
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def clean(
    workspaces: Workspaces,
    policy: Policy,
    now: float,
    *,
    busy: Collection[str] = (),
    dry_run: bool = False,
    going_on: Callable[[], bool] = lambda: True,
) -> list[Verdict]:
    """Remove what the policy lets go; `busy` names runs that are not over.

    `going_on` is asked before each removal; once it says no, the rest stays.
    """
    verdicts = judge(workspaces, policy, now, busy)
    if dry_run:
        return verdicts
    return [_decided(workspaces, policy, one, going_on) for one in verdicts]


def judge(
    workspaces: Workspaces, policy: Policy, now: float, busy: Collection[str] = ()
) -> list[Verdict]:
    """What would happen to each workspace, without touching any."""
    known = sorted(workspaces.list(), key=lambda one: one.used_at)
    sizes = {one.id: disk_use(workspaces.folder(one.id)) for one in known}
    left = sum(sizes.values())
    verdicts = []
    for one in known:
        keep = _reason_to_keep(workspaces, one, busy)
        go = _reason_to_go(one, policy, now, left)
        removes = keep is None and go is not None
        left -= sizes[one.id] if removes else 0
        verdicts.append(Verdict(one, removes, keep or go or "in use", sizes[one.id]))
    return verdicts


def _reason_to_go(one: Workspace, policy: Policy, now: float, left: int) -> str | None:
    if one.state == "archived":
        return "archived"
    idle = (now - datetime.fromisoformat(one.used_at).timestamp()) / _DAY
    if idle >= policy.idle_days:
        return f"not used for {idle:.0f} days"
    if policy.max_bytes is not None and left > policy.max_bytes:
        return "the workspaces take more space than allowed"
    return None


def _reason_to_keep(workspaces: Workspaces, one: Workspace, busy: Collection[str]) -> str | None:
    if one.run_id in busy:
        return "a run works in it"
    if one.kind == "cwd" and one.state != "archived":
        return "it is the person's own checkout"
    if workspaces.journal(one.id).exists() or _merging(workspaces, one):
        return "a restore is unfinished"
    if one.state == "conflict" or one.away or _pending(one):
        return "work of a remote run has not been brought back"
    return _unkeepable(Path(one.tree)) if one.kind == "worktree" else None


def _merging(workspaces: Workspaces, one: Workspace) -> bool:
    return (workspaces.folder(one.id) / MERGE_JOURNAL).exists()


def _pending(one: Workspace) -> bool:
    if not Path(one.repository).is_dir():
        return False
    return bool(Git(one.repository)("for-each-ref", "--count=1", f"{THEIRS}/{one.id}"))


def _unkeepable(tree: Path) -> str | None:
    """Repositories inside have a history that one ref of this one cannot keep."""
    for folder, folders, files in os.walk(tree):
        if Path(folder) != tree and (".git" in folders or ".git" in files):
            return f"it holds another repository: {Path(folder).relative_to(tree)}"
        if ".git" in folders:
            folders.remove(".git")
    return None


def _decided(
    workspaces: Workspaces, policy: Policy, verdict: Verdict, going_on: Callable[[], bool]
) -> Verdict:
    if not verdict.removes:
        return verdict
    if not going_on():
        return Verdict(verdict.workspace, False, "it goes the next time", verdict.bytes)
    if verdict.workspace.remote_dir is not None:
        reason = "its copy on another machine has not been removed"
        return Verdict(verdict.workspace, False, reason, verdict.bytes)
    return _carry_out(workspaces, policy, verdict)


def _carry_out(workspaces: Workspaces, policy: Policy, verdict: Verdict) -> Verdict:
    one = verdict.workspace
    try:
        with workspaces.held(one.id, "removing it"):
            if workspaces.get(one.id) != one:
                return Verdict(one, False, "it is in use", verdict.bytes)
            saved = _remove(workspaces, one, policy)
    except (Conflict, WorkspaceError, CannotSave, GitFailed, OSError) as problem:
        return Verdict(one, False, f"it cannot be removed: {problem}", verdict.bytes)
    return Verdict(one, True, verdict.reason, verdict.bytes, saved)


def _remove(workspaces: Workspaces, one: Workspace, policy: Policy) -> str | None:
    folder = workspaces.folder(one.id)
    saved = None
    if one.kind == "worktree":
        # Under another name first, so that nobody writes into it after it was saved.
        tree, going = Path(one.tree), folder / _GOING
        if tree.exists() and not going.exists():
            tree.rename(going)
        saved = _kept(one, going, policy, folder / _KEPT)
    shutil.rmtree(folder)
    return saved


def _kept(one: Workspace, going: Path, policy: Policy, note: Path) -> str | None:
    if not note.exists():
        saved = _save_or_put_back(one, going, policy) if going.exists() else None
        note.write_text(saved or "")
    git = Git(one.repository)
    if os.fsencode(f"worktree {one.tree}") in git("worktree", "list", "--porcelain", "-z").split(
        b"\0"
    ):
        git("worktree", "remove", "--force", "--force", one.tree)
    return note.read_text() or None


def _save_or_put_back(one: Workspace, going: Path, policy: Policy) -> str | None:
    try:
        return keep_all(Git(going), one.id, policy.ignored_bytes)
    except BaseException:
        going.rename(one.tree)
        raise


def keep_all(git: Git, name: str, ignored_bytes: int) -> str | None:
    """Put everything in a working directory that is nowhere else under saved refs."""
    _check_size(git, ignored_bytes)
    state = take(git, ignored=True)
    if state.special:
        raise CannotSave(f"{state.special[0]!r} is no file that can be kept.")
    for lost in _only_in_reflog(git):
        git("update-ref", f"{SAVED}/{name}/{lost[:16]}", lost)
    return None if _is_elsewhere(git, state) else save(git, state, name)


def _check_size(git: Git, limit: int) -> None:
    words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    size = sum(_sizes(Path(git.directory) / name for name in git.names(*words)))
    if size > limit:
        message = f"{size >> 20} MiB of ignored files are too much to keep in the repository."
        raise WorkspaceError(message, hint="Delete what can be made again, or raise the limit.")


def _sizes(paths: Iterable[Path]) -> Iterable[int]:
    return (path.lstat().st_size for path in paths if os.path.lexists(path))


def _is_elsewhere(git: Git, state: Snapshot) -> bool:
    """Whether a commit on some branch has all of it already."""
    if state.head is None or state.index is None or state.empty:
        return False
    tree = git.text("rev-parse", f"{state.head}^{{tree}}")
    if {state.tree, state.index} != {tree}:
        return False
    return bool(git("for-each-ref", "--count=1", f"--contains={state.head}", "refs/heads/"))


def _only_in_reflog(git: Git) -> list[str]:
    """Commits that were HEAD once and that no ref reaches; the reflog goes with the worktree."""
    seen = git.text("reflog", "show", "--format=%H", "HEAD").split("\n")
    ids = sorted({id for id in seen if id})
    if not ids:
        return []
    unreached = set(git.text("rev-list", *ids, "--not", "--all").split("\n"))
    return [id for id in ids if id in unreached]
