"""Pasted output through an adapter's parser: its entries, which parser read it, and why that one.

Nothing is kept; size, number of entries and requests at once are bounded.
"""

from __future__ import annotations

import threading
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from binderclip.contract.entry import Coverage, Entry, clip
from binderclip.contract.run import ExecutionResult
from binderclip.contract.wire import Wire
from binderclip.plugins.registry import load_adapter
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.parser import GenericParser, Parser
from binderclip.sdk.testing.replay import Replay, replay
from binderclip.server.auth import NoAgent
from binderclip.server.errors import Refused
from binderclip.server.requests import Body
from binderclip.server.routes.adapters import Type
from binderclip.server.schema import answer, answers
from binderclip.server.site import TheSite

MOST_CHARACTERS = 512 * 1024
MOST_ENTRIES = 1000
AT_ONCE = 2

router = APIRouter(tags=["adapters"])
_parsing = threading.BoundedSemaphore(AT_ONCE)
_Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
ParserKind = Literal["builtin", "plugin", "ui-parser", "generic"]


class Pasted(Body):
    """What a runtime printed, and how it ended."""

    stdout: _Text = ""
    stderr: _Text = ""
    exit_code: Annotated[int, Field(ge=0, le=255)] = 0


class ParserInForce(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The parser that read the lines, and why it was this one."""

    kind: ParserKind
    version: str
    why: str
    problem: str | None
    """Why it stopped reading, if it did; from there on lines are generic."""
    failures: tuple[str, ...]
    """What it raised, line by line; those lines were read by the generic rule (T3)."""
    dropped: int
    """Things that it returned and that are no entries."""


class Parsed(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What pasted output becomes; `entries` has the first thousand."""

    parser: ParserInForce
    coverage: Coverage
    total: int
    entries: tuple[Entry, ...]
    result: ExecutionResult


@router.post("/api/adapters/{type}/parse", responses=answers(Parsed))
def parse(site: TheSite, _: NoAgent, type: Type, body: Pasted) -> Response:
    """Read pasted output as a run of this adapter would be read; nothing is kept."""
    adapter = load_adapter(type)
    if not _parsing.acquire(blocking=False):
        message = f"{AT_ONCE} other texts are being parsed."
        raise Refused(429, "busy", message, hint="Try again in a moment.")
    try:
        stdout, stderr = (text.encode("utf-8", "replace") for text in (body.stdout, body.stderr))
        done = replay(adapter, stdout, stderr, exit_code=body.exit_code, ts=site.now())
    finally:
        _parsing.release()
    entries = tuple(clip(entry) for entry in done.entries[:MOST_ENTRIES])
    told = Parsed(
        parser=_in_force(adapter, done),
        coverage=done.coverage,
        total=len(done.entries),
        entries=entries,
        result=done.result,
    )
    return answer(told)


def _in_force(adapter: Adapter, done: Replay) -> ParserInForce:
    parser = done.builder.parser
    kind, why = _chosen(adapter, parser)
    return ParserInForce(
        kind=kind,
        version=adapter.parser_version,
        why=why,
        problem=getattr(parser, "broken", None),
        failures=tuple(done.builder.failures),
        dropped=done.builder.dropped,
    )


def _chosen(adapter: Adapter, parser: Parser) -> tuple[ParserKind, str]:
    # Only a server that parses pays for what plugins need.
    from binderclip.plugins.adapter import PluginAdapter
    from binderclip.plugins.parsing import JsParser, PythonParser

    if isinstance(parser, PythonParser):
        return "plugin", "The plugin has a parser in Python; it is asked before any ui-parser.js."
    if isinstance(parser, JsParser):
        return "ui-parser", "The package declares a ui-parser.js, and it could be loaded."
    if isinstance(adapter, PluginAdapter):
        return _without_own(adapter.description.parser.reason, parser)
    if isinstance(parser, GenericParser):
        return "generic", "This runtime prints plain text: every line is what the agent said."
    return "builtin", "The adapter is built in and knows what its runtime prints."


def _without_own(refused: str | None, parser: Parser) -> tuple[ParserKind, str]:
    reason = f"Its ui-parser.js is not used: {refused}" if refused else "It declares no parser"
    reason = reason.rstrip(".")
    if isinstance(parser, GenericParser):
        return "generic", f"{reason}. The generic rule reads every line as what the agent said."
    return "builtin", f"{reason}. It replaces a built-in adapter and takes that one's parser."
