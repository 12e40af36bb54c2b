"""What waits for a person: interactions of tasks, and approvals."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, ValidationError

from binderclip.contract.company import LOCAL_COMPANY
from binderclip.contract.errors import ConfigError, NotFound
from binderclip.contract.task import (
    Approval,
    ApprovalStatus,
    Interaction,
    InteractionKind,
    InteractionStatus,
)
from binderclip.contract.wire import to_json
from binderclip.server.answers import listed, polled
from binderclip.server.auth import Actor, TheActor, ThePerson
from binderclip.server.requests import Body, Cursor, Id, Key, Limit, once, paged
from binderclip.server.routes.agents import HIRE, NewAgent, made_agent
from binderclip.server.routes.issues import task_of
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import Site, TheSite
from binderclip.store.decisions import Approvals, Interactions
from binderclip.store.tasks import Tasks

router = APIRouter(tags=["decisions"])
InteractionPage = page_of("InteractionPage", Interaction)
ApprovalPage = page_of("ApprovalPage", Approval)
_Company = Annotated[str | None, Query(alias="companyId", max_length=64)]


class NewInteraction(Body):
    kind: InteractionKind
    payload: dict[str, Any] = Field(default_factory=dict)
    title: Annotated[str, Field(max_length=1000)] | None = None
    summary: Annotated[str, Field(max_length=100_000)] | None = None


class Reply(Body):
    """A person's answer: a note, answers to questions, or the tasks to keep."""

    note: Annotated[str, Field(max_length=100_000)] | None = None
    reason: Annotated[str, Field(max_length=100_000)] | None = None
    answers: Any = None
    tasks: Annotated[list[dict[str, Any]], Field(max_length=100)] | None = None


class NewApproval(Body):
    kind: Annotated[str, Field(min_length=1, max_length=100)]
    payload: dict[str, Any] = Field(default_factory=dict)
    issue_ids: list[Annotated[str, Field(max_length=64)]] = Field(
        default_factory=list, max_length=100
    )
    company_id: Annotated[str, Field(max_length=64)] | None = None


class Decision(Body):
    note: Annotated[str, Field(max_length=100_000)] | None = None


@router.get("/api/interactions", responses=answers(InteractionPage))
def list_interactions(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    issue_id: Annotated[str | None, Query(alias="issueId", max_length=64)] = None,
    status: InteractionStatus | None = None,
) -> Response:
    """Questions of agents, newest first."""
    task_id = task_of(site, actor, issue_id).id if issue_id else None
    with site.database.reading() as connection:
        found = Interactions(connection).list(
            task_id, status=status, limit=limit + 1, before=cursor
        )
        items, more = paged(found, limit)
        if actor.company_id is not None:
            tasks = Tasks(connection)
            items = [i for i in items if tasks.get(i.task_id).company_id == actor.company_id]
    return polled(request, InteractionPage(items=items, next=more))


@router.get("/api/issues/{issue_id}/interactions", responses=answers(list[Interaction]))
def issue_interactions(
    site: TheSite,
    actor: TheActor,
    request: Request,
    issue_id: Id,
    limit: Limit = 200,
    cursor: Cursor = None,
    status: InteractionStatus | None = None,
) -> Response:
    """The questions about one task, newest first; `x-next-cursor` leads to the rest."""
    task = task_of(site, actor, issue_id)
    with site.database.reading() as connection:
        found = Interactions(connection).list(
            task.id, status=status, limit=limit + 1, before=cursor
        )
    return listed(request, *paged(found, limit))


@router.post(
    "/api/issues/{issue_id}/interactions", status_code=201, responses=answers(Interaction, 201)
)
def ask(
    site: TheSite, actor: TheActor, issue_id: Id, body: NewInteraction, key: Key = None
) -> Response:
    """Ask a person: to confirm, to choose tasks, to answer questions."""
    task = task_of(site, actor, issue_id)
    told = {"title": body.title, "summary": body.summary}
    payload = {**{name: text for name, text in told.items() if text}, **body.payload}
    asked = Interaction(
        id="",
        task_id=task.id,
        run_id=actor.run_id,
        agent_id=actor.agent_id,
        kind=body.kind,
        payload=payload,
    )

    def make() -> Response:
        made = site.desk.ask(asked)
        _tell(site, made.id, str(payload.get("title") or task.title), task.id, made.run_id)
        return answer(made, 201)

    return once(site, actor, f"interactions:{task.id}", key, body, make)


@router.post(
    "/api/issues/{issue_id}/interactions/{interaction_id}/accept", responses=answers(Interaction)
)
def accept(
    site: TheSite, person: ThePerson, issue_id: Id, interaction_id: Id, body: Reply | None = None
) -> Response:
    """Say yes; 409 while the workspace of the run that asked is not finalized (W4)."""
    return _answered(site, person, issue_id, interaction_id, "accepted", body)


@router.post(
    "/api/issues/{issue_id}/interactions/{interaction_id}/reject", responses=answers(Interaction)
)
def reject(
    site: TheSite, person: ThePerson, issue_id: Id, interaction_id: Id, body: Reply | None = None
) -> Response:
    """Say no."""
    return _answered(site, person, issue_id, interaction_id, "rejected", body)


@router.post(
    "/api/issues/{issue_id}/interactions/{interaction_id}/respond", responses=answers(Interaction)
)
def respond(
    site: TheSite, person: ThePerson, issue_id: Id, interaction_id: Id, body: Reply
) -> Response:
    """Answer questions."""
    return _answered(site, person, issue_id, interaction_id, "answered", body)


@router.get("/api/approvals", responses=answers(ApprovalPage))
def list_approvals(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    company_id: _Company = None,
    status: ApprovalStatus | None = None,
) -> Response:
    """Approvals, newest first."""
    scope = actor.scope(company_id)
    with site.database.reading() as connection:
        found = Approvals(connection).list(scope, status=status, limit=limit + 1, before=cursor)
    items, more = paged(found, limit)
    return polled(request, ApprovalPage(items=items, next=more))


@router.post("/api/approvals", status_code=201, responses=answers(Approval, 201))
def request_approval(
    site: TheSite, actor: TheActor, body: NewApproval, key: Key = None
) -> Response:
    """Ask for something that only a person may allow."""
    company_id = actor.scope(body.company_id) or LOCAL_COMPANY
    asked = Approval(
        id="",
        company_id=company_id,
        kind=body.kind,
        payload=body.payload,
        requested_by=actor.agent_id,
        run_id=actor.run_id,
        task_ids=tuple(task_of(site, actor, named).id for named in body.issue_ids),
    )

    def make() -> Response:
        made = site.desk.request_approval(asked)
        title = str(body.payload.get("title") or body.payload.get("name") or body.kind)
        _tell(site, made.id, title, next(iter(made.task_ids), None), made.run_id)
        return answer(made, 201)

    return once(site, actor, f"approvals:{company_id}", key, body, make)


@router.get("/api/approvals/{approval_id}", responses=answers(Approval))
def show_approval(site: TheSite, actor: TheActor, request: Request, approval_id: Id) -> Response:
    """One approval."""
    return polled(request, _approval(site, actor, approval_id))


@router.post("/api/approvals/{approval_id}/approve", responses=answers(Approval))
def approve(
    site: TheSite, person: ThePerson, approval_id: Id, body: Decision | None = None
) -> Response:
    """Allow it; the agent that asked wakes, and an agent that was to be hired is made."""
    asked = _approval(site, person, approval_id)
    wanted = _hired(asked) if asked.kind == HIRE and asked.status == "pending" else None
    if wanted is not None:
        made_agent(site, wanted, asked.company_id, person.name)
    note = body.note if body else None
    return answer(site.desk.decide(approval_id, "approved", person.name, note))


@router.post("/api/approvals/{approval_id}/reject", responses=answers(Approval))
def reject_approval(
    site: TheSite, person: ThePerson, approval_id: Id, body: Decision | None = None
) -> Response:
    """Refuse it; the agent that asked wakes."""
    _approval(site, person, approval_id)
    note = body.note if body else None
    return answer(site.desk.decide(approval_id, "rejected", person.name, note))


def _tell(site: Site, id: str, title: str, task_id: str | None, run_id: str | None) -> None:
    """Let people who look at lists know at once that somebody waits for them."""
    told = {"id": id, "title": title[:200], "taskId": task_id, "runId": run_id}
    site.notice("question", to_json(told))


def _approval(site: Site, actor: Actor, approval_id: str) -> Approval:
    with site.database.reading() as connection:
        found = Approvals(connection).get(approval_id)
    actor.must_see(found.company_id, f"approval {approval_id!r}")
    return found


def _answered(
    site: Site,
    person: Actor,
    issue_id: str,
    interaction_id: str,
    status: InteractionStatus,
    body: Reply | None,
) -> Response:
    task = task_of(site, person, issue_id)
    with site.database.reading() as connection:
        if Interactions(connection).get(interaction_id).task_id != task.id:
            raise NotFound(f"There is no interaction {interaction_id!r}.")
    response = body.model_dump(by_alias=True, exclude_unset=True) if body else None
    return answer(site.desk.answer(interaction_id, status, person.name, response or None))


def _hired(asked: Approval) -> NewAgent:
    try:
        return NewAgent.model_validate(asked.payload)
    except ValidationError as problem:
        raise ConfigError(f"The agent that was asked for cannot be made: {problem}") from None
