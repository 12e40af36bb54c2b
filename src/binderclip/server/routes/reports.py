"""Looking back: what was spent and what happened."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from binderclip.contract.company import Activity, CostLine
from binderclip.server.answers import polled
from binderclip.server.auth import TheActor
from binderclip.server.requests import Cursor, Limit, paged
from binderclip.server.schema import answers, page_of
from binderclip.server.site import TheSite
from binderclip.store.activity import Activities
from binderclip.store.costs import Costs

router = APIRouter(tags=["reports"])
CostPage = page_of("CostPage", CostLine)
ActivityPage = page_of("ActivityPage", Activity)
_CompanyId = Annotated[str | None, Query(alias="companyId", max_length=64)]
_Day = Annotated[str | None, Query(pattern=r"^\d{4}-\d{2}-\d{2}$", description="A day in UTC.")]


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
