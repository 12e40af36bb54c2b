"""A git worktree per task: made from the person's state, used again by later runs (W1, W5).

The record stands before the worktree does, so that a crash leaves something to go on from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from binderclip.contract.errors import WorkspaceError
from binderclip.contract.ids import new_id, short
from binderclip.workspaces.changing import Changer, changes
from binderclip.workspaces.git import Git, GitFailed
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.repository import Repository, find
from binderclip.workspaces.restoring import save
from binderclip.workspaces.snapshot import Snapshot, read, take

TEMPLATE = "binderclip/{task}"
_UNFIT = re.compile(r"[\x00-\x20\x7f~^:?*\[\]\\{}]+|\.{2,}|@\{|/{2,}|\.lock(?=/|$)")


@dataclass(frozen=True)
class Wanted:
    """What a task's workspace shall be."""

    task_key: str
    directory: str
    """Where the task's repository is."""
    label: str = ""
    """What the branch is named after; the task's key if empty."""
    template: str = TEMPLATE
    base: str | None = None
    """The ref to start from; the person's HEAD if None."""
    dirty: bool = False
    """Whether uncommitted files come along."""
    agent_id: str | None = None
    environment_id: str | None = None
    environment_named: bool = False
    """Whether the task itself names the environment (W5)."""


def prepare(
    workspaces: Workspaces, wanted: Wanted, now: str, run_id: str | None = None
) -> Workspace:
    """The workspace of a task, made if there is none yet."""
    repository = find(wanted.directory)
    known = workspaces.of_task(wanted.task_key, str(repository.common))
    if known is None:
        known = workspaces.write(_planned(workspaces, repository, wanted, now))
    check_environment(known, wanted)
    try:
        if known.state == "preparing":
            _make(repository, known)
        else:
            _revive(repository, known)
    except GitFailed as problem:
        raise WorkspaceError(f"The worktree could not be made: {problem}") from problem
    Path(known.cwd).mkdir(parents=True, exist_ok=True)
    state = "conflict" if known.state == "conflict" else "active"
    who = wanted.agent_id or known.agent_id
    return workspaces.change(
        known,
        state=state,
        used_at=now,
        run_id=run_id,
        agent_id=who,
        environment_id=wanted.environment_id,
    )


def prepare_directory(
    workspaces: Workspaces, wanted: Wanted, now: str, run_id: str | None = None
) -> Workspace:
    """The person's own checkout as a workspace, for runs that take it to another machine."""
    repository = find(wanted.directory)
    if repository.top is None:
        raise WorkspaceError(f"{wanted.directory} is a bare repository; it has no files to send.")
    known = workspaces.of_task(wanted.task_key, str(repository.common))
    if known is not None:
        check_environment(known, wanted)
        return workspaces.change(known, used_at=now, run_id=run_id)
    made = Workspace(
        id=new_id(),
        task_key=wanted.task_key,
        kind="cwd",
        repository=str(repository.common),
        source=str(repository.directory),
        tree=str(repository.top),
        cwd=str(repository.directory),
        branch=_short(repository.branch),
        base=repository.head,
        state="active",
        agent_id=wanted.agent_id,
        environment_id=wanted.environment_id,
        run_id=run_id,
        created_at=now,
        used_at=now,
    )
    return workspaces.write(made)


def check_environment(known: Workspace, wanted: Wanted) -> None:
    """Refuse to use a workspace silently from another environment for another agent (W5)."""
    if known.environment_id == wanted.environment_id:
        return
    if known.away:
        raise WorkspaceError(
            f"Workspace {short(known.id)} has work in environment {known.environment_id} "
            "that was not brought back.",
            hint=f"`binderclip workspaces resolve {short(known.id)}` brings it.",
        )
    if wanted.environment_named:
        return
    if known.agent_id == wanted.agent_id and known.remote_dir is None:
        return
    raise WorkspaceError(
        f"Workspace {short(known.id)} belongs to environment "
        f"{known.environment_id or 'of this machine'}, "
        f"and this run would use {wanted.environment_id or 'this machine'}.",
        hint="Name the environment on the task, or archive the workspace.",
    )


def base_of(git: Git, workspace: Workspace) -> Snapshot:
    """The state that a workspace started from."""
    if workspace.base_snapshot is not None:
        return read(git, workspace.base_snapshot)
    assert workspace.base is not None
    tree = git.text("rev-parse", f"{workspace.base}^{{tree}}")
    branch = f"refs/heads/{workspace.branch}" if workspace.branch else None
    return Snapshot(workspace.base, tree, workspace.base, branch, tree)


def _planned(workspaces: Workspaces, repository: Repository, wanted: Wanted, now: str) -> Workspace:
    git, id = repository.git, new_id()
    if repository.head is None and wanted.base is None:
        message = f"{repository.directory} has no commit yet, so there is nothing to branch from."
        raise WorkspaceError(message, hint="Commit something, or use `workspace: cwd`.")
    base = git.resolve(wanted.base or "HEAD")
    if base is None:
        raise WorkspaceError(f"There is no commit called {wanted.base!r}.")
    dirty = _dirty(repository, wanted, base, id)
    tree = workspaces.folder(id) / repository.name
    return Workspace(
        id=id,
        task_key=wanted.task_key,
        kind="worktree",
        repository=str(repository.common),
        source=str(repository.directory),
        tree=str(tree),
        cwd=str(tree / repository.inside),
        branch=_free_branch(git, wanted),
        base=base,
        base_snapshot=dirty.id if dirty else None,
        agent_id=wanted.agent_id,
        environment_id=wanted.environment_id,
        notes=tuple(repository.notes()),
        created_at=now,
        used_at=now,
    )


def _dirty(repository: Repository, wanted: Wanted, base: str, id: str) -> Snapshot | None:
    if not wanted.dirty or repository.top is None:
        return None
    if base != repository.head:
        message = "Uncommitted files can only come along to a worktree of the same commit."
        raise WorkspaceError(message, hint="Leave the base out, or commit first.")
    taken = take(repository.git)
    save(repository.git, taken, id)
    return taken


def _make(repository: Repository, workspace: Workspace) -> None:
    assert workspace.branch and workspace.base
    tree, git = Path(workspace.tree), repository.git
    if not _is_worktree(tree):
        _discard_remains(git, tree)
        exists = git.resolve(f"refs/heads/{workspace.branch}") is not None
        new = ["--no-track", "-b", workspace.branch, str(tree), workspace.base]
        where = [str(tree), workspace.branch] if exists else new
        git("worktree", "add", "--lock", "--reason", "binderclip", *where)
    if workspace.base_snapshot is not None:
        _bring_dirty(Git(tree), read(git, workspace.base_snapshot))


def _bring_dirty(git: Git, state: Snapshot) -> None:
    with Changer(git, git.directory) as changer:
        changer.make(changes(git, f"{state.head}^{{tree}}", state.tree))
        for path in state.empty:
            changer.make_directory(path)
        for path, mode in state.modes.items():
            changer.set_mode(path, mode)
    if state.index is not None:
        git("read-tree", "--reset", state.index)
        git("update-index", "-q", "--refresh", ok=(0, 1))


def _revive(repository: Repository, workspace: Workspace) -> None:
    """Bring back a worktree whose directory somebody removed; its branch has the commits."""
    if workspace.kind == "worktree" and not _is_worktree(Path(workspace.tree)):
        _discard_remains(repository.git, Path(workspace.tree))
        _make(repository, workspace)


def _is_worktree(tree: Path) -> bool:
    if not (tree / ".git").exists():
        return False
    return Git(tree).maybe("rev-parse", "--verify", "--quiet", "HEAD") is not None


def _discard_remains(git: Git, tree: Path) -> None:
    """Forget a worktree of which nothing but its registration, or an empty folder, is left."""
    if tree.exists() and any(tree.iterdir()):
        message = f"{tree} is there, but it is no worktree any more."
        raise WorkspaceError(message, hint="Move what is in it somewhere else, then try again.")
    entries = git.text("worktree", "list", "--porcelain").split("\n")
    if f"worktree {tree}" in entries:
        git("worktree", "remove", "--force", "--force", str(tree))


def _free_branch(git: Git, wanted: Wanted) -> str:
    label = _UNFIT.sub("-", wanted.label or wanted.task_key).strip("-./") or "task"
    agent = _UNFIT.sub("-", wanted.agent_id or "agent").strip("-./")
    plain = wanted.template.replace("{task}", label).replace("{agent}", agent).strip("/")
    parents = plain.split("/")[:-1]
    above = ["/".join(parents[:end]) for end in range(1, len(parents) + 1)]
    possible = not any(git.resolve(f"refs/heads/{part}") for part in above)
    if possible and git.maybe("check-ref-format", "--branch", plain) is not None:
        names = (f"{plain}-{number}" if number > 1 else plain for number in count(1))
        return next(name for name in names if not _taken(git, name))
    raise WorkspaceError(
        f"{plain!r} cannot be the name of a branch.", hint="Set another branch template."
    )


def _taken(git: Git, name: str) -> bool:
    """Whether a branch has this name, or begins with it."""
    words = ("for-each-ref", "--count=1", f"refs/heads/{name}", f"refs/heads/{name}/")
    return bool(git(*words))


def _short(branch: str | None) -> str | None:
    return branch.removeprefix("refs/heads/") if branch else None
