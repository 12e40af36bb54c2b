"""Tasks, called issues here, as people and existing Paperclip agents use them (R4)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import AfterValidator, AliasChoices, Field

from binderclip.contract.agent import WorkspaceMode
from binderclip.contract.company import LOCAL_COMPANY
from binderclip.contract.errors import Conflict
from binderclip.contract.task import Comment, Priority, Task, TaskStatus
from binderclip.server.answers import listed, polled
from binderclip.server.auth import Actor, TheActor
from binderclip.server.errors import Refused
from binderclip.server.requests import Body, Cursor, Id, Key, Limit, once, paged
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import Site, TheSite
from binderclip.store.companies import Companies
from binderclip.store.tasks import Tasks

router = APIRouter(tags=["issues"])
Title = Annotated[str, Field(min_length=1, max_length=1000)]
Text = Annotated[str, Field(max_length=1_000_000)]
ShortId = Annotated[str, Field(max_length=64)]


class IssueView(Task, frozen=True, kw_only=True, omit_defaults=False):
    """A task; `description` is its body under the name that Paperclip's agents know."""

    description: str = ""


IssuePage = page_of("IssuePage", IssueView)


_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|\.lock(/|$)|(^|/)\.|^[-/@]|[/.]$")
_NO_REF = re.compile(r"[\x00-\x20\x7f]|^-|^$")


def _fits_branch(text: str) -> str:
    if not text or _NO_BRANCH.search(text):
        raise ValueError("cannot be the name of a branch")
    return text


def _fits_ref(text: str) -> str:
    if _NO_REF.search(text):
        raise ValueError("cannot name a commit")
    return text


_Branch = Annotated[str, Field(max_length=200), AfterValidator(_fits_branch)]
_Ref = Annotated[str, Field(max_length=250), AfterValidator(_fits_ref)]


class IssueFields(Body):
    body: Annotated[Text | None, Field(validation_alias=AliasChoices("body", "description"))] = None
    priority: Priority | None = None
    assignee_agent_id: ShortId | None = None
    parent_id: ShortId | None = None
    blocked_by: Annotated[
        list[ShortId] | None,
        Field(validation_alias=AliasChoices("blockedBy", "blockedByIssueIds"), max_length=200),
    ] = None
    cwd: Annotated[str, Field(max_length=4096)] | None = None
    workspace: WorkspaceMode | None = None
    environment_id: ShortId | None = None
    branch_template: _Branch | None = None
    base_ref: (
        Annotated[str, Field(max_length=250, pattern=r"^[^-\s][^\s\x00-\x1f\x7f]*$")] | None
    ) = None
    with_dirty_files: bool | None = None


class NewIssue(IssueFields):
    title: Title
    status: TaskStatus = "todo"
    company_id: ShortId | None = None


class IssueChange(IssueFields):
    """Only the fields that are sent are changed; `comment` is said as well."""

    title: Title | None = None
    status: TaskStatus | None = None
    comment: Annotated[str, Field(min_length=1, max_length=1_000_000)] | None = None


class Checkout(Body):
    agent_id: ShortId | None = None
    expected_statuses: Annotated[list[TaskStatus], Field(max_length=20)] | None = None


class NewComment(Body):
    body: Annotated[str, Field(min_length=1, max_length=1_000_000)]


_Assignee = Annotated[str | None, Query(alias="assigneeAgentId", max_length=64)]
_Status = Annotated[str | None, Query(max_length=200, description="States, by commas.")]
_Words = Annotated[str | None, Query(max_length=200, description="Words in title or body.")]


@router.get("/api/issues", responses=answers(IssuePage))
def list_issues(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    company_id: Annotated[str | None, Query(alias="companyId", max_length=64)] = None,
    status: _Status = None,
    assignee: _Assignee = None,
    parent_id: Annotated[str | None, Query(alias="parentId", max_length=64)] = None,
    q: _Words = None,
) -> Response:
    """Tasks, newest first."""
    scope = actor.scope(company_id)
    asked = {"status": status, "assignee": assignee, "parent_id": parent_id, "text": q}
    items, more = _found(site, scope, limit, cursor, asked)
    return polled(request, IssuePage(items=items, next=more))


@router.get("/api/companies/{company_id}/issues", responses=answers(list[IssueView]))
def company_issues(
    site: TheSite,
    actor: TheActor,
    request: Request,
    company_id: Id,
    limit: Limit = 200,
    cursor: Cursor = None,
    status: _Status = None,
    assignee: _Assignee = None,
    q: _Words = None,
) -> Response:
    """The tasks of a company as a plain list; the header `x-next-cursor` leads to the rest."""
    actor.must_see(company_id, f"company {company_id!r}")
    with site.database.reading() as connection:
        Companies(connection).get(company_id)
    if assignee == "me":
        assignee = actor.agent_id
    asked = {"status": status, "assignee": assignee, "text": q}
    items, more = _found(site, company_id, limit, cursor, asked)
    return listed(request, items, more)


@router.post("/api/issues", status_code=201, responses=answers(IssueView, 201))
def create_issue(site: TheSite, actor: TheActor, body: NewIssue, key: Key = None) -> Response:
    """Add a task; its assignee wakes."""
    company_id = actor.scope(body.company_id) or LOCAL_COMPANY
    return _created(site, actor, body, company_id, key)


@router.post(
    "/api/companies/{company_id}/issues", status_code=201, responses=answers(IssueView, 201)
)
def create_company_issue(
    site: TheSite, actor: TheActor, company_id: Id, body: NewIssue, key: Key = None
) -> Response:
    """Add a task to a company; its assignee wakes."""
    actor.must_see(company_id, f"company {company_id!r}")
    return _created(site, actor, body, company_id, key)


@router.get("/api/issues/{issue_id}", responses=answers(IssueView))
def show_issue(site: TheSite, actor: TheActor, request: Request, issue_id: Id) -> Response:
    """One task, by its id or by its short name like T-12."""
    return polled(request, issue_view(task_of(site, actor, issue_id)))


@router.patch("/api/issues/{issue_id}", responses=answers(IssueView))
def change_issue(site: TheSite, actor: TheActor, issue_id: Id, body: IssueChange) -> Response:
    """Change the fields that are sent; finishing a task may wake those that waited for it."""
    task = task_of(site, actor, issue_id)
    _refuse_foreign_checkout(actor, task, body)
    fields = _fields(body)
    comment = fields.pop("comment", None)
    if comment:
        site.desk.comment(_said(actor, task.id, comment))
    if fields:
        task = site.desk.change_task(task.id, actor.name, **fields)
    return answer(issue_view(task))


@router.post("/api/issues/{issue_id}/checkout", responses=answers(IssueView))
def checkout(
    site: TheSite, actor: TheActor, issue_id: Id, body: Checkout | None = None
) -> Response:
    """Take a task for the run that asks; 409 while somebody else has it."""
    if actor.run_id is None or actor.agent_id is None:
        raise Refused(403, "no_agent", "Only an agent with its run's token checks out a task.")
    asked = body or Checkout()
    if asked.agent_id not in (None, actor.agent_id):
        raise Refused(403, "forbidden", "An agent checks out for itself only.")
    task = task_of(site, actor, issue_id)
    expected = asked.expected_statuses
    mine = task.checkout_run_id == actor.run_id
    if expected is not None and task.status not in expected and not mine:
        raise Conflict(f"{task.identifier} is {task.status}.", code="unexpected_status")
    return answer(issue_view(site.desk.checkout(task.id, actor.agent_id, actor.run_id)))


@router.post("/api/issues/{issue_id}/release", responses=answers(IssueView))
def release(site: TheSite, actor: TheActor, issue_id: Id) -> Response:
    """Give a task back that was checked out."""
    task = task_of(site, actor, issue_id)
    if actor.kind == "agent" and task.checkout_run_id not in (None, actor.run_id):
        raise Conflict(f"{task.identifier} is checked out by another run.", code="checked_out")
    fields = {"checkout_run_id": None}
    return answer(issue_view(site.desk.change_task(task.id, actor.name, **fields)))


@router.get("/api/issues/{issue_id}/comments", responses=answers(list[Comment]))
def list_comments(
    site: TheSite,
    actor: TheActor,
    request: Request,
    issue_id: Id,
    limit: Limit = 200,
    after: Annotated[str | None, Query(max_length=64, description="Behind this comment.")] = None,
) -> Response:
    """What was said, oldest first, as a plain list; `x-next-cursor` is the next `after`."""
    task = task_of(site, actor, issue_id)
    with site.database.reading() as connection:
        found = Tasks(connection).comments(task.id, limit=limit + 1, after=after)
    return listed(request, *paged(found, limit))


@router.get("/api/issues/{issue_id}/comments/{comment_id}", responses=answers(Comment))
def show_comment(site: TheSite, actor: TheActor, issue_id: Id, comment_id: Id) -> Response:
    """One comment."""
    task = task_of(site, actor, issue_id)
    with site.database.reading() as connection:
        found = Tasks(connection).get_comment(comment_id)
    if found.task_id != task.id:
        raise Refused(404, "not_found", f"There is no comment {comment_id!r}.")
    return answer(found)


@router.post("/api/issues/{issue_id}/comments", status_code=201, responses=answers(Comment, 201))
def comment(
    site: TheSite, actor: TheActor, issue_id: Id, body: NewComment, key: Key = None
) -> Response:
    """Say something; the assignee and everybody who is mentioned by @name wake."""
    task = task_of(site, actor, issue_id)
    make = lambda: answer(site.desk.comment(_said(actor, task.id, body.body)), 201)  # noqa: E731
    return once(site, actor, f"comments:{task.id}", key, body, make)


def issue_view(task: Task) -> IssueView:
    fields = {name: getattr(task, name) for name in task.__struct_fields__}
    return IssueView(**fields, description=task.body)


def task_of(site: Site, actor: Actor, named: str) -> Task:
    """The task of an id, or of a short name in the asker's company."""
    with site.database.reading() as connection:
        tasks = Tasks(connection)
        if named[:2].upper() == "T-":
            return tasks.find(actor.company_id or LOCAL_COMPANY, named)
        task = tasks.get(named)
    actor.must_see(task.company_id, f"task {named!r}")
    return task


def _found(
    site: Site, company_id: str | None, limit: int, cursor: str | None, asked: dict[str, Any]
) -> tuple[list[IssueView], str | None]:
    with site.database.reading() as connection:
        found = Tasks(connection).list(company_id, limit=limit + 1, before=cursor, **asked)
    items, more = paged(found, limit)
    return [issue_view(task) for task in items], more


def _created(
    site: Site, actor: Actor, body: NewIssue, company_id: str, key: str | None
) -> Response:
    with site.database.reading() as connection:
        Companies(connection).get(company_id)

    def make() -> Response:
        fields = {name: value for name, value in _fields(body).items() if value is not None}
        fields |= {"company_id": company_id, "created_by": actor.name}
        task = site.desk.create_task(Task(id="", identifier="", **fields), actor.name)
        return answer(issue_view(task), 201)

    return once(site, actor, f"issues:{company_id}", key, body, make)


def _fields(body: IssueFields) -> dict[str, Any]:
    fields = body.given()
    for name in ("title", "status", "priority", "body", "blocked_by", "with_dirty_files"):
        if name in fields and fields[name] is None:
            del fields[name]
    if "blocked_by" in fields:
        fields["blocked_by"] = tuple(dict.fromkeys(fields["blocked_by"]))
    return fields


def _refuse_foreign_checkout(actor: Actor, task: Task, body: IssueChange) -> None:
    """An agent does not change the state of a task that another run works on."""
    held = task.checkout_run_id not in (None, actor.run_id)
    if actor.kind == "agent" and held and body.status is not None:
        raise Conflict(f"{task.identifier} is checked out by another run.", code="checked_out")


def _said(actor: Actor, task_id: str, text: str) -> Comment:
    return Comment(id="", task_id=task_id, author=actor.name, body=text, run_id=actor.run_id)
