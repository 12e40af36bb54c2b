"""`binderclip watch --server`: a run of another machine, by its stream of events (D9).

A server that restarts is not noticed: the stream goes on behind the last id that was heard.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click
import httpx
import msgspec

from binderclip.cli import INTERRUPTED
from binderclip.cli.asking import Refusal
from binderclip.cli.ending import Ending, exit_code
from binderclip.cli.show import Show, TextShow, heading, show_for
from binderclip.cli.terminal import Terminal
from binderclip.cli.waiting import tell, waiting
from binderclip.cli.words import between, moment
from binderclip.contract.entry import AppendRecord, Entry, EntryRecord, Record, ReplaceRecord
from binderclip.contract.errors import BinderclipError, ConfigError, RunNotFound
from binderclip.contract.ids import short
from binderclip.contract.run import RunState, RunView, StateChange
from binderclip.contract.wire import from_json, iso_time

PATIENCE_SEC = 120.0
"""A server may be down for so long before the watching ends."""
_PAUSE_SEC = 0.5
_SILENT_SEC = 45.0
"""Three keep-alives that did not come: the connection is dead."""
_entry: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class Unreachable(BinderclipError):
    """The server does not answer."""

    code = "unreachable"


def watch_afar(
    server: str, token: str | None, run: str | None, *, as_json: bool, debug: bool
) -> int:
    """Show a run of that server until it is over; the exit code."""
    if not server.startswith(("http://", "https://")):
        raise ConfigError(f"{server!r} is no address.", hint="It begins with http:// or https://.")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    timeout = httpx.Timeout(10, read=_SILENT_SEC)
    with httpx.Client(base_url=server, headers=headers, timeout=timeout) as client:
        view = _find(client, run)
        show = show_for(view.id, Terminal(), as_json=as_json, debug=debug)
        if isinstance(show, TextShow):
            show.began(moment(view.created_at) or 0)
        try:
            with show:
                where = f"{view.cwd} of {server}" if view.cwd else server
                show.open(heading(view.adapter_type, where))
                view = _Following(client, view, show).to_its_end()
        except KeyboardInterrupt:
            click.echo("\nStopped watching; the run goes on.")
            return INTERRUPTED
    took = between(view.created_at, view.ended_at or view.created_at)
    show.end(Ending(view.status, view.result, took, run=short(view.id)), view.coverage)
    return exit_code(view.status)


class _Following:
    """One run, heard once from its beginning to its end."""

    def __init__(self, client: httpx.Client, view: RunView, show: Show) -> None:
        self._client = client
        self._view = view
        self._show = show
        self._last_id: str | None = None
        self._state: RunState | None = None
        self._over: RunView | None = None
        self._told = ""

    def to_its_end(self) -> RunView:
        give_up = time.monotonic() + PATIENCE_SEC
        while self._over is None:
            heard = self._last_id
            try:
                self._listen()
            except httpx.TransportError as problem:
                if self._last_id != heard:
                    give_up = time.monotonic() + PATIENCE_SEC
                if time.monotonic() > give_up:
                    raise _silent(self._client, problem) from None
                time.sleep(_PAUSE_SEC)
        return self._over

    def _listen(self) -> None:
        headers = {"last-event-id": self._last_id} if self._last_id else {}
        path = f"/api/runs/{self._view.id}/stream"
        with self._client.stream("GET", path, headers=headers) as response:
            if response.is_error:
                response.read()
                raise _refusal(response)
            for id, name, data in _events(response.iter_lines()):
                self._last_id = id
                self._hear(name, data)

    def _hear(self, name: str, data: str) -> None:
        if name == "end":
            self._over = from_json(data, RunView)
        elif name == "status":
            self._enter(from_json(data, RunView))
        elif name == "reset":
            self._show.notice("Another parser told this run anew; here it is from its beginning.")
        elif (record := _record(name, data)) is not None:
            self._show.records([record])

    def _enter(self, view: RunView) -> None:
        if view.status == "queued":
            why = waiting(view)
            if why != self._told:
                self._told, self._state = why, view.status
                tell(self._show, view, why)
        elif view.status != self._state:
            self._state = view.status
            at = view.ended_at or iso_time(time.time())
            self._show.state(StateChange(state=view.status, at=at, reason="", actor="server"))


def _record(name: str, data: str) -> Record | None:
    if name == "entry":
        return EntryRecord(entry=_entry.decode(data))
    kinds: dict[str, Any] = {"append": AppendRecord, "replace": ReplaceRecord}
    return from_json(data, kinds[name]) if name in kinds else None


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields["id"], fields["event"], fields["data"]
            fields = {}


def _find(client: httpx.Client, named: str | None) -> RunView:
    """The run that a person named by an id or its last characters, or the newest."""
    cursor: str | None = None
    while True:
        page = _page(client, cursor)
        for item in page["items"]:
            if item["id"].endswith((named or "").lower()):
                return msgspec.convert(item, RunView)
        cursor = page["next"]
        if cursor is None:
            told = f"The server has no run {named!r}." if named else "The server has no runs yet."
            raise RunNotFound(told)


def _page(client: httpx.Client, cursor: str | None) -> Any:
    params = {"limit": "200", **({"cursor": cursor} if cursor else {})}
    try:
        response = client.get("/api/runs", params=params)
    except httpx.TransportError as problem:
        raise _silent(client, problem) from None
    if response.is_error:
        raise _refusal(response)
    return response.json()


def _silent(client: httpx.Client, problem: Exception) -> Unreachable:
    hint = "Is `binderclip up` running there, with a --host that this machine reaches?"
    return Unreachable(f"{client.base_url} does not answer: {problem}.", hint=hint)


def _refusal(response: httpx.Response) -> BinderclipError:
    if response.status_code == 401:
        hint = "Set BINDERCLIP_TOKEN to what BINDERCLIP_HOME/token holds on that machine."
        return Refusal({"message": "The server asks for its token.", "hint": hint})
    try:
        return Refusal(response.json()["error"])
    except (ValueError, LookupError, TypeError):
        return Refusal({"message": f"The server answered {response.status_code}."})
