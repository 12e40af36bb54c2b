"""Parse throughput of every adapter against `msgspec.json.decode` alone on the same lines.

Ours splits bytes into lines, parses, builds and encodes the records; the other side decodes only.
Each fixture of an adapter is repeated until there is enough to measure.
"""

from __future__ import annotations

import time

import msgspec
from _measure import alternating, finish, report

from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.transcript import TranscriptBuilder

ENOUGH_BYTES = 8_000_000
LIMIT = 4.0
TS = "2026-01-01T00:00:00.000Z"


def main() -> None:
    for view in list_adapters():
        adapter = load_adapter(view.type)
        sample = _sample(adapter)
        if adapter.manifest.structured and sample:
            _compare(adapter, sample)
    finish()


def _sample(adapter: Adapter) -> bytes:
    """All recorded stdout of the adapter that is JSON lines, long single lines left out."""
    parts = []
    for path in sorted((adapter.folder / "fixtures").glob("*/stdout.txt")):
        data = path.read_bytes()
        if data.startswith(b"{") and max(map(len, data.split(b"\n"))) < 64 * 1024:
            parts.append(data if data.endswith(b"\n") else data + b"\n")
    once = b"".join(parts)
    return once * (ENOUGH_BYTES // len(once) + 1) if once else b""


def _compare(adapter: Adapter, sample: bytes) -> None:
    lines = sample.count(b"\n")
    bare, ours = alternating(5, lambda: _decoded(sample), lambda: _parsed(adapter, sample))
    detail = f"{lines / ours / 1000:.0f} k lines/s, decode {lines / bare / 1000:.0f} k lines/s"
    report(f"parse {adapter.type}", ours / bare, detail, limit=LIMIT)


def _decoded(sample: bytes) -> float:
    begin = time.perf_counter()
    for line in sample.split(b"\n"):
        if line.startswith(b"{"):
            msgspec.json.decode(line)
    return time.perf_counter() - begin


def _parsed(adapter: Adapter, sample: bytes) -> float:
    begin = time.perf_counter()
    splitter, builder = LineSplitter(), TranscriptBuilder(adapter.create_parser())
    encoder = msgspec.json.Encoder()
    for at in range(0, len(sample), 256 * 1024):
        records = []
        for line in splitter.push(sample[at : at + 256 * 1024]):
            records += builder.feed("stdout", line, TS)
        encoder.encode_lines(records)
    return time.perf_counter() - begin


main()
