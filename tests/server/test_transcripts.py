"""Pages of a transcript are what its records make, however it was cut, grown and replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    EntryRecord,
    Record,
    ReplaceRecord,
    Stderr,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptHead,
    apply,
)
from binderclip.contract.errors import RunNotFound
from binderclip.server import pages
from binderclip.server.transcripts import TranscriptShelf
from binderclip.store.home import Home
from binderclip.store.runfile import write_order, write_outcome
from binderclip.store.transcripts import NAME, TranscriptWriter
from tests.store.fabricate import order, outcome

HEAD = TranscriptHead(parser="p", version="3")
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


class Writing:
    """Records as a driver would write them, with ids and positions that fit."""

    def __init__(self, attempt: int = 1, seq: int = 0) -> None:
        self.attempt = attempt
        self.seq = seq
        self.offset = 0
        self.records: list[Record] = []
        self.texts: list[str] = []
        self.plans: list[tuple[str, int]] = []

    def add(self, action: str, text: str, pick: int) -> None:
        if action == "append" and self.texts:
            self.records.append(AppendRecord(id=self.texts[pick % len(self.texts)], text=text))
        elif action == "replace" and self.plans:
            id, seq = self.plans[pick % len(self.plans)]
            self.records.append(ReplaceRecord(id=id, entry=self._plan(id, seq, text)))
        else:
            self._entry(action, text)

    def _entry(self, action: str, text: str) -> None:
        stream: Any = "stderr" if action == "stderr" else "stdout"
        id = f"{self.attempt}{stream[3]}{self.offset}.0"
        place: Any = {
            "id": id,
            "seq": self.seq,
            "attempt": self.attempt,
            "stream": stream,
            "offset": self.offset,
            "ts": "2026-01-01T00:00:00.000Z",
        }
        entry: Any
        if action == "replace":
            self.plans.append((id, self.seq))
            entry = self._plan(id, self.seq, text)
        elif action == "stderr":
            entry = Stderr(**place, text=text)
        elif action == "result":
            entry = ToolResult(**place, tool_use_id="t", content=text, is_error=len(text) % 2 == 0)
        else:
            kind = Thinking if action == "think" else Assistant
            entry = kind(**place, text=text, delta=True)
            self.texts.append(id)
        self.records.append(EntryRecord(entry=entry))
        self.seq += 1
        self.offset += 10

    def _plan(self, id: str, seq: int, text: str) -> ToolCall:
        return ToolCall(
            ts="2026-01-01T00:00:01.000Z",
            id=id,
            seq=seq,
            attempt=self.attempt,
            stream="stdout",
            offset=int(id.split("o")[1].split(".")[0]),
            name="plan",
            input={"items": [text]},
            tool_use_id="plan",
            tool_kind="todo",
        )


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["say", "think", "append", "append", "replace", "stderr", "result"]),
        TEXT,
        st.integers(0, 1000),
    ),
    max_size=60,
)


def written(actions: Any, attempt: int = 1, seq: int = 0) -> Writing:
    writing = Writing(attempt, seq)
    for action in actions:
        writing.add(*action)
    return writing


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(ACTIONS, ACTIONS, st.integers(1, 7), st.booleans())
def test_pages_put_together_are_what_the_records_make(
    tmp_path_factory: pytest.TempPathFactory, one: Any, two: Any, size: int, over: bool
) -> None:
    home = Home(tmp_path_factory.mktemp("home")).ensure()
    asked = order()
    write_order(home, asked)
    first = written(one)
    second = written(two, 2, first.seq)
    for writing in (first, second):
        path = home.make_attempt_dir(asked.id, writing.attempt) / NAME
        with TranscriptWriter(path, HEAD) as writer:
            writer.write(writing.records)
    if over:
        write_outcome(home, asked.id, outcome())
    expected = apply(apply([], first.records), second.records)
    shelf = TranscriptShelf(home, lambda run_id: None)
    with shelf.reading(asked.id) as transcript:
        found: list[Any] = []
        while len(found) < transcript.total:
            found += [json.loads(data) for data in transcript.page(len(found), size)]
        assert found == [json.loads(msgspec.json.encode(entry)) for entry in expected]
        assert [transcript.entry(entry.id) for entry in expected] == expected
        outline = transcript.outline()
        assert outline.total == len(expected)
        bad = [e.seq for e in expected if getattr(e, "is_error", False)]
        assert list(outline.errors) == bad
    shelf.close()


@pytest.fixture
def live(tmp_path: Path) -> Any:
    home = Home(tmp_path / "home").ensure()
    asked = order()
    write_order(home, asked)
    path = home.make_attempt_dir(asked.id, 1) / NAME
    shelf = TranscriptShelf(home, lambda run_id: None)
    yield home, asked.id, path, shelf
    shelf.close()


def say(count: int, begin: int = 0) -> list[Record]:
    writing = Writing(seq=begin)
    writing.offset = begin * 10
    for n in range(count):
        writing.add("say", f"text {begin + n}", 0)
    return writing.records


def test_a_growing_transcript_is_read_on_where_the_last_reading_ended(live: Any) -> None:
    _, run_id, path, shelf = live
    with shelf.reading(run_id) as transcript:
        assert (transcript.total, transcript.cursor) == (0, "0.0.0")
    with TranscriptWriter(path, HEAD) as writer:
        writer.write(say(10))
        with shelf.reading(run_id) as transcript:
            assert (transcript.total, transcript.cursor) == (10, "1.10.3")
        writer.write([AppendRecord(id="1o90.0", text=" and more"), *say(5, 10)])
        with shelf.reading(run_id) as transcript:
            assert json.loads(transcript.page(9, 1)[0])["text"] == "text 9 and more"
            assert (transcript.total, transcript.cursor) == (15, "1.16.3")


def test_half_a_line_does_not_count_yet(live: Any) -> None:
    _, run_id, path, shelf = live
    with TranscriptWriter(path, HEAD) as writer:
        writer.write(say(1))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"entry","entry":{"kind":"assi')
    with shelf.reading(run_id) as transcript:
        assert transcript.total == 1


def test_a_damaged_line_is_left_out(live: Any) -> None:
    _, run_id, path, shelf = live
    with TranscriptWriter(path, HEAD) as writer:
        writer.write(say(2))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + b"\xff\xfe not json\n" + lines[2])
    with shelf.reading(run_id) as transcript:
        assert [json.loads(e)["text"] for e in transcript.page(0, 9)] == ["text 0", "text 1"]
        assert transcript.cursor == "1.2.3"


def test_another_transcript_in_its_place_is_read_from_the_beginning(live: Any) -> None:
    _, run_id, path, shelf = live
    with TranscriptWriter(path, HEAD) as writer:
        writer.write(say(5))
    with shelf.reading(run_id) as transcript:
        assert transcript.total == 5
    with TranscriptWriter(path, TranscriptHead(parser="p", version="4")) as writer:
        writer.write(say(2))
    with shelf.reading(run_id) as transcript:
        assert (transcript.total, transcript.cursor) == (2, "1.2.4")


def test_the_index_of_a_long_run_is_kept_beside_it_and_used_again(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, run_id, path, shelf = live
    monkeypatch.setattr(pages, "_WORTH_KEEPING", 100)
    with TranscriptWriter(path, HEAD) as writer:
        writer.write([*say(3000), AppendRecord(id="1o29990.0", text="!")])
    write_outcome(home, run_id, outcome())
    with shelf.reading(run_id) as transcript:
        first = (transcript.outline(), transcript.page(2990, 10))
    assert path.with_name(pages.KEPT).is_file()
    taken: list[bytes] = []
    monkeypatch.setattr(pages.AttemptIndex, "_take", lambda self, data: taken.append(data))
    again = TranscriptShelf(home, lambda run_id: None)
    with again.reading(run_id) as transcript:
        assert (transcript.outline(), transcript.page(2990, 10)) == first
        assert transcript.attempts[0].offset_of(2000) == transcript.attempts[0].starts[2000]
    again.close()
    assert taken == []


def test_a_kept_index_of_another_transcript_is_not_believed(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, run_id, path, shelf = live
    monkeypatch.setattr(pages, "_WORTH_KEEPING", 100)
    with TranscriptWriter(path, HEAD) as writer:
        writer.write(say(10))
    write_outcome(home, run_id, outcome())
    with shelf.reading(run_id) as transcript:
        assert transcript.total == 10
    path.unlink()
    with TranscriptWriter(path, HEAD) as writer:
        writer.write(say(4))
    for _ in range(2):
        again = TranscriptShelf(home, lambda run_id: None)
        with again.reading(run_id) as transcript:
            assert transcript.total == 4
        again.close()
    taken: list[bytes] = []
    monkeypatch.setattr(pages.AttemptIndex, "_take", lambda self, data: taken.append(data))
    with TranscriptShelf(home, lambda run_id: None).reading(run_id) as transcript:
        assert (transcript.total, taken) == (4, [])
        transcript.close()


def test_a_lost_transcript_is_made_again_once(live: Any) -> None:
    """D2: it is a cache; deleting it loses nothing."""
    home, run_id, path, _ = live
    write_outcome(home, run_id, outcome())
    asked: list[str] = []

    def retell(wanted: str) -> None:
        asked.append(wanted)
        with TranscriptWriter(path, HEAD) as writer:
            writer.write(say(3))

    shelf = TranscriptShelf(home, retell)
    for _ in range(2):
        with shelf.reading(run_id) as transcript:
            assert transcript.total == 3
    shelf.close()
    assert asked == [run_id]


def test_the_shelf_keeps_few_transcripts_open(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    shelf = TranscriptShelf(home, lambda run_id: None, most=2)
    orders = [order() for _ in range(5)]
    for asked in orders:
        write_order(home, asked)
        with TranscriptWriter(home.make_attempt_dir(asked.id, 1) / NAME, HEAD) as writer:
            writer.write(say(1))
        with shelf.reading(asked.id) as transcript:
            assert transcript.total == 1
    with shelf.reading(orders[0].id) as transcript:
        assert transcript.total == 1
        with pytest.raises(RunNotFound):
            transcript.entry("1o777.0")
    assert len(shelf._open) == 2
    shelf.close()
