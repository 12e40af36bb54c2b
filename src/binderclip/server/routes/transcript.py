"""A run's transcript: pages by position, outline, search, whole entries, the live stream."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response

from binderclip.contract.entry import ENTRY_KINDS, Entry
from binderclip.contract.wire import Wire
from binderclip.server.answers import matches, polled
from binderclip.server.auth import TheActor
from binderclip.server.errors import Refused
from binderclip.server.routes.runs import RunId, seen_run
from binderclip.server.schema import answer, answers, plain
from binderclip.server.site import TheSite
from binderclip.server.streams import EventStream, line_events, run_events
from binderclip.server.survey import Outline
from binderclip.server.transcripts import Matches

router = APIRouter(prefix="/api/runs", tags=["transcripts"])
MOST_ENTRIES = 1000


class TranscriptPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Entries by position; `cursor` is the id from which a stream goes on behind this page."""

    entries: tuple[Entry, ...]
    from_seq: int
    total: int
    complete: bool
    cursor: str


@router.get("/{run_id}/transcript", responses=answers(TranscriptPage))
def transcript_page(
    site: TheSite,
    actor: TheActor,
    request: Request,
    run_id: RunId,
    first: Annotated[int, Query(alias="from", ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
) -> Response:
    """Entries in their newest state, from a position on; any page takes the same time."""
    seen_run(site, actor, run_id)
    with site.shelf.reading(run_id) as transcript:
        etag = f'"{transcript.cursor}:{first}:{limit}:{int(transcript.complete)}"'
        headers = {"etag": etag, "cache-control": "private, no-cache"}
        if matches(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers=headers)
        found = transcript.page(first, limit)
        body = b'{"entries":[%b],"fromSeq":%d,"total":%d,"complete":%b,"cursor":"%b"}' % (
            b",".join(found),
            first,
            transcript.total,
            b"true" if transcript.complete else b"false",
            transcript.cursor.encode(),
        )
    return Response(body, headers=headers, media_type="application/json")


@router.get("/{run_id}/outline", responses=answers(Outline))
def outline(site: TheSite, actor: TheActor, request: Request, run_id: RunId) -> Response:
    """The transcript at a glance: totals, errors, where the time went, slow tools."""
    seen_run(site, actor, run_id)
    with site.shelf.reading(run_id) as transcript:
        return polled(request, transcript.outline())


@router.get("/{run_id}/search", responses=answers(Matches))
def search(
    site: TheSite,
    actor: TheActor,
    run_id: RunId,
    q: Annotated[str, Query(min_length=1, max_length=500, description="Words to look for.")],
    first: Annotated[int, Query(alias="from", ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    kind: Annotated[str | None, Query(max_length=200, description="Kinds, by commas.")] = None,
) -> Response:
    """Positions of the entries that hold some words, whatever their case."""
    seen_run(site, actor, run_id)
    kinds = frozenset(kind.split(",")) if kind else frozenset[str]()
    if not kinds <= set(ENTRY_KINDS):
        named = ", ".join(ENTRY_KINDS)
        raise Refused(422, "invalid_request", f"Kinds are {named}.", fields={"kind": "unknown"})
    with site.shelf.reading(run_id) as transcript:
        return answer(transcript.search(q, first, limit, kinds))


@router.get("/{run_id}/entries/{entry_id}", responses=answers(Entry))
def entry(
    site: TheSite, actor: TheActor, run_id: RunId, entry_id: Annotated[str, Path(max_length=100)]
) -> Response:
    """One entry with its whole text, however long."""
    seen_run(site, actor, run_id)
    with site.shelf.reading(run_id) as transcript:
        return answer(transcript.entry(entry_id))


@router.get(
    "/{run_id}/stream",
    response_class=EventStream,
    responses=plain(
        "Events `entry`, `append`, `replace`, `status`, `reset`, `usage`, `end`.",
        "text/event-stream",
    ),
)
def stream(
    site: TheSite,
    actor: TheActor,
    run_id: RunId,
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
    after: Annotated[
        str | None, Query(max_length=200, description="Like Last-Event-ID, which wins.")
    ] = None,
    shape: Annotated[
        Literal["records", "lines"],
        Query(alias="as", description="Entries, or printed lines as events `line`."),
    ] = "records",
) -> Response:
    """The run as it happens, from any record on, also long after it ended."""
    seen_run(site, actor, run_id)
    last_id = last_event_id or after
    if shape == "lines":
        return EventStream(lambda: line_events(site.feeds, site.printed, run_id, last_id))
    return EventStream(lambda: run_events(site.feeds, site.shelf, run_id, last_id))
