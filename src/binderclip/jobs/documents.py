"""Events, checkpoints and jobs as documents: what a newer or foreign writer added is kept.

A structure holds the fields that are known; `Kept` carries the rest beside it and writes it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from binderclip.contract.checkpoint import Checkpoint
from binderclip.contract.event import Event
from binderclip.contract.job import Job
from binderclip.contract.wire import to_plain

T = TypeVar("T")
_NOTHING = object()


@dataclass(frozen=True)
class Kept(Generic[T]):
    """A document: its value, and what the value has no field for."""

    value: T
    unknown: Any = _NOTHING

    def encode(self) -> bytes:
        """The document again, with everything that it had."""
        return msgspec.json.encode(_merged(to_plain(self.value), self.unknown))

    def with_value(self, value: T) -> Kept[T]:
        """Another value in the same document."""
        return Kept(value, self.unknown)


def read_checkpoint(data: bytes | str) -> Kept[Checkpoint]:
    """A checkpoint; `msgspec.ValidationError` if it is none."""
    return _read(msgspec.json.decode(data), Checkpoint)


def read_job(data: bytes | str) -> Kept[Job]:
    return _read(msgspec.json.decode(data), Job)


def read_event(data: bytes | str) -> Kept[Event] | Kept[dict[str, Any]]:
    """An event; one of a type that nobody here knows stays a dictionary."""
    plain = msgspec.json.decode(data)
    if isinstance(plain, dict) and plain.get("type") not in EVENT_TYPES:
        return Kept(plain)
    return _read(plain, Event)  # type: ignore[arg-type]


def schemas() -> dict[str, Any]:
    """JSON Schema of checkpoint, event and job; every object in it is open."""
    kinds = {"Checkpoint": Checkpoint, "Event": Event, "Job": Job}
    found, components = msgspec.json.schema_components(
        list(kinds.values()), ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {**components, **_aliases(kinds, found)},
    }


EVENT_TYPES: frozenset[str] = frozenset(kind.__struct_config__.tag for kind in Event.__args__)


def _aliases(kinds: dict[str, Any], found: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The entries that `schema_components` left inline, such as a union of structures."""
    named = zip(kinds, found, strict=True)
    return {name: schema for name, schema in named if "$ref" not in schema}


def _read(plain: Any, kind: type[T]) -> Kept[T]:
    value = msgspec.convert(plain, kind)
    return Kept(value, _beyond(plain, to_plain(value)))


def _beyond(whole: Any, known: Any) -> Any:
    """What `whole` has and `known` has not, in the shape of `whole`."""
    if isinstance(whole, dict) and isinstance(known, dict):
        found = {key: _beyond(whole[key], known.get(key, _NOTHING)) for key in whole}
        kept = {key: value for key, value in found.items() if value is not _NOTHING}
        return kept or _NOTHING
    if isinstance(whole, list) and isinstance(known, list) and len(whole) == len(known):
        parts = [_beyond(one, other) for one, other in zip(whole, known, strict=True)]
        return _NOTHING if all(part is _NOTHING for part in parts) else parts
    return whole if known is _NOTHING else _NOTHING


def _merged(known: Any, unknown: Any) -> Any:
    if unknown is _NOTHING:
        return known
    if isinstance(known, dict) and isinstance(unknown, dict):
        added = {key: value for key, value in unknown.items() if key not in known}
        return {**{key: _merged(known[key], unknown.get(key, _NOTHING)) for key in known}, **added}
    if isinstance(known, list) and isinstance(unknown, list):
        # A list that grew or shrank since has nothing to say about its old places.
        if len(known) != len(unknown):
            return known
        return [_merged(one, other) for one, other in zip(known, unknown, strict=True)]
    return known
