"""The HTTP server: health, and a page of recent runs read from their files.

It answers only requests that name this machine as their host, so no web page elsewhere can ask it.
"""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable
from itertools import islice

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from binderclip import __version__
from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import short
from binderclip.store.home import Home
from binderclip.store.runfile import read_order, read_outcome

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
SHOWN_RUNS = 50
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>binderclip</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884 }}
td:last-child {{ max-width: 24rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }}
</style>
<h1>Runs</h1>
{body}
<p><small>binderclip {version}</small></p>
"""


def create_app(home: Home | None = None) -> FastAPI:
    """The application on one data directory."""
    place = home or Home.from_env()
    app = FastAPI(title="binderclip", version=__version__, docs_url=None, redoc_url=None)
    app.middleware("http")(only_this_machine)

    @app.get("/api/health")
    def health() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def front_page() -> str:
        return _PAGE.format(body=_runs_table(place), version=__version__)

    return app


async def only_this_machine(
    request: Request, answer: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Refuse requests whose Host is not this machine: a name that was rebound leads here too."""
    if _name(request.headers.get("host", "")) not in HOSTS:
        error = {"code": "forbidden_host", "message": "This server answers to 127.0.0.1 only."}
        return JSONResponse({"error": error}, status_code=403)
    return await answer(request)


def _name(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _runs_table(home: Home) -> str:
    rows = [_row(home, run_id) for run_id in islice(home.run_ids(), SHOWN_RUNS)]
    if not rows:
        return "<p>No runs yet. Start one: <code>binderclip run --help</code></p>"
    head = "<tr><th>Run<th>State<th>Adapter<th>Started<th>Prompt</tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _row(home: Home, run_id: str) -> str:
    cells: tuple[str, ...]
    try:
        order, outcome = read_order(home, run_id), read_outcome(home, run_id)
        state = outcome.state if outcome else "running"
        cells = (state, order.adapter_type, order.created_at, order.prompt or "")
    except BinderclipError as problem:
        cells = ("unreadable", "", "", problem.message)
    told = "".join(f"<td>{html.escape(cell)}</td>" for cell in (short(run_id), *cells))
    return f"<tr>{told}</tr>"
