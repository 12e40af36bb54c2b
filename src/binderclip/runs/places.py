"""Which workspace a run works in (W1, W5), made ready before anything of the run starts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from binderclip.contract.agent import Agent
from binderclip.contract.company import Environment
from binderclip.contract.errors import (
    BinderclipError,
    Conflict,
    RestoreConflict,
    RunNotFound,
    WorkspaceError,
)
from binderclip.contract.operation import WorkspaceOperation
from binderclip.contract.run import ExecutionResult
from binderclip.contract.task import Task
from binderclip.runs.control import Control
from binderclip.runs.workplace import Workplace, all_workspaces, environment_target
from binderclip.store import runs
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.environments import Environments
from binderclip.store.operations import FINALIZE, Operations
from binderclip.store.runs import RunStore
from binderclip.store.tasks import Tasks
from binderclip.workspaces.cleaning import Policy, Verdict, clean, judge
from binderclip.workspaces.merging import Choice
from binderclip.workspaces.record import Workspace
from binderclip.workspaces.repository import reason_against_worktree
from binderclip.workspaces.worktrees import TEMPLATE, Wanted, prepare, prepare_directory

Port = Callable[[], int | None]


@dataclass(frozen=True)
class _Case:
    """What the rows say about where a run works."""

    task_key: str
    agent: Agent
    task: Task | None
    environment: Environment | None

    @property
    def directory(self) -> str | None:
        named = (self.task.cwd if self.task else None) or self.agent.adapter_config.get("cwd")
        return str(named) if named else None

    @property
    def mode(self) -> str:
        return (self.task.workspace if self.task else None) or self.agent.workspace

    def wanted(self, directory: str) -> Wanted:
        task = self.task
        return Wanted(
            task_key=self.task_key,
            directory=directory,
            label=f"{task.identifier}-{task.title[:40]}".lower() if task else self.agent.name,
            agent_id=self.agent.id,
            environment_id=self.environment.id if self.environment else None,
            environment_named=bool(task and task.environment_id),
            template=(task.branch_template if task else None) or TEMPLATE,
            base=task.base_ref if task else None,
            dirty=bool(task and task.with_dirty_files),
        )


def open_workplace(
    control: Control, run_id: str, port: Port = lambda: None, *, worktrees: bool = True
) -> Workplace | None:
    """Make the workspace of a run ready; None if it works in its directory as it is."""
    case = _read(control.db, run_id)
    ssh = environment_target(case.environment)
    worktree = worktrees and _has_worktree(case)
    if ssh is None and not worktree:
        return None
    place = Workplace(control, run_id, case.task.id if case.task else None, None, ssh)
    place.api_port = port() if ssh else None
    begun = _begin(control, place)
    try:
        _fill(control, place, case, worktree)
        place.carry()
    except BinderclipError as problem:
        _could_not(control, place, begun, problem)
        raise
    place.note_prepared(begun)
    return place


def find_workplace(control: Control, run_id: str) -> Workplace | None:
    """The workplace of a run that was prepared before, by this process or another."""
    with control.db.reading() as connection:
        found = Operations(connection).of_run(run_id)
    made = [one for one in found if one.kind == "worktree_prepare" and one.status == "succeeded"]
    if not made:
        return None
    detail: dict[str, Any] = made[-1].detail
    case = _read(control.db, run_id)
    id = detail.get("workspaceId")
    workspace = all_workspaces(control.db).get(id) if id else None
    ssh = environment_target(case.environment)
    return Workplace(control, run_id, made[-1].task_id, workspace, ssh)


def finish_workplace(control: Control, run_id: str, result: ExecutionResult | None) -> None:
    """Finalize the workspace of a run whose record was finished by somebody who leaves it alone."""
    place = find_workplace(control, run_id)
    if place is not None:
        place.finalize(result or ExecutionResult(exit_code=None, signal=None, timed_out=False))


def finalize_again(
    control: Control, run_id: str, choice: Choice | None = None
) -> WorkspaceOperation:
    """Try a failed finalize once more; `choice` settles a conflict (W4, W6)."""
    place = find_workplace(control, run_id)
    if place is None:
        raise WorkspaceError(f"Run {run_id} has no workspace to finalize.")
    return place.bring_back(choice)


def _has_worktree(case: _Case) -> bool:
    if case.task is None or case.mode == "cwd" or case.directory is None:
        return False
    return reason_against_worktree(case.directory) is None


def _fill(control: Control, place: Workplace, case: _Case, worktree: bool) -> None:
    workspaces, now = all_workspaces(control.db), control.now()
    directory = case.directory
    if worktree and directory is not None:
        place.workspace = prepare(workspaces, case.wanted(directory), now, place.run_id)
    elif place.ssh is not None and not place.ssh.in_place:
        if directory is None:
            message = "A run on another machine needs a repository to work in."
            raise WorkspaceError(message, hint="Set `cwd` on the task or the agent, or `inPlace`.")
        wanted = case.wanted(directory)
        place.workspace = prepare_directory(workspaces, wanted, now, place.run_id)


def _read(db: Database, run_id: str) -> _Case:
    with db.reading() as connection:
        run = runs.find(connection, run_id)
        if run is None:
            raise RunNotFound(f"The database has no run {run_id}.")
        agent = Agents(connection).get(run["agent_id"])
        task = Tasks(connection).get(run["task_id"]) if run["task_id"] else None
        named = (task.environment_id if task else None) or agent.environment_id
        environment = Environments(connection).get(named) if named else None
    return _Case(run["task_key"], agent, task, environment)


def _begin(control: Control, place: Workplace) -> WorkspaceOperation:
    with control.db.writing() as connection:
        operations = Operations(connection)
        for left in operations.of_run(place.run_id):
            if left.status == "running":
                operations.end(left.id, "failed", control.now(), "It was interrupted.")
        kind = "worktree_prepare"
        return operations.begin(place.run_id, place.task_id, kind, control.now())  # type: ignore[arg-type]


def _could_not(
    control: Control, place: Workplace, begun: WorkspaceOperation, problem: BinderclipError
) -> None:
    """Nothing ran, so there is nothing to finalize, unless older work still waits to come back."""
    with control.db.writing() as connection:
        operations, now = Operations(connection), control.now()
        operations.end(begun.id, "failed", now, problem.message)
        final = operations.begin(place.run_id, place.task_id, FINALIZE, now)
    waits = isinstance(problem, RestoreConflict)
    control.end_finalize(final.id, succeeded=not waits, error=problem.message if waits else None)


def remove_copy(control: Control, workspace: Workspace) -> Workspace:
    """Remove the copy of a workspace on another machine, once all of it is here (W6, W8)."""
    if workspace.remote_dir is None or workspace.environment_id is None:
        return workspace
    with control.db.reading() as connection:
        ssh = environment_target(Environments(connection).get(workspace.environment_id))
    place = Workplace(control, workspace.run_id or "", None, workspace, ssh)
    return place.remove_copy() or workspace


def clean_workspaces(
    control: Control,
    policy: Policy,
    *,
    dry_run: bool = False,
    going_on: Callable[[], bool] = lambda: True,
) -> list[Verdict]:
    """Remove what the policy lets go, here and on other machines; what is in use stays."""
    workspaces = all_workspaces(control.db)
    busy = _busy(control.db)
    if not dry_run:
        for verdict in judge(workspaces, policy, control.clock(), busy):
            if verdict.removes and verdict.workspace.remote_dir is not None and going_on():
                with suppress(WorkspaceError, Conflict):
                    # A copy that cannot be removed keeps its workspace, with that as the reason.
                    remove_copy(control, verdict.workspace)
    now = control.clock()
    return clean(workspaces, policy, now, busy=busy, dry_run=dry_run, going_on=going_on)


def _busy(db: Database) -> set[str]:
    """Runs whose workspace is in use: those that go on, and those before them in their tasks."""
    unfinished = set(RunStore(db).unfinished())
    with db.reading() as connection:
        rows = [runs.find(connection, run_id) for run_id in unfinished]
    keys = {row["task_key"] for row in rows if row is not None}
    # A run that is about to start has not put its name on the workspace that it will use.
    before = {one.run_id for one in all_workspaces(db).list() if one.task_key in keys}
    return unfinished | {run_id for run_id in before if run_id is not None}
