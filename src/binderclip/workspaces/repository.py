"""What a directory is to git: which repository, which commit, and what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from binderclip.contract.errors import WorkspaceError
from binderclip.workspaces.git import OLDEST, Git, GitFailed, version


@dataclass(frozen=True)
class Repository:
    """A repository as seen from one directory."""

    directory: Path
    """Where somebody stood; inside `top`, or the repository itself if it is bare."""
    top: Path | None
    """The root of the working directory; a bare repository has none."""
    common: Path
    """The repository's own files, shared by all its worktrees."""
    head: str | None
    branch: str | None
    linked: bool
    shallow: bool
    sparse: bool
    submodules: tuple[str, ...]
    lfs: bool

    @property
    def git(self) -> Git:
        return Git(self.top or self.common)

    @property
    def name(self) -> str:
        """What people call it."""
        folder = self.common if self.top is None or self.linked else self.top
        plain = folder.parent if folder.name == ".git" else folder
        return plain.name.removesuffix(".git") or "repository"

    @property
    def inside(self) -> str:
        """Where `directory` lies in the working directory; empty for its root."""
        if self.top is None or self.directory == self.top:
            return ""
        return str(self.directory.relative_to(self.top))

    def notes(self) -> list[str]:
        """What a worktree of this repository will lack, in words."""
        told = []
        if self.submodules:
            told.append(f"submodules are not checked out: {', '.join(self.submodules)}")
        if self.lfs:
            told.append("files kept by Git LFS are pointers; `git lfs pull` fetches them")
        if self.sparse:
            told.append("the checkout is sparse, as the repository's is")
        if self.shallow:
            told.append("the history is shallow")
        return told


def find(directory: str | Path) -> Repository:
    """The repository that a directory is in; WorkspaceError says why there is none to work with."""
    place = Path(directory).resolve()
    _check_git()
    if not place.is_dir():
        raise WorkspaceError(f"{place} is not a directory.", hint="Create it or set another cwd.")
    git = Git(place)
    try:
        bare, inside, common = git.text(
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--is-inside-work-tree",
            "--git-common-dir",
        ).split("\n")
        top = Path(git.text("rev-parse", "--show-toplevel")) if inside == "true" else None
    except GitFailed as problem:
        raise _unusable(place, problem) from problem
    if top is None and bare != "true":
        message = f"{place} lies in a repository's own files."
        raise WorkspaceError(message, hint="Set the cwd to its working directory.")
    if top is not None and not (top == place or top in place.parents):
        message = f"The repository of {place} says that its files are in {top}."
        raise WorkspaceError(message, hint="Remove core.worktree from its config.")
    return _facts(place, top, Path(common))


def reason_against_worktree(directory: str | Path) -> str | None:
    """Why a task works in the directory itself and not in a worktree; None if it can have one."""
    try:
        found = find(directory)
    except WorkspaceError as problem:
        return problem.message
    return None if found.head else f"{found.top} has no commit yet."


def _facts(place: Path, top: Path | None, common: Path) -> Repository:
    git = Git(top or common)
    own = Path(git.text("rev-parse", "--path-format=absolute", "--git-dir"))
    head = git.resolve("HEAD")
    attributes = git.maybe("show", f"{head}:.gitattributes") if head else None
    return Repository(
        directory=place,
        top=top,
        common=common,
        head=head,
        branch=git.maybe("symbolic-ref", "--quiet", "HEAD"),
        linked=own != common,
        shallow=git.text("rev-parse", "--is-shallow-repository") == "true",
        sparse=git.maybe("config", "--bool", "core.sparseCheckout") == "true",
        submodules=_submodules(git, head),
        lfs="filter=lfs" in (attributes or ""),
    )


def _submodules(git: Git, head: str | None) -> tuple[str, ...]:
    if head is None:
        return ()
    if git.maybe("rev-parse", "--quiet", "--verify", f"{head}:.gitmodules") is None:
        return ()
    entries = git("ls-tree", "-r", "-z", head).decode("utf-8", "surrogateescape").split("\0")
    return tuple(entry.partition("\t")[2] for entry in entries if entry.startswith("160000"))


def _check_git() -> None:
    found = version()
    if found is None:
        raise WorkspaceError("git is not installed.", hint="Install it, or use `workspace: cwd`.")
    if found < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise WorkspaceError(f"This git is too old; {needed} or newer is needed.")


def _unusable(place: Path, problem: GitFailed) -> WorkspaceError:
    if "not a git repository" in problem.said:
        return WorkspaceError(
            f"{place} is not in a git repository.", hint="Use `workspace: cwd`, or `git init`."
        )
    if "dubious ownership" in problem.said:
        hint = f"Trust it: `git config --global --add safe.directory {place}`."
        return WorkspaceError(f"{place} belongs to another user.", hint=hint)
    return WorkspaceError(f"{place} cannot be used: {problem}")
