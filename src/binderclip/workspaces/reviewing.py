"""Looking at the work in a workspace and taking it over: diff, patch, merge, archive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from binderclip.contract.errors import WorkspaceError
from binderclip.workspaces.git import Git
from binderclip.workspaces.merging import Choice
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.repository import Repository, find
from binderclip.workspaces.restoring import Plan, Restore, Restored, save
from binderclip.workspaces.snapshot import take
from binderclip.workspaces.worktrees import base_of

MERGE_JOURNAL = "merge.json"


@dataclass(frozen=True)
class Work:
    """What was done in a workspace since it began, or since it was merged last."""

    commits: tuple[str, ...]
    """One line each, the newest first."""
    files: tuple[tuple[str, str], ...]
    """Status letter and path; uncommitted and untracked files count."""
    uncommitted: int


def work_of(workspace: Workspace) -> Work:
    """The work in a workspace, in short."""
    git = _git(workspace)
    base, now = base_of(git, workspace), take(git)
    commits = git.text("log", "--format=%h %s", f"{base.head}..HEAD").split("\n")
    return Work(
        commits=tuple(line for line in commits if line),
        files=_statuses(git, base.tree, now.tree),
        uncommitted=len(_statuses(git, f"{now.head}^{{tree}}", now.tree)),
    )


def diff(workspace: Workspace, *words: str) -> bytes:
    """The work as `git diff` shows it, untracked files included; `words` are its options."""
    git = _git(workspace)
    return git("diff", "--no-renames", *words, base_of(git, workspace).tree, take(git).tree)


def export(workspace: Workspace) -> bytes:
    """The work as a patch that `git apply` takes, binary files included."""
    return diff(workspace, "--binary", "--full-index")


def merge_into_source(
    workspaces: Workspaces, workspace: Workspace, choice: Choice | None = None
) -> Restored:
    """Bring the work into the checkout that the workspace was made from.

    Commits are fast-forwarded or merged, uncommitted files arrive uncommitted; RestoreConflict
    leaves that checkout as it is.
    """
    target = find(workspace.source)
    if target.top is None or workspace.kind != "worktree":
        message = "There is no other checkout to merge into."
        raise WorkspaceError(message, hint=f"Merge the branch {workspace.branch} with git.")
    with workspaces.held(workspace.id, "merging it"):
        # As it is now: somebody else may have merged it while this one waited.
        return _merge(workspaces, workspaces.get(workspace.id), target, choice)


def _merge(
    workspaces: Workspaces, workspace: Workspace, target: Repository, choice: Choice | None
) -> Restored:
    git = _git(workspace)
    journal = workspaces.folder(workspace.id) / MERGE_JOURNAL

    def merged(plan: Plan) -> None:
        workspaces.change(workspace, base=plan.theirs_head, base_snapshot=plan.theirs)

    # Not below the workspace's id, where the work of its remote runs waits.
    restore = Restore(target.git, f"merge/{workspace.id}", journal, done=merged)
    if journal.exists():
        # What an interrupted merge was about to bring is older than what is there now.
        restore.resume()
        workspace = workspaces.get(workspace.id)
    base, theirs = base_of(git, workspace), take(git)
    save(git, theirs, workspace.id)
    return restore.bring(base, replace(theirs, branch=base.branch), choice)


def archive(workspaces: Workspaces, workspace: Workspace) -> Workspace:
    """Say that a workspace is done with: no run uses it again, and clean-up may remove it."""
    with workspaces.held(workspace.id, "archiving it"):
        return workspaces.change(workspaces.get(workspace.id), state="archived")


def _git(workspace: Workspace) -> Git:
    if not Path(workspace.tree).is_dir():
        raise WorkspaceError(f"{workspace.tree} is gone.", hint="Its branch has the commits.")
    return Git(workspace.tree)


def _statuses(git: Git, old: str, new: str) -> tuple[tuple[str, str], ...]:
    parts = git.names("diff-tree", "-r", "-z", "--name-status", "--no-renames", old, new)
    return tuple((parts[at], parts[at + 1]) for at in range(0, len(parts), 2))
