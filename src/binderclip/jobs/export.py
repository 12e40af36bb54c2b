"""A run or a job as a file to share: entries, events, Markdown, or one HTML page.

Everything is scanned for secrets before the first byte is given: an export is whole or refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

import msgspec

from binderclip.contract.entry import Entry
from binderclip.contract.errors import ConfigError, RunNotFound, SecretFound
from binderclip.contract.ids import FULL_ID, short
from binderclip.contract.run import RunView
from binderclip.contract.wire import to_plain
from binderclip.jobs.digest import markdown
from binderclip.jobs.history import RunHistory
from binderclip.jobs.page import Page, chain_of, page
from binderclip.jobs.pieces import pieces
from binderclip.jobs.runtimes import is_structured
from binderclip.jobs.scrub import Scrubber
from binderclip.jobs.source import run_entries
from binderclip.jobs.store import JobStore
from binderclip.jobs.wording import title
from binderclip.store.fileview import file_view
from binderclip.store.home import Home
from binderclip.store.runfile import read_order

Format = Literal["entries", "events", "markdown", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA_TYPES: dict[Format, str] = {
    "entries": "application/jsonl",
    "events": "application/jsonl",
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
ENDINGS: dict[Format, str] = {
    "entries": "entries.jsonl",
    "events": "events.jsonl",
    "markdown": "md",
    "html": "html",
}
_NAMED = 5
_CHUNK = 64 * 1024


def export(
    home: Home,
    run_or_job_id: str,
    format: Format,
    *,
    redact: bool = False,
    env: Mapping[str, str] | None = None,
) -> Iterator[bytes]:
    """The export in pieces of bytes; `SecretFound` if it holds secrets and `redact` is not set.

    `env` is searched for values of secret-named variables; by default it is this process's own.
    """
    if format not in FORMATS:
        raise ConfigError(f"There is no format {format!r}.", hint=f"One of {', '.join(FORMATS)}.")
    run_ids = runs_of(home, run_or_job_id)
    told = dict(os.environ if env is None else env)
    if not redact:
        _refuse_secrets(home, run_ids, format, Scrubber(told))
    return _chunks(_Exporter(home, run_ids, Scrubber(told)).text(format))


def runs_of(home: Home, run_or_job_id: str) -> list[str]:
    """The run of this id, or the finished runs of the job of this id."""
    if FULL_ID.fullmatch(run_or_job_id):
        if home.run_dir(run_or_job_id).is_dir():
            return [run_or_job_id]
        store = JobStore(home)
        if store.get_dir(run_or_job_id).is_dir():
            return list(store.get(run_or_job_id).runs)
    raise RunNotFound(f"There is no run or job {run_or_job_id}.", hint="`binderclip runs` lists.")


def _refuse_secrets(home: Home, run_ids: list[str], format: Format, scrubber: Scrubber) -> None:
    for _ in _Exporter(home, run_ids, scrubber).scanned(format):
        if len({str(finding) for finding in scrubber.findings}) > _NAMED:
            break
    if not scrubber.findings:
        return
    # A text may stand in several fields of the same name, such as a result and its summary.
    places = list(dict.fromkeys(map(str, scrubber.findings)))
    named = "; ".join(places[:_NAMED])
    more = " and more" if len(places) > _NAMED else ""
    raise SecretFound(
        f"The export would give away {named}{more}.",
        hint="Mask them with --redact, or leave it.",
        fields={finding.place: finding.what for finding in scrubber.findings[:_NAMED]},
    )


class _Exporter:
    """Gives the text of an export, everything in it scrubbed."""

    def __init__(self, home: Home, run_ids: list[str], scrubber: Scrubber) -> None:
        self.home = home
        self.run_ids = run_ids
        self.scrubber = scrubber

    def scanned(self, format: Format) -> Iterator[object]:
        """All that the export is made of, each part scanned as it is passed on."""
        for run_id in self.run_ids:
            yield self._view(run_id)
            yield from self._events(run_id) if format == "events" else self._entries(run_id)

    def text(self, format: Format) -> Iterator[bytes]:
        if format == "html":
            return (part.encode("utf-8", "replace") for part in self._page())
        if format == "markdown":
            return (part.encode("utf-8", "replace") for part in self._markdown())
        return self._lines(format)

    def _lines(self, format: Format) -> Iterator[bytes]:
        for run_id in self.run_ids:
            if format == "events":
                yield from (msgspec.json.encode(event) + b"\n" for event in self._events(run_id))
                continue
            for entry in self._entries(run_id):
                yield _line({"type": "entry", "runId": run_id, "entry": entry})
            view = self._view(run_id)
            result = {"type": "result", "runId": run_id, "status": view.status}
            yield _line({**result, "result": view.result, "coverage": view.coverage})

    def _page(self) -> Iterator[str]:
        views = [self._view(run_id) for run_id in self.run_ids]
        chain = chain_of(views) if len(views) > 1 else ""
        return page(title(views[0]), self._articles(views), chain)

    def _articles(self, views: list[RunView]) -> Iterator[str]:
        for view in views:
            structured = self._is_structured(view.id)
            prefix = f"{short(view.id)}-" if len(views) > 1 else ""
            found = pieces(self._entries(view.id), structured=structured)
            yield from Page(structured=structured, prefix=prefix).run(view, found)

    def _markdown(self) -> Iterator[str]:
        for run_id in self.run_ids:
            structured = self._is_structured(run_id)
            found = pieces(self._entries(run_id), structured=structured)
            yield from markdown(self._view(run_id), found, structured=structured)

    def _is_structured(self, run_id: str) -> bool:
        return is_structured(read_order(self.home, run_id))

    def _view(self, run_id: str) -> RunView:
        view = msgspec.structs.replace(file_view(self.home, run_id), directory=None)
        return msgspec.convert(self._masked(to_plain(view), f"run {short(run_id)}"), RunView)

    def _entries(self, run_id: str) -> Iterator[Entry]:
        for entry in run_entries(self.home, run_id):
            before = len(self.scrubber.findings)
            masked = self._masked(msgspec.to_builtins(entry), f"entry {entry.id}")
            found = len(self.scrubber.findings) > before
            yield msgspec.convert(masked, Entry) if found else entry

    def _events(self, run_id: str) -> Iterator[Any]:
        for event in RunHistory(self.home, run_id).events():
            yield self._masked(to_plain(event), f"event {event.id.partition(':')[2]}")

    def _masked(self, value: Any, place: str) -> Any:
        return self.scrubber.masked(value, place)


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of a size that is worth a write."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
