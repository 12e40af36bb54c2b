"""The stream of the lists: a notice for every run whose state changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response

from binderclip.server.auth import TheActor
from binderclip.server.schema import plain
from binderclip.server.site import TheSite
from binderclip.server.streams import EventStream

router = APIRouter(tags=["runs"])


@router.get(
    "/api/events",
    response_class=EventStream,
    responses=plain(
        "Events `run`, `question`, `adapter`, `adapter-progress`, `reset`.", "text/event-stream"
    ),
)
def events(
    site: TheSite,
    actor: TheActor,
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Runs as they change state; `reset` says that the lists have to be read again."""
    return EventStream(lambda: site.board.events(last_event_id, actor.company_id))
