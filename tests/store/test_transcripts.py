"""Transcripts: written in batches, followed while they grow, replaced as a whole."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    EntryRecord,
    Record,
    ReplaceRecord,
    Stderr,
    ToolCall,
    TranscriptHead,
)
from binderclip.contract.errors import StoreError
from binderclip.store.transcripts import (
    TranscriptReader,
    TranscriptWriter,
    read_last_texts,
    read_transcript,
)

HEAD = TranscriptHead(parser="claude_local", version="3")
TS = "2026-03-01T12:00:00.000Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


@pytest.fixture
def reader(path: Path) -> Iterator[TranscriptReader]:
    with TranscriptReader(path) as reader:
        yield reader


def said(text: str, id: str = "1o0.0") -> Record:
    return EntryRecord(entry=Assistant(ts=TS, text=text, id=id))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def drained(reader: TranscriptReader) -> list[Record]:
    found: list[Record] = []
    while batch := reader.poll().records:
        found.extend(batch)
    return found


def write(path: Path, *records: Record, head: TranscriptHead = HEAD) -> None:
    with TranscriptWriter(path, head) as writer:
        writer.write(records)


def test_records_are_read_as_they_were_written(path: Path) -> None:
    call = ToolCall(ts=TS, name="todo", input={"items": [1, None, 2**70]}, id="1o9.0")
    records = [
        said("hi"),
        AppendRecord(id="1o0.0", text=" you"),
        ReplaceRecord(id="1o9.0", entry=call),
    ]
    write(path, *records)
    assert list(read_transcript(path)) == records
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_reader_follows_a_growing_file(path: Path, reader: TranscriptReader) -> None:
    assert reader.poll() == (False, [])
    assert reader.head is None
    with TranscriptWriter(path, HEAD) as writer:
        assert reader.poll() == (False, [])
        assert reader.head == HEAD
        writer.write([said("one")])
        assert reader.poll() == (False, [said("one")])
        writer.write([])
        writer.write([said("two"), said("three")])
        assert reader.poll() == (False, [said("two"), said("three")])
        assert (reader.count, writer.records) == (3, 3)


def test_half_a_line_waits(path: Path, reader: TranscriptReader) -> None:
    write(path, said("one"))
    assert drained(reader) == [said("one")]
    line = path.read_bytes().splitlines()[1]
    with path.open("ab") as file:
        file.write(line[:20])
        file.flush()
        assert reader.poll() == (False, [])
        file.write(line[20:] + b"\n")
    assert reader.poll() == (False, [said("one")])


def test_batches_are_bounded_and_a_long_line_comes_whole(
    path: Path, reader: TranscriptReader
) -> None:
    small = [said("x" * 1000, f"1o{n}.0") for n in range(1000)]
    large = said("y" * (3 << 20))
    write(path, *small, large, *small)
    first = reader.poll().records
    assert 0 < len(first) < 300
    assert first + drained(reader) == [*small, large, *small]


def test_a_new_driver_replaces_the_file_only_when_it_has_caught_up(
    path: Path, reader: TranscriptReader
) -> None:
    """D2: a takeover writes the same records again; readers start afresh with the new file."""
    write(path, said("one"), said("two"))
    assert len(drained(reader)) == 2
    with TranscriptWriter(path, TranscriptHead(parser="claude_local", version="4")) as writer:
        writer.write([said("one")])
        assert reader.poll() == (False, [])
        assert not writer.published
        writer.publish()
        assert reader.poll() == (True, [said("one")])
        assert reader.head is not None and reader.head.version == "4"
        writer.write([said("two")])
        assert reader.poll() == (False, [said("two")])
    assert reader.count == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_driver_that_fails_leaves_the_older_file(path: Path) -> None:
    write(path, said("old"))
    with pytest.raises(KeyError), TranscriptWriter(path, HEAD) as writer:
        writer.write([said("new")])
        raise KeyError
    assert list(read_transcript(path)) == [said("old")]
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_driver_left_beside_is_overwritten(path: Path) -> None:
    write(path, said("old"))
    path.with_name("transcript.jsonl.next").write_text("half a li")
    write(path, said("new"))
    assert list(read_transcript(path)) == [said("new")]
    assert list(path.parent.iterdir()) == [path]


def test_a_file_cut_in_place_also_resets(path: Path, reader: TranscriptReader) -> None:
    write(path, said("one"), said("two"))
    assert len(drained(reader)) == 2
    head, first, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + first)
    assert reader.poll() == (True, [said("one")])


def test_a_deleted_file_is_no_reset_until_a_new_one_is_there(
    path: Path, reader: TranscriptReader
) -> None:
    write(path, said("one"))
    assert len(drained(reader)) == 1
    path.unlink()
    assert reader.poll() == (False, [])
    write(path, said("one"))
    assert reader.poll() == (True, [said("one")])


def test_reading_the_whole_stays_with_one_file(path: Path) -> None:
    many = [said("x" * 2000, f"1o{n}.0") for n in range(500)]
    write(path, *many)
    records = read_transcript(path)
    first = next(records)
    write(path, said("another"))
    assert [first, *records] == many


def test_damaged_lines_are_left_out_and_counted(path: Path, reader: TranscriptReader) -> None:
    write(path, said("one"))
    with path.open("ab") as file:
        file.write(b'{"type":"entry"}\n\0\0\0\n')
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(keepends=True)[1])
    assert drained(reader) == [said("one"), said("one")]
    assert reader.damaged == 2


@pytest.mark.parametrize("length", [1, 5_000, 400_000])
def test_the_last_texts_are_found_from_the_end(path: Path, length: int) -> None:
    records = [said(f"{n} ".ljust(length, "é"), f"1o{n}.0") for n in range(30)]
    noise = EntryRecord(entry=Stderr(ts=TS, text="e", id="1e0.0"))
    texts = [record.entry for record in records if isinstance(record, EntryRecord)]
    plain = TranscriptHead(parser="process", version="1", only_texts=True)
    write(path, *records, noise, head=plain)
    assert read_last_texts(path, 4) == texts[-4:]
    assert read_last_texts(path, 99) == texts
    write(path, head=plain)
    assert read_last_texts(path, 4) == []


def test_where_more_than_texts_or_damage_may_be_the_end_does_not_tell(path: Path) -> None:
    write(path, said("hello"))
    assert read_last_texts(path, 4) is None
    write(path, said("hello"), head=TranscriptHead(parser="process", version="1", only_texts=True))
    with path.open("ab") as file:
        file.write(b"{torn\n")
    assert read_last_texts(path, 4) is None
    path.write_bytes(b"no head\n")
    assert read_last_texts(path, 4) is None


def test_a_file_without_a_head_says_that_it_can_be_deleted(
    path: Path, reader: TranscriptReader
) -> None:
    path.write_bytes(b"[1]\n")
    with pytest.raises(StoreError, match="does not begin like a transcript") as caught:
        reader.poll()
    assert caught.value.hint is not None and "Delete" in caught.value.hint


def test_a_missing_transcript_is_named(path: Path) -> None:
    with pytest.raises(StoreError, match=r"no transcript at .*transcript\.jsonl"):
        next(read_transcript(path))


def test_nothing_that_a_parser_makes_can_stop_the_writer(path: Path) -> None:
    """T3: nothing a parser does can stop a run; a lone surrogate is legal in JSON."""
    deep: Any = "end"
    for _ in range(5000):
        deep = [deep]
    call = ToolCall(ts=TS, name="x", input={"\udc80": deep, (1, 2): object})
    write(path, said("a\ud83d"), said("fine"), EntryRecord(entry=call))
    first, second, third = read_transcript(path)
    assert (first, second) == (said("a?"), said("fine"))
    assert isinstance(third, EntryRecord) and isinstance(third.entry, ToolCall)
    assert "nested too deeply" in str(third.entry.input["?"])
    assert third.entry.input["(1, 2)"] == "<class 'object'>"


def test_a_batch_that_does_not_fit_leaves_no_half_line(path: Path) -> None:
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with TranscriptWriter(path, HEAD) as writer:
            writer.write([said("one")])
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
            with pytest.raises(StoreError, match="cannot be written: File too large"):
                writer.write([said("x" * 10_000)])
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            writer.write([said("two")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, old)
    assert list(read_transcript(path)) == [said("one"), said("two")]


def test_a_writer_in_a_directory_that_is_gone_says_so(path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        TranscriptWriter(path.parent / "gone" / path.name, HEAD)


def test_readers_and_writers_leave_no_descriptor_open(path: Path) -> None:
    before = open_descriptors()
    write(path, said("one"))
    assert len(list(read_transcript(path))) == 1
    assert open_descriptors() == before
