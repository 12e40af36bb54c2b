"""Plugins over HTTP: the verbs of the command line, and the parsers that browsers load (P2, U3).

Everything that changes what is installed needs the person's token; steps are told on `/api/events`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from binderclip.contract.errors import AdapterNotFound, BinderclipError, ConfigError
from binderclip.contract.manifest import AdapterView
from binderclip.contract.wire import Wire, to_json
from binderclip.plugins.described import Description
from binderclip.plugins.fetch import Told
from binderclip.plugins.records import PluginRecord, PluginStore
from binderclip.plugins.service import Plugins, Progress
from binderclip.server.answers import matches, polled
from binderclip.server.auth import TheActor, ThePerson
from binderclip.server.requests import Body
from binderclip.server.routes.adapters import Type
from binderclip.server.schema import answer, answers, plain
from binderclip.server.site import Site, TheSite

router = APIRouter(tags=["adapters"])
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class Install(Body):
    """What to install: a spec as on the command line, or Paperclip's packageName and version."""

    spec: Text | None = None
    package_name: Text | None = None
    version: Text | None = None
    is_local_path: bool = False
    allow_scripts: bool = False
    override: bool = False
    builtin_parser: bool = False


class Change(Body):
    disabled: bool


class OverrideChange(Body):
    paused: bool


class PluginDetail(Wire, frozen=True, kw_only=True):
    """A plugin's record and what it said of itself, with the report on its parser."""

    record: PluginRecord
    description: Description


@router.post(
    "/api/adapters/install", status_code=201, responses=answers(PluginRecord, 201, "Installed.")
)
def install(site: TheSite, _: ThePerson, body: Install) -> Response:
    """Install an adapter from npm, PyPI or a path of this machine."""
    spec = _spec(body)
    with _telling(site, spec) as told:
        record = _plugins(site).install(
            spec,
            scripts=body.allow_scripts,
            override=body.override,
            builtin_parser=body.builtin_parser,
            told=told,
        )
    return answer(_changed(site, record), 201)


@router.get("/api/adapters/{type}/plugin", responses=answers(PluginDetail))
def show_plugin(request: Request, site: TheSite, _: TheActor, type: Type) -> Response:
    """Where a plugin came from, what it can do, and why its parser is used or not."""
    plugins = _plugins(site)
    record = plugins.record(type)
    return polled(request, PluginDetail(record=record, description=plugins.describe(type)))


@router.patch("/api/adapters/{type}", responses=answers(AdapterView))
def change(site: TheSite, _: ThePerson, type: Type, body: Change) -> Response:
    """Disable an adapter or enable it again."""
    plugins = _plugins(site)
    plugins.set_disabled(type, body.disabled)
    _tell(site, {"type": type, "change": "disabled" if body.disabled else "enabled"})
    return answer(next(view for view in plugins.list() if view.type == type))


@router.delete("/api/adapters/{type}", status_code=204, responses={204: {"description": "Gone."}})
def remove(site: TheSite, _: ThePerson, type: Type) -> Response:
    """Remove a plugin; a built-in adapter that it replaced is in force again."""
    _plugins(site).remove(type)
    _tell(site, {"type": type, "change": "removed"})
    return Response(status_code=204)


@router.post("/api/adapters/{type}/reload", responses=answers(PluginRecord))
def reload(site: TheSite, _: ThePerson, type: Type) -> Response:
    """Load a plugin anew, with everything that changed in its folder (P4)."""
    with _telling(site, type) as told:
        record = _plugins(site).reload(type, told=told)
    return answer(_changed(site, record))


@router.post("/api/adapters/{type}/reinstall", responses=answers(PluginRecord))
def reinstall(site: TheSite, _: ThePerson, type: Type) -> Response:
    """Fetch the same version once more."""
    with _telling(site, type) as told:
        record = _plugins(site).reinstall(type, told=told)
    return answer(_changed(site, record))


@router.post("/api/adapters/{type}/upgrade", responses=answers(PluginRecord))
def upgrade(site: TheSite, _: ThePerson, type: Type) -> Response:
    """Fetch the newest version; running runs keep theirs."""
    with _telling(site, type) as told:
        record = _plugins(site).upgrade(type, told=told)
    return answer(_changed(site, record))


@router.post("/api/adapters/{type}/rollback", responses=answers(PluginRecord))
def rollback(site: TheSite, _: ThePerson, type: Type) -> Response:
    """Put the version before the last change back in force."""
    return answer(_changed(site, _plugins(site).rollback(type)))


@router.patch("/api/adapters/{type}/override", responses=answers(PluginRecord))
def set_override(site: TheSite, _: ThePerson, type: Type, body: OverrideChange) -> Response:
    """Pause the override of a built-in adapter, or let it stand again."""
    return answer(_changed(site, _plugins(site).set_override(type, paused=body.paused)))


@router.get("/api/adapters/{type}/ui-parser.js", responses=plain("The parser.", "text/javascript"))
@router.get("/api/{type}/ui-parser.js", include_in_schema=False)
def ui_parser(request: Request, site: TheSite, _: TheActor, type: Type) -> Response:
    """The parser that an adapter brings for the browser (U3)."""
    found = _plugins(site).ui_parser(type)
    if found is None:
        raise AdapterNotFound(f"The adapter {type} brings no parser that can be used.")
    headers = {"etag": found.etag, "cache-control": "private, no-cache"}
    if matches(request.headers.get("if-none-match"), found.etag):
        return Response(status_code=304, headers=headers)
    return Response(found.source, headers=headers, media_type="text/javascript; charset=utf-8")


def _plugins(site: Site) -> Plugins:
    return Plugins(PluginStore(site.home.path), clock=site.clock)


def _spec(body: Install) -> str:
    if body.spec:
        return body.spec
    if not body.package_name:
        raise ConfigError("Say what to install.", fields={"spec": "is missing"})
    if body.is_local_path:
        return body.package_name
    return f"npm:{body.package_name}" + (f"@{body.version}" if body.version else "")


@contextmanager
def _telling(site: Site, about: str) -> Iterator[Told]:
    """Tell every viewer the steps of what goes on, and why it came to nothing, if so."""

    def told(step: str, message: str) -> None:
        progress = Progress(step=step, message=message, at=site.now())
        site.notice("adapter-progress", to_json({"about": about, "progress": progress}))

    try:
        yield told
    except BinderclipError as problem:
        told("failed", problem.message)
        raise


def _changed(site: Site, record: PluginRecord) -> PluginRecord:
    _tell(site, {"type": record.type, "change": "installed", "version": record.version})
    return record


def _tell(site: Site, data: dict[str, Any]) -> None:
    site.notice("adapter", to_json(data))
