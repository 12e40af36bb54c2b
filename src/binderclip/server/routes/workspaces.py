"""Where tasks work: looking at it, taking the work over, cleaning up (W1-W8).

Reading is for people at this machine, since a workspace is their repository; changes need a person.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from binderclip.contract.errors import Conflict, RunNotFound, WorkspaceError
from binderclip.contract.ids import FULL_ID, short
from binderclip.contract.operation import WorkspaceOperation
from binderclip.contract.run import TERMINAL_STATES
from binderclip.contract.wire import Wire
from binderclip.runs.places import clean_workspaces, finalize_again
from binderclip.runs.tidying import policy_from
from binderclip.runs.workplace import all_workspaces
from binderclip.server.answers import polled
from binderclip.server.auth import NoAgent, TheActor, ThePerson
from binderclip.server.errors import Refused
from binderclip.server.requests import AnyLimit, Body, Cursor, Id, Limit, Position, cut, paged
from binderclip.server.routes.issues import task_of
from binderclip.server.routes.runs import seen_run
from binderclip.server.schema import answer, answers, page_of, plain
from binderclip.server.site import Site, TheSite
from binderclip.store.operations import FINALIZE, Operations
from binderclip.workspaces import reviewing
from binderclip.workspaces.cleaning import Policy, Verdict
from binderclip.workspaces.disk import CannotSave
from binderclip.workspaces.git import GitFailed
from binderclip.workspaces.merging import Choice
from binderclip.workspaces.record import Workspace
from binderclip.workspaces.sizes import Place

_GIB = 1 << 30
_DIFF = "text/x-diff"
_Id = Annotated[str, Path(pattern=f"^{FULL_ID.pattern}$")]


class WorkspaceView(Workspace, frozen=True, kw_only=True, omit_defaults=False):
    """A workspace and the space that it takes."""

    bytes: int | None
    """None: not counted yet; it goes on, and a later request tells it."""


class ChangedFile(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A file that differs from what the workspace began with; `status` is git's letter."""

    status: str
    path: str


class WorkspaceDetail(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A workspace with the work in it and the operations of its last run."""

    workspace: WorkspaceView
    commits: tuple[str, ...]
    files: tuple[ChangedFile, ...]
    uncommitted: int
    problem: str | None
    """Why the work cannot be told, if so."""
    operations: tuple[WorkspaceOperation, ...]


class Merged(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a merge changed in the checkout that the workspace was made from."""

    changed: tuple[str, ...]
    head: str | None
    merged: bool


class CleanVerdict(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What cleaning did, or would do, with one workspace, and why."""

    workspace_id: str
    removes: bool
    reason: str
    bytes: int
    saved_ref: str | None


class Cleaning(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The verdict on every workspace."""

    dry_run: bool
    items: tuple[CleanVerdict, ...]


class CleaningPolicy(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """When the server removes workspaces by itself; it keeps what is only there."""

    automatic: bool
    idle_days: float | None
    max_bytes: int | None


class Listener(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A port of this machine's loopback; None where nobody listens for agents elsewhere."""

    port: int | None


class Taking(Body):
    """How a conflict is settled; without it, a conflict is told."""

    take: Choice | None = None


class CleanWish(Body):
    dry_run: bool = True
    idle_days: Annotated[float, Field(ge=0, le=100_000)] = Policy.idle_days
    max_gib: Annotated[float, Field(ge=0, le=1_000_000)] | None = None


class Waiver(Body):
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]


WorkspacePage = page_of("WorkspacePage", WorkspaceView)
OperationPage = page_of("OperationPage", WorkspaceOperation)


def _named(site: TheSite, _: NoAgent, workspace_id: _Id) -> Workspace:
    return all_workspaces(site.database).get(workspace_id)


TheWorkspace = Annotated[Workspace, Depends(_named)]
router = APIRouter(prefix="/api/workspaces", tags=["workspaces"])


@router.get("", responses=answers(WorkspacePage))
def list_workspaces(
    site: TheSite,
    _: NoAgent,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    issue_id: Annotated[str | None, Query(alias="issueId", max_length=64)] = None,
) -> Response:
    """Workspaces, newest first, with their sizes as far as these are known within a second."""
    known = all_workspaces(site.database).list()
    if issue_id is not None:
        known = [one for one in known if one.task_key == issue_id]
    found = [one for one in known if cursor is None or one.id < cursor]
    items, more = paged(found[: limit + 1], limit)
    return polled(request, WorkspacePage(items=_views(site, items), next=more))


@router.get("/policy", responses=answers(CleaningPolicy))
def cleaning_policy(_: NoAgent, request: Request) -> Response:
    """Which workspaces go by themselves; set by the environment of `binderclip up`."""
    policy = policy_from(os.environ)
    if policy is None:
        return polled(request, CleaningPolicy(automatic=False, idle_days=None, max_bytes=None))
    told = CleaningPolicy(automatic=True, idle_days=policy.idle_days, max_bytes=policy.max_bytes)
    return polled(request, told)


@router.get("/operations", responses=answers(OperationPage))
def workspace_operations(
    site: TheSite,
    actor: TheActor,
    request: Request,
    run_id: Annotated[str | None, Query(alias="runId", max_length=64)] = None,
    issue_id: Annotated[str | None, Query(alias="issueId", max_length=64)] = None,
    limit: AnyLimit = None,
    cursor: Position = 0,
) -> Response:
    """What was done to the workspaces of a run or of a task, oldest first (W2)."""
    if (run_id is None) == (issue_id is None):
        message = "Name a run or an issue."
        raise Refused(422, "invalid_request", message, fields={"runId": "or issueId"})
    if run_id is not None:
        seen_run(site, actor, run_id)
    task_id = task_of(site, actor, issue_id).id if issue_id else ""
    with site.database.reading() as connection:
        operations = Operations(connection)
        found = operations.of_run(run_id) if run_id else operations.of_task(task_id)
    page, more = cut(found, limit, cursor)
    return polled(request, OperationPage(items=page, next=more))


@router.post("/operations/{operation_id}/waive", responses=answers(WorkspaceOperation))
def waive_operation(site: TheSite, person: ThePerson, operation_id: Id, body: Waiver) -> Response:
    """Accept that a workspace could not be finalized; what waited for it goes on (W4)."""
    return answer(site.desk.waive_finalize(operation_id, person.name, body.reason))


@router.post("/clean", responses=answers(Cleaning))
def clean(site: TheSite, _: ThePerson, body: CleanWish | None = None) -> Response:
    """Remove workspaces that are archived or unused; unless told so, only say what would go."""
    wish = body or CleanWish()
    policy = Policy(wish.idle_days, None if wish.max_gib is None else int(wish.max_gib * _GIB))
    with _telling():
        verdicts = clean_workspaces(site.desk, policy, dry_run=wish.dry_run)
    items = tuple(_verdict(one) for one in verdicts)
    return answer(Cleaning(dry_run=wish.dry_run, items=items))


@router.post("/listener", responses=answers(Listener))
def open_listener(site: TheSite, _: ThePerson) -> Response:
    """Open the listener that agents on other machines reach, for a run of another process (W6)."""
    return answer(Listener(port=site.guarded_port()))


@router.get("/{workspace_id}", responses=answers(WorkspaceDetail))
def show_workspace(site: TheSite, request: Request, one: TheWorkspace) -> Response:
    """One workspace: the work in it since it began or was merged, and its operations."""
    work, problem = reviewing.Work((), (), 0), None
    try:
        with _telling():
            work = reviewing.work_of(one)
    except WorkspaceError as found:
        problem = found.message
    detail = WorkspaceDetail(
        workspace=_view(site, one),
        commits=work.commits,
        files=tuple(ChangedFile(status=letter, path=path) for letter, path in work.files),
        uncommitted=work.uncommitted,
        problem=problem,
        operations=tuple(_operations(site, one)),
    )
    return polled(request, detail)


@router.get(
    "/{workspace_id}/diff", response_class=Response, responses=plain("The work as a diff.", _DIFF)
)
def diff_workspace(one: TheWorkspace, stat: bool = False) -> Response:
    """What was done, uncommitted and new files included; `stat` tells only how much."""
    with _telling():
        return Response(reviewing.diff(one, *(["--stat"] if stat else [])), media_type=_DIFF)


@router.get(
    "/{workspace_id}/export",
    response_class=Response,
    responses=plain("A patch that `git apply` takes.", _DIFF),
)
def export_workspace(one: TheWorkspace) -> Response:
    """The work as a patch, binary files included."""
    name = f'attachment; filename="workspace-{short(one.id)}.patch"'
    with _telling():
        patch = reviewing.export(one)
    return Response(patch, media_type=_DIFF, headers={"content-disposition": name})


@router.post("/{workspace_id}/merge", responses=answers(Merged))
def merge_workspace(
    site: TheSite, _: ThePerson, one: TheWorkspace, body: Taking | None = None
) -> Response:
    """Bring the work into the checkout that it was made from; a conflict changes nothing."""
    with _telling():
        take = body.take if body else None
        done = reviewing.merge_into_source(all_workspaces(site.database), one, take)
    return answer(Merged(changed=done.changed, head=done.head, merged=done.merged))


@router.post("/{workspace_id}/archive", responses=answers(WorkspaceView))
def archive_workspace(site: TheSite, _: ThePerson, one: TheWorkspace) -> Response:
    """Say that a workspace is done with; cleaning may then remove it."""
    _refuse_while_working(site, one)
    return answer(_view(site, reviewing.archive(all_workspaces(site.database), one)))


@router.post("/{workspace_id}/retry", responses=answers(WorkspaceOperation))
def retry_workspace(
    site: TheSite, _: ThePerson, one: TheWorkspace, body: Taking | None = None
) -> Response:
    """Bring back what a run left elsewhere; `take` settles a conflict (W4, W6)."""
    run_id = _refuse_while_working(site, one)
    if run_id is None:
        raise WorkspaceError("No run has worked in it yet.")
    with _telling():
        return answer(finalize_again(site.desk, run_id, body.take if body else None))


@router.post("/{workspace_id}/waive", responses=answers(WorkspaceOperation))
def waive_workspace(site: TheSite, person: ThePerson, one: TheWorkspace, body: Waiver) -> Response:
    """Go on without the work that the last run could not bring back; it is kept (W4)."""
    ends = [step for step in _operations(site, one) if step.kind == FINALIZE]
    if not ends:
        raise Conflict("There is no failed finalize to waive.", code="not_failed")
    return answer(site.desk.waive_finalize(ends[-1].id, person.name, body.reason))


def _view(site: Site, one: Workspace) -> WorkspaceView:
    return _views(site, [one])[0]


def _views(site: Site, found: Sequence[Workspace]) -> list[WorkspaceView]:
    workspaces = all_workspaces(site.database)
    sizes = site.sizes.of({one.id: Place(workspaces.folder(one.id), one.used_at) for one in found})
    return [WorkspaceView(**_fields(one), bytes=sizes[one.id]) for one in found]


def _fields(one: Workspace) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


def _operations(site: Site, one: Workspace) -> list[WorkspaceOperation]:
    if one.run_id is None:
        return []
    with site.database.reading() as connection:
        return Operations(connection).of_run(one.run_id)


def _refuse_while_working(site: Site, one: Workspace) -> str | None:
    """The last run of a workspace, once it is over."""
    if one.run_id is None:
        return None
    try:
        status = site.run(one.run_id).status
    except RunNotFound:
        return one.run_id
    if status not in TERMINAL_STATES:
        message = f"Run {short(one.run_id)} works in it."
        raise Conflict(message, hint="Wait for it, or cancel it.", code="workspace_busy")
    return one.run_id


def _verdict(one: Verdict) -> CleanVerdict:
    return CleanVerdict(
        workspace_id=one.workspace.id,
        removes=one.removes,
        reason=one.reason,
        bytes=one.bytes,
        saved_ref=one.saved,
    )


@contextmanager
def _telling() -> Iterator[None]:
    """What git and the disk say is told to whoever asked."""
    try:
        yield
    except (GitFailed, CannotSave, OSError) as problem:
        raise WorkspaceError(str(problem)) from problem
