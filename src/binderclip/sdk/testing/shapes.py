"""`python -m binderclip.sdk.testing.shapes ADAPTER…`: write `shapes.json` from the recordings.

It lists every event and field that an adapter's recordings hold; what a run prints beyond it is
reported as new.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from binderclip.contract.errors import BinderclipError
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.drift import SHAPES, Shape, events_of
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.parser import JsonParser
from binderclip.sdk.testing.fixtures import cases_of


def recorded_events(adapter: Adapter) -> dict[str, list[str]]:
    """The events of all recordings; none for a runtime that does not print JSON lines."""
    shapes: set[Shape] = set()
    for case in cases_of(adapter):
        parser = case.replayed(adapter).builder.parser
        if isinstance(parser, JsonParser):
            shapes |= parser.shapes
    return events_of(shapes)


def as_text(events: dict[str, list[str]]) -> str:
    """The content of `shapes.json`."""
    return json.dumps(events, indent=1, ensure_ascii=False) + "\n"


def main(words: list[str]) -> int:
    """Write the shapes of the named adapter folders."""
    if not words or words[0].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    for word in words:
        try:
            adapter = load_adapter_from(str(Path(word).absolute()))
        except BinderclipError as problem:
            sys.stderr.write(f"{problem.message}\n")
            return 1
        events = recorded_events(adapter)
        if events:
            (adapter.folder / SHAPES).write_text(as_text(events), "utf-8")
        sys.stdout.write(f"{adapter.type}: {len(events)} events\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
