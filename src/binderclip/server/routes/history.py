"""Jobs, the same history for every runtime; and runs as files to share (N4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from binderclip.contract.checkpoint import Checkpoint
from binderclip.contract.event import Event
from binderclip.contract.ids import FULL_ID, short
from binderclip.contract.job import Job, JobNode, JobRun
from binderclip.contract.wire import Wire
from binderclip.server.answers import polled
from binderclip.server.auth import NoAgent, TheActor
from binderclip.server.requests import Limit
from binderclip.server.routes.runs import RunId, seen_run
from binderclip.server.schema import answers, page_of, plain
from binderclip.server.site import Site, TheSite

router = APIRouter(tags=["history"])
Format = Literal["entries", "events", "markdown", "html"]
JobPage = page_of("JobPage", Job)
EventPage = page_of("EventPage", Event)
JobId = Annotated[str, Path(pattern=f"^{FULL_ID.pattern}$")]
Redact = Annotated[bool, Query(description="Mask what looks like a secret.")]
_Offset = Annotated[int, Query(ge=0, le=10_000_000, description="`next` of the page before.")]


class JobDetail(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A job with its runs, and the tree of what continued what."""

    job: Job
    runs: tuple[JobRun, ...]
    tree: tuple[JobNode, ...]


@router.get("/api/jobs", responses=answers(JobPage))
def list_jobs(
    site: TheSite, _: NoAgent, request: Request, limit: Limit = 50, cursor: _Offset = 0
) -> Response:
    """Jobs, the one that began last first."""
    found = site.jobs.list(cursor + limit + 1)[cursor:]
    more = str(cursor + limit) if len(found) > limit else None
    return polled(request, JobPage(items=found[:limit], next=more))


@router.get("/api/jobs/{job_id}", responses=answers(JobDetail))
def show_job(site: TheSite, _: NoAgent, request: Request, job_id: JobId) -> Response:
    """One job: its runs and how they hang together."""
    return polled(request, _detail(site, job_id))


@router.get("/api/runs/{run_id}/job", responses=answers(JobDetail))
def job_of_run(site: TheSite, _: NoAgent, request: Request, run_id: RunId) -> Response:
    """The job that a run belongs to; 404 until the first run of it is over."""
    return polled(request, _detail(site, site.jobs.job_of(run_id)))


@router.get("/api/runs/{run_id}/events", responses=answers(EventPage))
def events(
    site: TheSite,
    actor: TheActor,
    request: Request,
    run_id: RunId,
    limit: Limit = 50,
    cursor: _Offset = 0,
) -> Response:
    """The standard events of a finished run, oldest first."""
    seen_run(site, actor, run_id)
    found = [
        msgspec.Raw(line) for line in islice(site.jobs.events(run_id), cursor, cursor + limit + 1)
    ]
    more = str(cursor + limit) if len(found) > limit else None
    return polled(request, EventPage(items=found[:limit], next=more))


@router.get("/api/runs/{run_id}/checkpoints", responses=answers(list[Checkpoint]))
def checkpoints(site: TheSite, actor: TheActor, request: Request, run_id: RunId) -> Response:
    """The checkpoints of a finished run, one for each attempt."""
    seen_run(site, actor, run_id)
    return polled(request, site.jobs.checkpoints(run_id))


@router.get(
    "/api/runs/{run_id}/export",
    response_class=StreamingResponse,
    responses=plain("The file.", "application/octet-stream"),
)
def export_run(
    site: TheSite,
    actor: TheActor,
    run_id: RunId,
    format: Format = "html",
    redact: Redact = False,
) -> Response:
    """A run as a file; refused where it holds something that looks like a secret."""
    seen_run(site, actor, run_id)
    return _file(site, "run", run_id, format, redact)


@router.get(
    "/api/jobs/{job_id}/export",
    response_class=StreamingResponse,
    responses=plain("The file.", "application/octet-stream"),
)
def export_job(
    site: TheSite, _: NoAgent, job_id: JobId, format: Format = "html", redact: Redact = False
) -> Response:
    """The finished runs of a job as one file; refused where it holds what looks like a secret."""
    return _file(site, "job", site.jobs.get(job_id).id, format, redact)


def _file(site: Site, kind: str, id: str, format: Format, redact: bool) -> Response:
    # Only now: what draws pages takes a fifth of the server's start.
    from binderclip.jobs.export import ENDINGS, MEDIA_TYPES, export

    pieces: Iterator[bytes] = export(site.home, id, format, redact=redact)
    name = f"{kind}-{short(id)}.{ENDINGS[format]}"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    }
    return StreamingResponse(pieces, headers=headers, media_type=MEDIA_TYPES[format])


def _detail(site: Site, job_id: str) -> JobDetail:
    job = site.jobs.get(job_id)
    return JobDetail(job=job, runs=tuple(site.jobs.runs(job_id)), tree=site.jobs.tree(job_id))
