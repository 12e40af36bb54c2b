"""The HTTP server on one data directory: the API, its streams, the built web app.

It answers only requests that name this machine as their host, so no web page elsewhere can ask it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse

from binderclip import __version__
from binderclip.server import errors, schema
from binderclip.server.auth import cookie_name
from binderclip.server.guard import LOOPBACK_NAMES, Guard
from binderclip.server.routes import (
    adapters,
    agents,
    companies,
    decisions,
    events,
    followups,
    health,
    history,
    issues,
    logs,
    playground,
    plugins,
    reports,
    runs,
    sandbox,
    sessions,
    settings,
    skills,
    transcript,
    workspaces,
)
from binderclip.server.site import Site
from binderclip.store.home import Home

_A_YEAR = 365 * 24 * 3600
STATIC = Path(__file__).with_name("static")
ROUTERS = (
    health,
    events,
    runs,
    transcript,
    logs,
    plugins,
    adapters,
    playground,
    companies,
    agents,
    skills,
    issues,
    decisions,
    sessions,
    settings,
    reports,
    history,
    followups,
    workspaces,
)
_UNBUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>binderclip</title>
<meta name="viewport" content="width=device-width">
<h1>binderclip</h1>
<p>The server runs; its web app was not built. Build it with <code>script/bootstrap</code>, or use
the command line: <code>binderclip runs</code>, <code>binderclip watch</code>.</p>
<p><a href="/openapi.json">The API</a></p>
"""


def create_app(home: Home, hosts: frozenset[str] = LOOPBACK_NAMES) -> FastAPI:
    """The application on one data directory."""
    site = Site(home)
    app = FastAPI(
        title="binderclip",
        version=__version__,
        description="Runs of AI agents: start, follow, read and steer them.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.site = site
    errors.install(app)
    schema.install(app)
    for module in ROUTERS:
        # Not included: that would take every route apart a second time.
        app.router.routes.extend(module.router.routes)
    app.router.routes.extend(sandbox.router.routes)
    _serve_web_app(app)
    app.add_middleware(Guard, hosts=hosts)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.site.start()
    try:
        yield
    finally:
        app.state.site.close()


def _serve_web_app(app: FastAPI) -> None:
    """The built files by their names; every other page is the app, which reads the address."""

    @app.get("/{path:path}", include_in_schema=False)
    def page(request: Request, path: str) -> Response:
        if "token" in request.query_params:
            return _signed_in(request)
        if path.startswith("api/") or path == "api":
            return errors.error_response(404, "not_found", f"There is no /{path}.")
        wanted = (STATIC / path).resolve()
        if path and wanted.is_file() and wanted.is_relative_to(STATIC):
            kept = "public, max-age=31536000, immutable" if "assets/" in path else "no-cache"
            return FileResponse(wanted, headers={"cache-control": kept})
        index = STATIC / "index.html"
        if index.is_file():
            return FileResponse(index, headers={"cache-control": "no-cache"})
        return HTMLResponse(_UNBUILT)


def _signed_in(request: Request) -> Response:
    """Turn a token in the address into a cookie, so that the address does not keep it."""
    response = RedirectResponse(request.url.path, 303)
    token = request.query_params["token"]
    if request.app.state.site.tokens.is_person(token):
        name = cookie_name(request.url.port)
        response.set_cookie(name, token, max_age=_A_YEAR, httponly=True, samesite="strict")
    return response
