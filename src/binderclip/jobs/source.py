"""The entries of a run as its files hold them: whole, in order, with little of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Entry,
    EntryRecord,
    Record,
    ReplaceRecord,
    Thinking,
)
from binderclip.store.home import Home
from binderclip.store.transcripts import NAME, read_last_texts, read_transcript

_REPLACE = b'{"type":"replace"'
_replacement = msgspec.json.Decoder(ReplaceRecord)


def run_entries(home: Home, run_id: str) -> Iterator[Entry]:
    """The entries of all attempts."""
    for number in home.attempts(run_id):
        yield from attempt_entries(home.attempt_dir(run_id, number))


def attempt_entries(directory: Path) -> Iterator[Entry]:
    """Each entry once, with the text that it grew to and the state that it was left in."""
    path = directory / NAME
    last_states = _last_states(path)
    for entry in whole_entries(read_transcript(path)):
        yield last_states.get(entry.id, entry) if last_states else entry


def telling_entries(directory: Path, texts: int) -> Iterable[Entry]:
    """The entries that events are made of: where an agent only spoke, its last `texts` do."""
    path = directory / NAME
    said = read_last_texts(path, texts) if path.exists() else None
    return attempt_entries(directory) if said is None else said


def whole_entries(records: Iterable[Record]) -> Iterator[Entry]:
    """Entries with their appended text; only those behind a text that still grows are held."""
    waiting: deque[Entry] = deque()
    grown: dict[str, list[str]] = {}
    open_in: dict[str | None, str] = {}
    for record in records:
        if isinstance(record, AppendRecord):
            if record.id in grown:
                grown[record.id].append(record.text)
        elif isinstance(record, EntryRecord):
            entry = record.entry
            if entry.stream == "stdout":
                open_in.pop(entry.parent_tool_use_id, None)
            if isinstance(entry, Assistant | Thinking) and entry.delta:
                open_in[entry.parent_tool_use_id] = entry.id
                grown[entry.id] = [entry.text]
            elif not waiting:
                yield entry
                continue
            waiting.append(entry)
            still_open = open_in.values()
            while waiting and waiting[0].id not in still_open:
                yield _whole(waiting.popleft(), grown)
    for entry in waiting:
        yield _whole(entry, grown)


def _whole(entry: Entry, grown: dict[str, list[str]]) -> Entry:
    parts = grown.pop(entry.id, None)
    if parts is None or len(parts) == 1:
        return entry
    return msgspec.structs.replace(entry, text="".join(parts))


def _last_states(path: Path) -> dict[str, Entry]:
    """The last state of each plan: there are few, so they may be known before the rest is read."""
    found: dict[str, Entry] = {}
    if not path.exists():
        return found
    with path.open("rb") as lines:
        for line in lines:
            if line.startswith(_REPLACE):
                try:
                    record = _replacement.decode(line)
                except msgspec.DecodeError:
                    continue
                found[record.id] = record.entry
    return found
