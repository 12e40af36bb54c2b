"""The transcript of an attempt: its kept bytes, read by the index, parsed once (D2, D3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from binderclip.contract.entry import (
    Coverage,
    Entry,
    EntryRecord,
    Record,
    System,
    TranscriptHead,
)
from binderclip.contract.errors import StoreError
from binderclip.contract.wire import iso_time
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.parser import Parser
from binderclip.sdk.transcript import TranscriptBuilder
from binderclip.store.runlog import AttemptLog, LineReader
from binderclip.store.transcripts import NAME, TranscriptWriter
from binderclip.supervisor.launch import ExitRecord, read_meta

_LINES_AT_ONCE = 1000


class Transcriber:
    """Reads an attempt's lines as its index grows, and writes their records."""

    def __init__(self, adapter: Adapter, directory: Path, attempt: int, seq: int = 0) -> None:
        self.parser: Parser = adapter.create_parser()
        self.log = AttemptLog(directory)
        self._builder = TranscriptBuilder(self.parser, attempt, seq)
        self._lines = LineReader(self.log)
        self._attempt = attempt
        self._directory = directory
        self.problem: str | None = None
        """Why the transcript is no longer written; the run goes on, it can be made again."""
        head = TranscriptHead(
            parser=adapter.type,
            version=adapter.parser_version,
            only_texts=self._builder.only_texts,
        )
        self._writer: TranscriptWriter | None = None
        with self._guarded():
            self._writer = TranscriptWriter(directory / NAME, head)

    @property
    def coverage(self) -> Coverage:
        return self._builder.coverage

    @property
    def seq(self) -> int:
        """The position that the next entry will have."""
        return self._builder.seq

    def poll(self) -> Iterator[list[Record]]:
        """The records of what the index covers by now, in batches, each already written."""
        yield from self._batches(finish=False)
        self._publish()

    def finish(self, exit: ExitRecord) -> Iterator[list[Record]]:
        """The rest, once the logs are complete: last lines, open texts, closing notes."""
        yield from self._batches(finish=True)
        records = self._builder.finish(self.log.size("stdout"))
        records += self._closing(exit)
        if records:
            self._write(records)
            yield records
        self._publish()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.discard()
        self.log.close()

    def _batches(self, *, finish: bool) -> Iterator[list[Record]]:
        lines = self._lines.finish() if finish else self._lines.poll()
        while batch := list(islice(lines, _LINES_AT_ONCE)):
            records = self._builder.feed_all(batch)
            if records:
                self._write(records)
                yield records

    def _write(self, records: list[Record]) -> None:
        if self._writer is not None:
            with self._guarded():
                self._writer.write(records)

    def _publish(self) -> None:
        if self._writer is not None:
            with self._guarded():
                self._writer.publish()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (StoreError, OSError) as problem:
            self.problem = str(problem)
            if self._writer is not None:
                self._writer.discard()
                self._writer = None

    def _piped(self) -> list[str]:
        """The streams that went through the hands of the supervisor."""
        capture = (read_meta(self._directory) or {}).get("capture") or {}
        return [stream for stream, mode in capture.items() if mode == "pipe"]

    def _closing(self, exit: ExitRecord) -> list[Record]:
        ts = exit.ended_at or iso_time(0)
        offset = self.log.size("stderr")
        entries: list[Entry] = [
            System(
                ts=ts,
                text=f"[binderclip] {text}",
                id=f"{self._attempt}e{offset}.end{k}",
                seq=self._builder.take_seq(),
                attempt=self._attempt,
                stream="stderr",
                offset=offset,
            )
            for k, text in enumerate(closing_notes(exit, self._builder, self._piped()))
        ]
        return [EntryRecord(entry=entry) for entry in entries]


def closing_notes(exit: ExitRecord, builder: TranscriptBuilder, piped: list[str]) -> list[str]:
    """What a reader should know about how the attempt ended, in words."""
    notes = []
    if exit.adopted:
        notes.append(_taken_over(piped))
    for cut in exit.truncated:
        notes.append(f"The {cut.stream} log was truncated by the agent near byte {cut.at}.")
    if exit.leftovers:
        names = ", ".join(f"{left.command} ({left.pid})" for left in exit.leftovers[:5])
        more = len(exit.leftovers) - 5
        tail = f" and {more} more" if more > 0 else ""
        notes.append(f"Processes that outlived the agent were ended: {names}{tail}.")
    if builder.failures:
        notes.append(f"The parser failed on some lines, first with {builder.failures[0]}.")
    if builder.dropped:
        notes.append(f"The parser gave {builder.dropped} things that are no entries; dropped.")
    return notes


def _taken_over(piped: list[str]) -> str:
    told = "The supervisor of this run died and another took over: the exit status is unknown"
    if not piped:
        return f"{told}; no output is missing."
    return f"{told}, and up to 256 KiB of {' and '.join(piped)} may be missing where it happened."
