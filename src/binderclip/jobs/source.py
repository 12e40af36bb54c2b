"""The entries of a run as its files hold them: whole, in order, with little of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Entry,
    EntryRecord,
    Record,
    ReplaceRecord,
    SpentRecord,
    Thinking,
)
from binderclip.store.home import Home
from binderclip.store.transcripts import NAME, read_last_texts, read_transcript

_REPLACE = b'{"type":"replace"'
Told: TypeAlias = Entry | SpentRecord
"""What an attempt tells of itself: entries, and between them what model calls used."""
_replacement = msgspec.json.Decoder(ReplaceRecord)


def run_entries(home: Home, run_id: str) -> Iterator[Entry]:
    """The entries of all attempts."""
    for number in home.attempts(run_id):
        yield from attempt_entries(home.attempt_dir(run_id, number))


def attempt_entries(directory: Path) -> Iterator[Entry]:
    """Each entry once, with the text that it grew to and the state that it was left in."""
    return (told for told in attempt_told(directory) if not isinstance(told, SpentRecord))


def attempt_told(directory: Path) -> Iterator[Told]:
    """The same with what model calls used, each behind the entries that came of it."""
    path = directory / NAME
    return in_last_state(whole_entries(read_transcript(path)), _last_states(path))


def in_last_state(told: Iterable[Told], last_states: dict[str, Entry]) -> Iterator[Told]:
    """Plans as they were left; everything else as it is."""
    if not last_states:
        yield from told
        return
    for one in told:
        yield one if isinstance(one, SpentRecord) else last_states.get(one.id, one)


def telling_entries(directory: Path, texts: int) -> Iterable[Told]:
    """The entries that events are made of: where an agent only spoke, its last `texts` do."""
    path = directory / NAME
    said = read_last_texts(path, texts) if path.exists() else None
    return attempt_told(directory) if said is None else said


def whole_entries(records: Iterable[Record]) -> Iterator[Told]:
    """Entries with their appended text; only those behind a text that still grows are held."""
    waiting: deque[Told] = deque()
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
            while waiting and _id(waiting[0]) not in still_open:
                yield _whole(waiting.popleft(), grown)
        elif isinstance(record, SpentRecord):
            if waiting:
                waiting.append(record)
            else:
                yield record
    for told in waiting:
        yield _whole(told, grown)


def _id(told: Told) -> str:
    return "" if isinstance(told, SpentRecord) else told.id


def _whole(entry: Told, grown: dict[str, list[str]]) -> Told:
    parts = grown.pop(_id(entry), None)
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
