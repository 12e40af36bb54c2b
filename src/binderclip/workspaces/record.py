"""The records of workspaces: one folder each, found without a database, written whole."""

from __future__ import annotations

import builtins
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import msgspec

from binderclip.contract.errors import NotFound, WorkspaceError
from binderclip.contract.ids import FULL_ID, short
from binderclip.contract.wire import Wire, from_json, to_json
from binderclip.workspaces.holding import LOCK, held

RECORD = "workspace.json"
JOURNAL = "restore.json"
State = Literal["preparing", "active", "conflict", "archived"]


class Workspace(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A place that runs of one task work in, and what it came from."""

    id: str
    task_key: str
    kind: Literal["worktree", "cwd"]
    repository: str
    """The repository's own files, shared by all its worktrees."""
    source: str
    """The directory that it was made from."""
    tree: str
    """The root of the working directory."""
    cwd: str
    """Where runs start: `tree`, or the same place in it as `source` in its repository."""
    branch: str | None = None
    base: str | None = None
    """The commit that it started from."""
    base_snapshot: str | None = None
    """The state that it started from, when dirty files were taken along."""
    state: State = "preparing"
    agent_id: str | None = None
    environment_id: str | None = None
    remote_dir: str | None = None
    """The copy on the environment's machine, kept for the next run."""
    away: bool = False
    """Whether work may be in that copy that is not here yet."""
    run_id: str | None = None
    """The run that used it last."""
    notes: tuple[str, ...] = ()
    created_at: str = ""
    used_at: str = ""


class Workspaces:
    """All workspaces of a home, as folders below `worktrees/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, id: str) -> Path:
        """The folder of a workspace; only a full id has one, so no text can lead outside."""
        if not FULL_ID.fullmatch(id):
            raise NotFound(f"{id!r} is not the id of a workspace.", hint=_HINT)
        return self.root / id

    def journal(self, id: str) -> Path:
        """Where an unfinished restore notes what it is about to do."""
        return self.folder(id) / JOURNAL

    def held(self, id: str, doing: str) -> AbstractContextManager[None]:
        """Have a workspace alone while the block lasts; Conflict tells who has it."""
        folder = self.folder(id)
        if not folder.is_dir():
            raise NotFound(f"There is no workspace {short(id)}.", hint=_HINT)
        return held(folder / LOCK, f"Workspace {short(id)}", doing)

    def write(self, workspace: Workspace) -> Workspace:
        """Keep a record; it is whole on the disk or as it was."""
        folder = self.folder(workspace.id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = folder / f"{RECORD}.new"
        scratch.write_bytes(msgspec.json.format(to_json(workspace), indent=2) + b"\n")
        scratch.replace(folder / RECORD)
        return workspace

    def change(self, workspace: Workspace, **fields: Any) -> Workspace:
        """Keep a record with other values."""
        return self.write(msgspec.structs.replace(workspace, **fields))

    def get(self, id: str) -> Workspace:
        """A workspace by its id."""
        path = self.folder(id) / RECORD
        try:
            return from_json(path.read_bytes(), Workspace)
        except FileNotFoundError as problem:
            raise NotFound(f"There is no workspace {short(id)}.", hint=_HINT) from problem
        except msgspec.DecodeError as problem:
            raise WorkspaceError(f"{path} is damaged: {problem}") from problem

    def list(self) -> builtins.list[Workspace]:
        """All workspaces, the newest first."""
        folders = self.root.iterdir() if self.root.is_dir() else iter(())
        ids = sorted((p.name for p in folders if (p / RECORD).exists()), reverse=True)
        return [self.get(id) for id in ids if FULL_ID.fullmatch(id)]

    def find(self, text: str) -> Workspace:
        """The workspace that a person named by the end of its id, its task or its branch."""
        wanted = text.strip()
        found = [
            one
            for one in self.list()
            if one.id.endswith(wanted.lower()) or wanted in (one.task_key, one.branch)
        ]
        if len(found) != 1:
            many = f"{len(found)} workspaces are" if found else "No workspace is"
            raise NotFound(f"{many} called {text!r}.", hint=_HINT)
        return found[0]

    def of_task(self, task_key: str, repository: str) -> Workspace | None:
        """The workspace that runs of a task share, if there is one that is still in use."""
        for one in self.list():
            if (one.task_key, one.repository) == (task_key, repository) and one.state != "archived":
                return one
        return None


_HINT = "`binderclip workspaces` lists them."
