"""Sessions that the next run of an agent would resume, and how to forget one (S5)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from binderclip.contract.errors import NotFound
from binderclip.contract.session import StoredSession
from binderclip.server.answers import polled
from binderclip.server.auth import NoAgent, TheActor
from binderclip.server.requests import Body, Limit, Position, cut
from binderclip.server.schema import answers, page_of
from binderclip.server.site import TheSite

router = APIRouter(prefix="/api/sessions", tags=["sessions"])
SessionPage = page_of("SessionPage", StoredSession)
_Text = Annotated[str, Field(min_length=1, max_length=4096)]


class SessionKey(Body):
    agent_id: _Text
    adapter_type: _Text
    task_key: _Text


@router.get("", responses=answers(SessionPage))
def list_sessions(
    site: TheSite,
    actor: TheActor,
    request: Request,
    limit: Limit = 200,
    cursor: Position = 0,
    agent_id: Annotated[str | None, Query(alias="agentId", max_length=64)] = None,
    adapter_type: Annotated[str | None, Query(alias="adapterType", max_length=200)] = None,
) -> Response:
    """Stored sessions, the one used last first; an agent sees its own."""
    wanted = actor.agent_id or agent_id
    found = [
        one
        for one in site.runs.sessions()
        if wanted in (None, one.agent_id) and adapter_type in (None, one.adapter_type)
    ]
    page, more = cut(found, limit, cursor)
    return polled(request, SessionPage(items=page, next=more))


@router.post("/reset", status_code=204)
def reset_session(site: TheSite, actor: NoAgent, body: SessionKey) -> Response:
    """Forget a session: the agent's next run there starts afresh and says so."""
    key = (body.agent_id, body.adapter_type, body.task_key)
    if not site.desk.reset_session(*key, actor.name):
        raise NotFound("There is no such session.")
    return Response(status_code=204)
