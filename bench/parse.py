"""Parse throughput of every adapter against `msgspec.json.decode` alone on the same lines.

Ours takes pieces as the driver reads them, splits them into lines, parses each and builds the
records; the other side splits and decodes.
Recordings are short and real runs are not: between its first and last line, what a recording holds
is repeated. A line that is no JSON, such as one that was cut, is left out on both sides.
"""

from __future__ import annotations

import time

import msgspec
from _measure import alternating, finish, report

from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.transcript import TranscriptBuilder
from binderclip.store.runlog import PIECE_BYTES

ENOUGH_BYTES = 4_000_000
MIDDLES = 50
LIMIT = 4.0
TS = "2026-01-01T00:00:00.000Z"


def main() -> None:
    for view in list_adapters():
        adapter = load_adapter(view.type)
        runs = _recorded(adapter)
        if adapter.manifest.structured and runs:
            _compare(adapter, runs)
    finish()


def _recorded(adapter: Adapter) -> list[bytes]:
    """The recorded stdout of each run with its middle repeated."""
    found = []
    for path in sorted((adapter.folder / "fixtures").glob("*/stdout.txt")):
        lines = [line for line in path.read_bytes().split(b"\n") if _is_json(line)]
        if len(lines) > 2:
            first, *middle, last = lines
            found.append(b"\n".join([first, *middle * MIDDLES, last]) + b"\n")
    return found


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except msgspec.DecodeError:
        return False


def _compare(adapter: Adapter, runs: list[bytes]) -> None:
    times = ENOUGH_BYTES // sum(map(len, runs)) + 1
    lines = times * sum(data.count(b"\n") for data in runs)
    bare, ours = alternating(
        5, lambda: _decoded(runs, times), lambda: _parsed(adapter, runs, times)
    )
    detail = f"{lines / ours / 1000:.0f} k lines/s, decode {lines / bare / 1000:.0f} k lines/s"
    if _is_synthetic(adapter):
        # Lines that a person made up are short, so what every line costs weighs most there: a line
        # without any entry takes four times its decoding. They say little about a real run.
        report(f"parse {adapter.type}, synthetic", ours / bare, detail)
    else:
        report(f"parse {adapter.type}", ours / bare, detail, limit=LIMIT)


def _is_synthetic(adapter: Adapter) -> bool:
    notes = (adapter.folder / "fixtures").glob("*/cmd.json")
    return any(msgspec.json.decode(path.read_bytes()).get("synthetic") for path in notes)


def _decoded(runs: list[bytes], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        for data in runs:
            for line in data.split(b"\n"):
                if line:
                    msgspec.json.decode(line)
    return time.process_time() - begin


def _parsed(adapter: Adapter, runs: list[bytes], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        for data in runs:
            builder, splitter = TranscriptBuilder(adapter.create_parser()), LineSplitter()
            for at in range(0, len(data), PIECE_BYTES):
                lines = splitter.push(data[at : at + PIECE_BYTES])
                builder.feed_all([("stdout", line, TS) for line in lines])
    return time.process_time() - begin


main()
