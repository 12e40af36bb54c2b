"""What runtimes printed that their adapters had never seen: `drift/<adapter>.json`.

Each finding stands there once per version of the runtime; a damaged file is begun anew.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from binderclip.contract.errors import StoreError
from binderclip.contract.wire import Wire
from binderclip.store.home import Home
from binderclip.store.jsonfile import encode, read_json, write_atomic

MOST_VERSIONS = 20


class Drift(Wire, frozen=True, kw_only=True):
    """What one version of a runtime printed that was new, and the first run that showed it."""

    version: str
    found: tuple[str, ...]
    run_id: str
    at: str
    program: str | None = None
    """The program's path, size and time, by which its version is known without asking it."""


class DriftFile(Wire, frozen=True, kw_only=True):
    versions: tuple[Drift, ...] = ()


def read_drift(home: Home, adapter: str) -> tuple[Drift, ...]:
    """All findings about an adapter's runtime, the newest version last."""
    try:
        return read_json(_path(home, adapter), DriftFile).versions
    except (OSError, StoreError):
        return ()


def note_drift(home: Home, adapter: str, drift: Drift) -> bool:
    """Keep what is new about a version; False if all of it was known already."""
    versions = read_drift(home, adapter)
    old = next((one for one in versions if one.version == drift.version), None)
    known = old.found if old else ()
    fresh = tuple(one for one in drift.found if one not in known)
    if not fresh:
        return False
    entry = msgspec.structs.replace(old or drift, found=known + fresh, program=drift.program)
    others = [one for one in versions if one.version != drift.version]
    kept = (*others, entry)[-MOST_VERSIONS:]
    path = _path(home, adapter)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomic(path, encode(DriftFile(versions=kept)))
    return True


def _path(home: Home, adapter: str) -> Path:
    return home.path / "drift" / f"{adapter}.json"
