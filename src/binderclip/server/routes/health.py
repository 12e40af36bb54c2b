"""Whether the server is there, and which one it is."""

from __future__ import annotations

from fastapi import APIRouter, Response

from binderclip import __version__
from binderclip.contract.wire import Wire
from binderclip.server.schema import answer, answers
from binderclip.server.site import TheSite

router = APIRouter(tags=["health"])


class Health(Wire, frozen=True, kw_only=True, omit_defaults=False):
    status: str
    version: str


@router.get("/api/health", responses=answers(Health))
def health(site: TheSite) -> Response:
    """The server answers."""
    return answer(Health(status="ok", version=__version__))
