"""Agents: making, changing, waking them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from binderclip.contract.agent import Agent, AgentStatus, Budget, Pause, Spent, WorkspaceMode
from binderclip.contract.company import LOCAL_COMPANY
from binderclip.contract.errors import AdapterNotFound, NotFound
from binderclip.contract.run import WakeReason
from binderclip.contract.session import SessionManagement
from binderclip.contract.task import Approval
from binderclip.contract.wake import WakeReceipt
from binderclip.contract.wire import Wire
from binderclip.runs.waking import Ask
from binderclip.server.answers import listed, polled
from binderclip.server.auth import PERSON_HINT, Actor, NoAgent, TheActor
from binderclip.server.errors import Refused
from binderclip.server.requests import Body, Cursor, Id, Key, Limit, once, paged
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import Site, TheSite
from binderclip.store.agents import Agents, Pauses
from binderclip.store.companies import Companies
from binderclip.store.costs import Costs
from binderclip.store.tasks import Tasks

router = APIRouter(tags=["agents"])
HIRE = "hire_agent"
AgentPage = page_of("AgentPage", Agent)
Name = Annotated[str, Field(min_length=1, max_length=200)]
Minutes = Annotated[float, Field(gt=0, le=525_600, allow_inf_nan=False)]
_WHOLE = Annotated[int, Field(ge=0, le=2**53)]
_AMOUNT = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
_CompanyId = Annotated[str | None, Query(alias="companyId", max_length=64)]


class BudgetBody(Body):
    usd: _AMOUNT | None = None
    tokens: _WHOLE | None = None
    runs: _WHOLE | None = None
    minutes: _AMOUNT | None = None
    period: Literal["day", "month", "total"] = "month"


class SessionLimits(Body):
    compacts_itself: bool = False
    max_runs: _WHOLE | None = None
    max_tokens: _WHOLE | None = None
    max_age_sec: _WHOLE | None = None


class AgentFields(Body):
    role: Annotated[str, Field(max_length=500)] | None = None
    heartbeat_minutes: Minutes | None = None
    max_concurrent_runs: Annotated[int, Field(ge=1, le=1000)] = 1
    retry_limit: Annotated[int, Field(ge=0, le=100)] = 3
    budget: BudgetBody | None = None
    run_budget: BudgetBody | None = None
    session_limits: SessionLimits | None = None
    environment_id: Annotated[str, Field(max_length=64)] | None = None
    workspace: WorkspaceMode = "worktree"
    instructions: Annotated[str, Field(max_length=1_000_000)] | None = None


class NewAgent(AgentFields):
    name: Name
    adapter_type: Annotated[str, Field(min_length=1, max_length=200)]
    adapter_config: dict[str, Any] = Field(default_factory=dict)
    company_id: Annotated[str, Field(max_length=64)] | None = None


class AgentChange(AgentFields):
    """Only the fields that are sent are changed."""

    name: Name | None = None
    adapter_type: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    adapter_config: dict[str, Any] | None = None
    status: AgentStatus | None = None
    paused_reason: Annotated[str, Field(max_length=1000)] | None = None


class WakeBody(Body):
    reason: Annotated[str, Field(max_length=200)] = "manual"
    issue_id: Annotated[str, Field(max_length=64)] | None = None
    prompt: Annotated[str, Field(max_length=1_000_000)] | None = None


class PauseReset(Body):
    task_key: Annotated[str, Field(max_length=200)] = "heartbeat"


class AgentState(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What an agent used of its budget, and what the breaker stopped."""

    spent: Spent
    pauses: tuple[Pause, ...]


@router.get("/api/agents", responses=answers(AgentPage))
def list_agents(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    company_id: _CompanyId = None,
    status: AgentStatus | None = None,
) -> Response:
    """Agents, newest first; archived ones only when asked for."""
    scope = actor.scope(company_id)
    with site.database.reading() as connection:
        found = Agents(connection).list(scope, status=status, limit=limit + 1, before=cursor)
    items, more = paged(found, limit)
    return polled(request, AgentPage(items=items, next=more))


@router.get("/api/companies/{company_id}/agents", responses=answers(list[Agent]))
def company_agents(
    site: TheSite,
    actor: TheActor,
    request: Request,
    company_id: Id,
    limit: Limit = 200,
    cursor: Cursor = None,
    status: AgentStatus | None = None,
) -> Response:
    """The agents of a company as a plain list; the header `x-next-cursor` leads to the rest."""
    actor.must_see(company_id, f"company {company_id!r}")
    with site.database.reading() as connection:
        Companies(connection).get(company_id)
        found = Agents(connection).list(company_id, status=status, limit=limit + 1, before=cursor)
    return listed(request, *paged(found, limit))


@router.post("/api/agents", status_code=201, responses=answers(Agent, 201) | answers(Approval, 202))
def create_agent(site: TheSite, actor: TheActor, body: NewAgent, key: Key = None) -> Response:
    """Add an agent; what an agent wants to add waits for a person's approval (202)."""
    company_id = actor.scope(body.company_id) or LOCAL_COMPANY
    _refuse_budget(actor, body)
    with site.database.reading() as connection:
        Companies(connection).get(company_id)

    def make() -> Response:
        if actor.kind == "agent":
            return answer(_ask_to_hire(site, actor, body), 202)
        return answer(made_agent(site, body, company_id, actor.name), 201)

    return once(site, actor, "agents", key, body, make)


@router.get("/api/agents/me", responses=answers(Agent))
def own_agent(site: TheSite, actor: TheActor) -> Response:
    """The agent that asks."""
    if actor.agent_id is None:
        message = "Only an agent with its run's token is somebody here."
        raise Refused(403, "no_agent", message)
    return answer(_agent(site, actor, actor.agent_id))


@router.get("/api/agents/{agent_id}", responses=answers(Agent))
def show_agent(site: TheSite, actor: TheActor, request: Request, agent_id: Id) -> Response:
    """One agent; secrets stand in its configuration as references."""
    return polled(request, _agent(site, actor, agent_id))


@router.get("/api/agents/{agent_id}/state", responses=answers(AgentState))
def agent_state(site: TheSite, actor: TheActor, request: Request, agent_id: Id) -> Response:
    """What it used of its budget, and what the breaker stopped."""
    agent = _agent(site, actor, agent_id)
    with site.database.reading() as connection:
        spent = Costs(connection).spent(agent.id, agent.budget, site.clock())
        pauses = tuple(Pauses(connection).open(agent.id))
    return polled(request, AgentState(spent=spent, pauses=pauses))


@router.patch("/api/agents/{agent_id}", responses=answers(Agent))
def change_agent(site: TheSite, actor: NoAgent, agent_id: Id, body: AgentChange) -> Response:
    """Change the fields that are sent."""
    _refuse_budget(actor, body)
    _agent(site, actor, agent_id)
    fields = _fields(body)
    required = ("name", "adapter_type", "adapter_config", "status", "budget", "run_budget")
    fields = {name: v for name, v in fields.items() if v is not None or name not in required}
    with _known_adapter():
        return answer(site.roster.change_agent(agent_id, actor.name, **fields))


@router.delete("/api/agents/{agent_id}", responses=answers(Agent))
def archive_agent(site: TheSite, actor: NoAgent, agent_id: Id) -> Response:
    """Archive an agent: it wakes no more, its runs stay."""
    _agent(site, actor, agent_id)
    return answer(site.roster.change_agent(agent_id, actor.name, status="archived"))


@router.post("/api/agents/{agent_id}/wakeup", status_code=202, responses=answers(WakeReceipt, 202))
def wake_agent(
    site: TheSite, actor: TheActor, agent_id: Id, body: WakeBody | None = None, key: Key = None
) -> Response:
    """Queue a run, or join the one that waits for the same agent and task."""
    asked = body or WakeBody()
    _agent(site, actor, agent_id)
    if actor.agent_id not in (None, agent_id):
        raise Refused(403, "forbidden", "An agent wakes itself only; comment to reach others.")
    _refuse_unknown_task(site, actor, asked.issue_id)
    known: Any = asked.reason if asked.reason in get_args(WakeReason) else "manual"
    ask = Ask(agent_id, asked.issue_id, known, prompt=asked.prompt, actor=actor.name)
    make = lambda: answer(site.desk.wake(ask), 202)  # noqa: E731
    return once(site, actor, f"wakeup:{agent_id}", key, asked, make)


@router.post("/api/agents/{agent_id}/pauses/reset", responses=answers(AgentState))
def reset_pause(
    site: TheSite, actor: NoAgent, request: Request, agent_id: Id, body: PauseReset
) -> Response:
    """Let the agent work on a task again that the breaker stopped."""
    _agent(site, actor, agent_id)
    if not site.roster.reset_pause(agent_id, body.task_key, actor.name):
        raise NotFound(f"Nothing of {body.task_key!r} is paused.")
    return agent_state(site, actor, request, agent_id)


def made_agent(site: Site, body: NewAgent, company_id: str, actor: str) -> Agent:
    """A new agent from a request's body."""
    fields = {name: value for name, value in _fields(body).items() if value is not None}
    fields |= {"company_id": company_id}
    with _known_adapter():
        return site.roster.create_agent(Agent(id="", **fields), actor)


class _known_adapter:
    """A type that nobody here knows is a wrong field of the request, not a missing page."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, AdapterNotFound):
            fields = {"adapterType": problem.message}
            raise Refused(
                422, problem.code, problem.message, hint=problem.hint, fields=fields
            ) from problem


def _agent(site: Site, actor: Actor, agent_id: str) -> Agent:
    with site.database.reading() as connection:
        agent = Agents(connection).get(agent_id)
    actor.must_see(agent.company_id, f"agent {agent_id!r}")
    return agent


def _refuse_unknown_task(site: Site, actor: Actor, task_id: str | None) -> None:
    if task_id is not None:
        with site.database.reading() as connection:
            actor.must_see(Tasks(connection).get(task_id).company_id, f"task {task_id!r}")


def _refuse_budget(actor: Actor, body: AgentFields) -> None:
    if body.model_fields_set & {"budget", "run_budget"} and actor.kind != "person":
        message = "Only a person sets budgets."
        raise Refused(403, "person_needed", message, hint=PERSON_HINT)


def _ask_to_hire(site: Site, actor: Actor, body: NewAgent) -> Approval:
    assert actor.company_id is not None
    payload = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    asked = Approval(
        id="",
        company_id=actor.company_id,
        kind=HIRE,
        payload=payload,
        requested_by=actor.agent_id,
        run_id=actor.run_id,
    )
    return site.desk.request_approval(asked)


def _fields(body: AgentFields) -> dict[str, Any]:
    """The fields that were sent, as an agent's own."""
    fields = body.given()
    for name, kind in (("budget", Budget), ("run_budget", Budget)):
        if fields.get(name) is not None:
            fields[name] = kind(**fields[name].model_dump())
    if fields.get("session_limits") is not None:
        limits = fields["session_limits"].model_dump()
        fields["session_limits"] = SessionManagement(**limits)
    return fields
