"""Logs are read by their index, and chunking never changes a line (D2, T4)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.entry import Stream
from binderclip.contract.wire import iso_time
from binderclip.sdk.lines import Line, LineSplitter
from binderclip.store.runlog import AttemptLog, IndexRecord, LineReader

T0 = 1_772_366_400_000_000


class Attempt:
    """Writes the files of an attempt as a supervisor does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ends: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self.at_us = T0

    def grow(self, stream: Stream, data: bytes) -> None:
        with (self.directory / f"{stream}.log").open("ab") as file:
            file.write(data)
        self.ends[stream] += len(data)

    def record(self, stream: Stream) -> None:
        self.at_us += 1000
        self.append(b"%d %s %d\n" % (self.at_us, stream[3:4].encode(), self.ends[stream]))

    def say(self, stream: Stream, data: bytes) -> None:
        self.grow(stream, data)
        self.record(stream)

    def append(self, data: bytes) -> None:
        with (self.directory / "index").open("ab") as file:
            file.write(data)


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path)


@pytest.fixture
def log(attempt: Attempt) -> Iterator[AttemptLog]:
    with AttemptLog(attempt.directory) as log:
        yield log


def texts(found: Iterator[tuple[Stream, Line, str]]) -> list[tuple[Stream, str]]:
    return [(stream, line.text) for stream, line, _ in found]


def test_nothing_is_read_before_anything_is_written(log: AttemptLog) -> None:
    assert log.new_records() == []
    assert (log.size("stdout"), log.tail("stderr", 10)) == (0, b"")
    assert list(log.read("stdout", 0, 10)) == []
    assert list(LineReader(log).finish()) == []


def test_records_come_once_and_in_order(attempt: Attempt, log: AttemptLog) -> None:
    attempt.say("stdout", b"one\n")
    attempt.say("stderr", b"two\n")
    assert log.new_records() == [
        IndexRecord(T0 + 1000, "stdout", 4),
        IndexRecord(T0 + 2000, "stderr", 4),
    ]
    assert log.new_records() == []


def test_a_half_written_record_waits_for_its_end(attempt: Attempt, log: AttemptLog) -> None:
    attempt.append(b"%d o 1" % T0)
    assert log.new_records() == []
    attempt.append(b"2\n")
    assert log.new_records() == [IndexRecord(T0, "stdout", 12)]


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\n",
        b"\n",
        b"1 x 5\n",
        b"-1 o 5\n",
        b"1 o 5 6\n",
        b"1_0 o 5\n",
        b"999999999999999999 o 5\n",
        b"1 o 99999999999999999999\n",
        b"1 o " + b"9" * 5000 + b"\n",
        b"\0\xff\n",
    ],
)
def test_garbage_in_the_index_is_skipped_and_counted(
    attempt: Attempt, log: AttemptLog, garbage: bytes
) -> None:
    attempt.append(garbage)
    attempt.say("stdout", b"x\n")
    assert [record.end for record in log.new_records()] == [2]
    assert log.damaged == 1


def test_an_offset_that_goes_back_is_damage(attempt: Attempt, log: AttemptLog) -> None:
    attempt.append(b"%d o 9\n%d o 5\n%d e 5\n" % (T0, T0, T0))
    assert [record.end for record in log.new_records()] == [9, 5]
    assert log.damaged == 1


def test_megabytes_without_a_newline_do_not_stop_the_index(
    attempt: Attempt, log: AttemptLog
) -> None:
    attempt.append(b"x" * (2 << 20) + b"\n")
    attempt.say("stdout", b"x\n")
    assert [record.end for record in log.new_records()] == [2]


def test_bytes_come_in_pieces_and_a_cut_log_ends_early(attempt: Attempt, log: AttemptLog) -> None:
    data = bytes(range(256)) * 4096
    attempt.say("stdout", data)
    pieces = list(log.read("stdout", 10, len(data) + 1000))
    assert b"".join(pieces) == data[10:]
    assert max(map(len, pieces)) == 256 * 1024


def test_size_and_tail_know_only_what_the_index_covers(attempt: Attempt, log: AttemptLog) -> None:
    """D2: a byte that no record covers does not exist for readers."""
    attempt.say("stdout", b"covered\n")
    attempt.grow("stdout", b"not yet")
    assert log.size("stdout") == 8
    assert log.tail("stdout", 4) == b"red\n"
    assert log.tail("stdout", 100) == b"covered\n"
    assert [record.end for record in log.new_records()] == [8]
    attempt.record("stdout")
    assert log.tail("stdout", 3) == b"yet"


def test_size_finds_an_old_record_behind_many_others(attempt: Attempt, log: AttemptLog) -> None:
    attempt.say("stderr", b"early\n")
    attempt.append(b"".join(b"%d o %d\n" % (T0 + n, n) for n in range(40_000)))
    attempt.append(b"177")
    assert (log.size("stderr"), log.size("stdout")) == (6, 39_999)
    while log.new_records():
        pass
    assert (log.size("stderr"), log.size("stdout")) == (6, 39_999)


def test_lines_wait_for_their_newline_and_take_the_time_of_that_record(
    attempt: Attempt, log: AttemptLog
) -> None:
    """D2: `ts` comes from the record that completed the line."""
    reader = LineReader(log)
    attempt.say("stdout", b"hel")
    assert list(reader.poll()) == []
    attempt.say("stdout", "lö\nrest".encode())
    found = list(reader.poll())
    assert found == [("stdout", Line(0, "hellö", 6), iso_time((T0 + 2000) / 1e6))]
    assert reader.offsets == {"stdout": 11, "stderr": 0}


def test_streams_are_interleaved_in_the_order_of_the_records(
    attempt: Attempt, log: AttemptLog
) -> None:
    for stream, data in (("stdout", b"1\n"), ("stderr", b"2\n"), ("stdout", b"3\n4\n")):
        attempt.say("stdout" if stream == "stdout" else "stderr", data)
    assert texts(LineReader(log).poll()) == [
        ("stdout", "1"),
        ("stderr", "2"),
        ("stdout", "3"),
        ("stdout", "4"),
    ]


def test_last_lines_without_a_newline_come_at_the_end(attempt: Attempt, log: AttemptLog) -> None:
    attempt.say("stderr", b"bad")
    attempt.say("stdout", b"a\nlast")
    found = list(LineReader(log).finish())
    assert [(s, line.text) for s, line, _ in found] == [
        ("stdout", "a"),
        ("stdout", "last"),
        ("stderr", "bad"),
    ]
    assert {ts for _, _, ts in found} == {iso_time((T0 + 2000) / 1e6)}


def test_a_cut_log_gives_what_is_there_and_goes_on(attempt: Attempt, log: AttemptLog) -> None:
    attempt.say("stdout", b"one\n")
    attempt.ends["stdout"] = 8
    attempt.record("stdout")
    reader = LineReader(log)
    assert texts(reader.poll()) == [("stdout", "one")]
    assert reader.offsets["stdout"] == 4
    with (attempt.directory / "stdout.log").open("ab") as file:
        file.write(b"two\nsix\n")
    attempt.ends["stdout"] = 12
    attempt.record("stdout")
    assert texts(reader.poll()) == [("stdout", "two"), ("stdout", "six")]


def test_an_endless_line_is_not_held_in_memory(attempt: Attempt, log: AttemptLog) -> None:
    """T4: at most 16 MiB of a line go to a parser; a longer one has head, tail and size."""
    with (attempt.directory / "stdout.log").open("wb") as file:
        attempt.ends["stdout"] = file.truncate(100 << 20)
    attempt.say("stdout", b"\nnext\n")
    tracemalloc.start()
    try:
        found = list(LineReader(log).poll())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(line.size, line.cut) for _, line, _ in found] == [(100 << 20, True), (4, False)]
    assert peak < 64 << 20


chunks = st.lists(
    st.tuples(
        st.sampled_from(["stdout", "stderr"]),
        st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\xc3", b"\xa9", b"{}"]), max_size=8),
        st.booleans(),
    ),
    max_size=20,
)


@given(chunks=chunks)
def test_lines_are_the_same_whatever_the_records(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[tuple[Stream, list[bytes], bool]]
) -> None:
    """T4: live reading in any chunks and a later reading of the whole give equal lines."""
    attempt = Attempt(tmp_path_factory.mktemp("attempt"))
    whole: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
    with AttemptLog(attempt.directory) as log, AttemptLog(attempt.directory) as later:
        live = LineReader(log)
        found: list[tuple[Stream, Line, str]] = []
        for stream, parts, look in chunks:
            attempt.say(stream, b"".join(parts))
            whole[stream] += b"".join(parts)
            if look:
                found.extend(live.poll())
        found.extend(live.finish())
        assert found == list(LineReader(later).finish())
    for stream, data in whole.items():
        splitter = LineSplitter()
        lines = splitter.push(data) + splitter.finish()
        assert [line for s, line, _ in found if s == stream] == lines
