"""What an agent printed: the exact bytes with ranges, and the lines for parsers elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from binderclip.contract.entry import Stream
from binderclip.server.answers import matches, wanted_range
from binderclip.server.auth import TheActor
from binderclip.server.errors import Refused
from binderclip.server.lines import LinePage
from binderclip.server.routes.runs import RunId, seen_run
from binderclip.server.schema import answer, answers, plain
from binderclip.server.site import Site, TheSite
from binderclip.store.runlog import AttemptLog

router = APIRouter(prefix="/api/runs", tags=["logs"])
CHUNK_BYTES = 1024 * 1024
Attempt = Annotated[int | None, Query(ge=1, le=1000, description="The last one if not given.")]


@router.get(
    "/{run_id}/log",
    responses={
        **plain("The bytes.", "application/octet-stream"),
        **plain("The bytes asked for.", "application/octet-stream", 206),
        304: {"description": "The client holds them already."},
        416: {"description": "The range lies outside."},
    },
    response_class=StreamingResponse,
)
def log(
    site: TheSite,
    actor: TheActor,
    request: Request,
    run_id: RunId,
    stream: Stream = "stdout",
    attempt: Attempt = None,
) -> Response:
    """The exact bytes of a stream, as far as they are indexed; ranges are served."""
    seen_run(site, actor, run_id)
    number = _attempt(site, run_id, attempt)
    source = AttemptLog(site.home.attempt_dir(run_id, number))
    size = source.size(stream)
    # An agent's output only grows: as many bytes are the same bytes.
    etag = f'"{run_id}.{number}.{stream}.{size}"'
    headers = {
        "etag": etag,
        "accept-ranges": "bytes",
        "cache-control": "private, no-cache",
        "content-disposition": f'inline; filename="{stream}.log"',
    }
    if matches(request.headers.get("if-none-match"), etag):
        source.close()
        return Response(status_code=304, headers=headers)
    try:
        asked = request.headers.get("range") if _still(request, etag) else None
        wanted = wanted_range(asked, size)
    except Refused:
        source.close()
        raise
    first, last = wanted or (0, size - 1)
    headers["content-length"] = str(last - first + 1)
    if wanted:
        headers["content-range"] = f"bytes {first}-{last}/{size}"
    return StreamingResponse(
        _bytes(source, stream, first, last + 1),
        206 if wanted else 200,
        headers,
        media_type="application/octet-stream",
    )


@router.get("/{run_id}/lines", responses=answers(LinePage))
def lines(
    site: TheSite,
    actor: TheActor,
    run_id: RunId,
    first: Annotated[int, Query(alias="from", ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> Response:
    """Printed lines of both streams in their order, for a parser that runs elsewhere."""
    seen_run(site, actor, run_id)
    return answer(site.printed.page(run_id, first, limit))


def _attempt(site: Site, run_id: str, asked: int | None) -> int:
    numbers = site.home.attempts(run_id)
    if not numbers or (asked is not None and asked not in numbers):
        raise Refused(404, "not_found", f"Run {run_id} has no attempt {asked or 1} yet.")
    return asked or numbers[-1]


def _still(request: Request, etag: str) -> bool:
    """Whether a range may be served: `If-Range` names what is there now, or is not asked."""
    condition = request.headers.get("if-range")
    return condition is None or condition.strip() == etag


async def _bytes(source: AttemptLog, stream: Stream, first: int, end: int) -> AsyncIterator[bytes]:
    try:
        while first < end:
            stop = min(end, first + CHUNK_BYTES)
            data = await asyncio.to_thread(_piece, source, stream, first, stop)
            if not data:
                # The agent cut its own log; the promised length cannot be kept.
                raise ConnectionAbortedError("the log was truncated while it was sent")
            first += len(data)
            yield data
    finally:
        source.close()


def _piece(source: AttemptLog, stream: Stream, first: int, end: int) -> bytes:
    return b"".join(source.read(stream, first, end))
