"""Events of a runtime that its adapter has never seen: types and fields beyond its recordings.

An adapter's folder may hold `shapes.json`, the events of its recordings and their fields; without
one nothing is ever reported as new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

SHAPES = "shapes.json"
MOST = 20
_LONGEST_NAME = 80
Shape = tuple[str, ...]
"""As `JsonParser.shapes` has it: type, subtype, then the names of the fields."""


def known_events(folder: Path) -> dict[str, frozenset[str]]:
    """The events that an adapter's recordings hold, by name; empty where nothing is known."""
    try:
        events = msgspec.json.decode((folder / SHAPES).read_bytes(), type=dict[str, list[str]])
    except (OSError, msgspec.DecodeError):
        return {}
    return {name: frozenset(fields) for name, fields in events.items()}


def events_of(shapes: Iterable[Shape]) -> dict[str, list[str]]:
    """Each event's fields over all its shapes, in order."""
    found: dict[str, set[str]] = {}
    for shape in shapes:
        found.setdefault(_name(shape), set()).update(shape[2:])
    return {name: sorted(found[name]) for name in sorted(found)}


def new_events(shapes: Iterable[Shape], known: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """What of these shapes is new, in words; nothing if nothing is known at all."""
    if not known:
        return ()
    new: list[str] = []
    for name, fields in events_of(shapes).items():
        if name not in known:
            new.append(f"event {_short(name)}")
        else:
            new += [
                f"field {_short(field)} of {name}" for field in fields if field not in known[name]
            ]
    return tuple(new[:MOST])


def _name(shape: Shape) -> str:
    kind, subtype = shape[0], shape[1]
    return kind if subtype == "None" else f"{kind}/{subtype}"


def _short(name: str) -> str:
    """A name from untrusted output, on one line and of bearable length."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name)
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"
