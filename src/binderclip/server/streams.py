"""Server-sent events: a run as it happens, from any record on, also long after it ended (D9).

Ids are `<attempt>.<records>.<parser version>`; an id of another version gets `reset` and all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import anyio
import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from binderclip.contract.run import RunView
from binderclip.contract.wire import to_json
from binderclip.server.feeds import Feed, Feeds, Place, event
from binderclip.server.lines import PrintedLines
from binderclip.server.transcripts import TranscriptShelf
from binderclip.store.runfile import UsageSoFar

KEEP_ALIVE_SECONDS = 15.0
SAFETY_SECONDS = 1.0
"""A live run is looked at this often even if the system sends no notice."""
_LOOKING_SECONDS = 0.05
_LINES_AT_ONCE = 500
_KEEP_ALIVE = b": keep-alive\n\n"
_RETRY = b"retry: 1000\n\n"


class EventStream(Response):
    """Events sent as they come; it ends with the client, the source or the server."""

    media_type = "text/event-stream"

    def __init__(self, events: Callable[[], AsyncIterator[bytes]], status_code: int = 200) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(status_code=status_code, headers=headers)
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, receive, group.cancel_scope)
            async for chunk in self._events():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()

    @staticmethod
    async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        scope.cancel()


async def run_events(
    feeds: Feeds, shelf: TranscriptShelf, run_id: str, last_id: str | None
) -> AsyncIterator[bytes]:
    """Everything behind the last id that the viewer knows, then what happens, then `end`."""
    known = _known(last_id)
    # In a thread, since finding a record's place may have to read a long transcript.
    place = await asyncio.to_thread(_resume, shelf, run_id, known)
    woken = asyncio.Event()
    feed = feeds.join(run_id, woken)
    try:
        yield _RETRY
        async for chunk in _Viewer(feed, place or Place(), reset=place is None).events(
            feeds, woken
        ):
            yield chunk
    finally:
        feeds.leave(feed, woken)


async def line_events(
    feeds: Feeds, printed: PrintedLines, run_id: str, last_id: str | None
) -> AsyncIterator[bytes]:
    """Printed lines behind the last one that the viewer knows, for a parser that runs there."""
    woken = asyncio.Event()
    feed = feeds.join(run_id, woken)
    behind, idle = _line_behind(last_id), 0.0
    try:
        yield _RETRY
        while not feeds.closing:
            woken.clear()
            page = await asyncio.to_thread(printed.page, run_id, behind, _LINES_AT_ONCE)
            if page.lines:
                behind, idle = page.next, 0.0
                parts = (event("line", f"lines.{line.n + 1}", to_json(line)) for line in page.lines)
                yield b"".join(parts)
            elif page.complete:
                yield event("end", f"lines.{behind}", to_json(feed.view))
                return
            else:
                idle = await wait(feed, woken, idle)
                if idle >= KEEP_ALIVE_SECONDS:
                    idle = 0.0
                    yield _KEEP_ALIVE
    finally:
        feeds.leave(feed, woken)


def _line_behind(last_id: str | None) -> int:
    kind, _, number = (last_id or "").partition(".")
    return int(number) if kind == "lines" and number.isdecimal() and len(number) < 16 else 0


async def wait(feed: Feed, woken: asyncio.Event, idle: float) -> float:
    """Until something changed; how long nothing was sent, when nothing did."""
    pause = _LOOKING_SECONDS if feed.silent else SAFETY_SECONDS
    try:
        async with asyncio.timeout(pause):
            await woken.wait()
    except TimeoutError:
        feed.look()
        return idle + pause
    return idle


class _Viewer:
    """One viewer's way through a run."""

    def __init__(self, feed: Feed, place: Place, *, reset: bool) -> None:
        self._feed = feed
        self._place = place
        self._generation = -1 if reset else feed.generation
        self._statuses = -1
        self._used: UsageSoFar | None = None

    async def events(self, feeds: Feeds, woken: asyncio.Event) -> AsyncIterator[bytes]:
        idle = 0.0
        while not feeds.closing:
            woken.clear()
            # Asked before reading: what is over has its whole transcript on disk already.
            over = self._feed.over
            chunk = self._next()
            if chunk:
                idle = 0.0
                yield chunk
                continue
            if over:
                yield self._end()
                return
            idle = await wait(self._feed, woken, idle)
            if idle >= KEEP_ALIVE_SECONDS:
                idle = 0.0
                yield _KEEP_ALIVE

    def _next(self) -> bytes:
        """What the viewer has not seen yet: a reset, a new state, usage, the next records."""
        feed, said = self._feed, b""
        if self._generation != feed.generation:
            self._generation = feed.generation
            self._place = Place()
            said += event("reset", self._id(), b"{}")
        if self._statuses != feed.statuses:
            self._statuses = feed.statuses
            said += event("status", self._id(), to_json(_without_result(feed.view)))
        if feed.used is not None and self._used != feed.used:
            self._used = feed.used
            said += event("usage", self._id(), to_json(feed.used))
        batch = feed.batch(self._place)
        if batch is not None:
            self._place = batch.after
            said += batch.data
        return said

    def _end(self) -> bytes:
        view = self._feed.view
        used = UsageSoFar(usage=view.usage, cost_usd=view.cost_usd)
        return event("usage", self._id(), to_json(used)) + event("end", self._id(), to_json(view))

    def _id(self) -> str:
        version = self._feed.version(self._place.attempt)
        if version is None:
            return "0.0.0"
        return f"{self._place.attempt}.{self._place.records}.{version}"


def _without_result(view: RunView) -> RunView:
    return msgspec.structs.replace(view, result=None)


def _known(last_id: str | None) -> tuple[int, int, str] | None:
    """The parts of an id; None for a viewer that knows nothing."""
    parts = (last_id or "").split(".", 2)
    if len(parts) != 3 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    if max(len(parts[0]), len(parts[1])) > 15 or not int(parts[0]):
        return None
    return int(parts[0]), int(parts[1]), parts[2]


def _resume(
    shelf: TranscriptShelf, run_id: str, known: tuple[int, int, str] | None
) -> Place | None:
    """The place of an id; None if it tells of another transcript than there is now."""
    if known is None:
        return Place()
    attempt, records, version = known
    with shelf.reading(run_id) as transcript:
        for index in transcript.attempts:
            if index.attempt == attempt and index.version == version and records <= index.records:
                return Place(attempt, records, index.offset_of(records))
    return None
