"""Runs: listing, showing, ending them."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from binderclip.contract.errors import RunNotFound
from binderclip.contract.ids import FULL_ID
from binderclip.contract.run import RunState, RunView, StateChange
from binderclip.contract.wire import Wire
from binderclip.runs.again import refused_quietly
from binderclip.server.answers import polled
from binderclip.server.auth import Actor, NoAgent, TheActor
from binderclip.server.requests import Body, Cursor, Limit, paged
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import Site, TheSite
from binderclip.store.jsonfile import read_json
from binderclip.store.runfile import ORDER, read_order, read_outcome
from binderclip.supervisor.documents import EXIT, META

router = APIRouter(prefix="/api/runs", tags=["runs"])
RunId = Annotated[str, Path(pattern=f"^{FULL_ID.pattern}$", description="The whole id of a run.")]


class AttemptDetail(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One process of a run: what was started and how it ended, as its files tell."""

    attempt: int
    meta: dict[str, Any] | None
    exit: dict[str, Any] | None


class RunDetail(RunView, frozen=True, kw_only=True, omit_defaults=False):
    """A run with its history, its configuration (secrets masked) and its processes."""

    history: tuple[StateChange, ...] = ()
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    context: dict[str, Any] = msgspec.field(default_factory=dict)
    attempt_details: tuple[AttemptDetail, ...] = ()
    retry_refusal: str | None = None
    """Why it cannot be done again from here."""
    message_refusal: str | None = None
    """Why nobody can go on from it with a message."""


RunPage = page_of("RunPage", RunView)
"""Listings leave the whole result out."""


@router.get("", responses=answers(RunPage))
def list_runs(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = None,
    status: RunState | None = None,
    adapter_type: Annotated[str | None, Query(alias="adapterType", max_length=200)] = None,
    agent_id: Annotated[str | None, Query(alias="agentId", max_length=64)] = None,
    issue_id: Annotated[str | None, Query(alias="issueId", max_length=64)] = None,
    company_id: Annotated[str | None, Query(alias="companyId", max_length=64)] = None,
) -> Response:
    """Runs, newest first."""
    found = site.runs.list(
        limit + 1,
        before=cursor,
        status=status,
        adapter_type=adapter_type,
        agent_id=agent_id,
        task_id=issue_id,
        company_id=actor.scope(company_id),
    )
    items, more = paged(found, limit)
    return polled(request, RunPage(items=items, next=more))


@router.get("/{run_id}", responses=answers(RunDetail))
def show_run(site: TheSite, actor: TheActor, request: Request, run_id: RunId) -> Response:
    """One run: state, result, usage, session, history, processes."""
    seen_run(site, actor, run_id)
    return polled(request, run_detail(site, run_id))


class CancelBody(Body):
    """Why a run shall end."""

    reason: Annotated[str, Field(max_length=1000)] = "cancelled by a person"
    kill: Annotated[bool, Field(description="At once, without grace.")] = False


@router.post("/{run_id}/cancel", status_code=202, responses=answers(RunView, 202))
def cancel_run(
    site: TheSite, actor: NoAgent, run_id: RunId, body: CancelBody | None = None
) -> Response:
    """Ask the agent to end; it is killed when its grace is over."""
    asked = body or CancelBody()
    seen_run(site, actor, run_id)
    site.desk.cancel(run_id, actor.name, asked.reason, kill=asked.kill)
    site.run_changed(run_id)
    return answer(site.run(run_id), 202)


def seen_run(site: Site, actor: Actor, run_id: str) -> RunView:
    """A run that the asker may see."""
    if not FULL_ID.fullmatch(run_id):
        raise RunNotFound(f"There is no run {run_id}.")
    view = site.run(run_id)
    if actor.company_id not in (None, view.company_id):
        raise RunNotFound(f"There is no run {run_id}.")
    return view


def run_detail(site: Site, run_id: str) -> RunDetail:
    view = site.run(run_id)
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    if not (site.home.run_dir(run_id) / ORDER).exists():
        return RunDetail(**fields, history=tuple(site.runs.history(run_id)))
    order, outcome = read_order(site.home, run_id), read_outcome(site.home, run_id)
    no_retry, no_message = refused_quietly(site.home, run_id)
    return RunDetail(
        **fields,
        history=outcome.history if outcome else _history(site, run_id),
        config=order.config,
        context=order.context,
        attempt_details=tuple(_attempt(site, run_id, n) for n in site.home.attempts(run_id)),
        retry_refusal=no_retry,
        message_refusal=no_message,
    )


def _history(site: Site, run_id: str) -> tuple[StateChange, ...]:
    return tuple(site.runs.history(run_id)) if site.row(run_id) else ()


def _attempt(site: Site, run_id: str, number: int) -> AttemptDetail:
    directory = site.home.attempt_dir(run_id, number)
    return AttemptDetail(
        attempt=number, meta=_document(directory / META), exit=_document(directory / EXIT)
    )


def _document(path: FilePath) -> dict[str, Any] | None:
    try:
        return read_json(path, dict[str, Any])
    except FileNotFoundError:
        return None
