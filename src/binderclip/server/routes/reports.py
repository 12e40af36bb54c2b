"""Looking back: what was spent, what happened, what was done to workspaces."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from binderclip.contract.company import Activity, CostLine
from binderclip.contract.operation import WorkspaceOperation
from binderclip.server.answers import polled
from binderclip.server.auth import TheActor, ThePerson
from binderclip.server.errors import Refused
from binderclip.server.requests import Body, Cursor, Id, Limit, paged
from binderclip.server.routes.issues import task_of
from binderclip.server.routes.runs import seen_run
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import TheSite
from binderclip.store.activity import Activities
from binderclip.store.costs import Costs
from binderclip.store.operations import Operations

router = APIRouter(tags=["reports"])
CostPage = page_of("CostPage", CostLine)
ActivityPage = page_of("ActivityPage", Activity)
OperationPage = page_of("OperationPage", WorkspaceOperation)
_CompanyId = Annotated[str | None, Query(alias="companyId", max_length=64)]
_Day = Annotated[str | None, Query(pattern=r"^\d{4}-\d{2}-\d{2}$", description="A day in UTC.")]


class Waiver(Body):
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]


@router.get("/api/costs", responses=answers(CostPage))
def costs(
    site: TheSite,
    actor: TheActor,
    request: Request,
    company_id: _CompanyId = None,
    agent_id: Annotated[str | None, Query(alias="agentId", max_length=64)] = None,
    since: _Day = None,
    until: _Day = None,
) -> Response:
    """Usage and cost by day, agent, adapter and model; unknown cost is counted apart."""
    scope = actor.scope(company_id)
    with site.database.reading() as connection:
        lines = Costs(connection).lines(scope, agent_id=agent_id, since=since, until=until)
    return polled(request, CostPage(items=lines, next=None))


@router.get("/api/activity", responses=answers(ActivityPage))
def activity(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    company_id: _CompanyId = None,
    subject_kind: Annotated[str | None, Query(alias="subjectKind", max_length=50)] = None,
    subject_id: Annotated[str | None, Query(alias="subjectId", max_length=64)] = None,
) -> Response:
    """What people and agents did, newest first."""
    scope = actor.scope(company_id)
    subject = (subject_kind, subject_id) if subject_kind and subject_id else None
    with site.database.reading() as connection:
        found = Activities(connection).list(scope, subject=subject, limit=limit + 1, before=cursor)
    items, more = paged(found, limit)
    return polled(request, ActivityPage(items=items, next=more))


@router.get("/api/workspaces", responses=answers(OperationPage))
def workspace_operations(
    site: TheSite,
    actor: TheActor,
    request: Request,
    run_id: Annotated[str | None, Query(alias="runId", max_length=64)] = None,
    issue_id: Annotated[str | None, Query(alias="issueId", max_length=64)] = None,
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
    return polled(request, OperationPage(items=found, next=None))


@router.post(
    "/api/workspaces/operations/{operation_id}/waive", responses=answers(WorkspaceOperation)
)
def waive(site: TheSite, person: ThePerson, operation_id: Id, body: Waiver) -> Response:
    """Accept that a workspace could not be finalized; what waited for it goes on (W4)."""
    return answer(site.desk.waive_finalize(operation_id, person.name, body.reason))
