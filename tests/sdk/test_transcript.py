"""T3, T4: lines become records; nothing that a parser does can stop a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Coverage,
    Diff,
    Entry,
    EntryRecord,
    Init,
    Record,
    ReplaceRecord,
    Stderr,
    Stdout,
    Stream,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    Truncated,
    User,
    apply,
)
from binderclip.sdk.lines import Line, LineSplitter
from binderclip.sdk.parser import GenericParser, JsonParser, Parser
from binderclip.sdk.transcript import TranscriptBuilder

TS = "2026-01-02T03:04:05.000Z"
LATER = "2026-01-02T03:04:06.500Z"


class Scripted(Parser):
    """Returns what a test gives for each line."""

    def __init__(self, *answers: Any, end: Any = ()) -> None:
        super().__init__()
        self.answers = list(answers)
        self.end = end

    def parse_line(self, line: str, ts: str) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(ts) if callable(answer) else answer

    def finish(self, ts: str) -> Any:
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def fed(
    builder: TranscriptBuilder, data: bytes, stream: Stream = "stdout", ts: str = TS
) -> list[Record]:
    splitter = LineSplitter()
    lines = splitter.push(data) + splitter.finish()
    return [record for line in lines for record in builder.feed(stream, line, ts)]


def built(parser: Parser, data: bytes) -> list[Entry]:
    builder = TranscriptBuilder(parser)
    records = fed(builder, data)
    return apply([], records + builder.finish(len(data)))


def bare(entry: Entry) -> Entry:
    """The entry without the host's fields."""
    return msgspec.structs.replace(entry, id="", seq=None, attempt=None, stream=None, offset=None)


def lines_of(parser: Scripted) -> bytes:
    return b"x\n" * len(parser.answers)


def test_generic_lines_are_what_the_agent_said() -> None:
    """T3: notices become system, every other non-empty line assistant."""
    entries = built(GenericParser(), b"hello\n\n[binderclip] note\n[paperclip] old\n[other] x\n")
    assert [bare(entry) for entry in entries] == [
        Assistant(ts=TS, text="hello"),
        System(ts=TS, text="[binderclip] note"),
        System(ts=TS, text="[paperclip] old"),
        Assistant(ts=TS, text="[other] x"),
    ]


class Spelt(GenericParser):
    """The same rule by the path of all other parsers."""


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stdout", "stderr"]),
            st.sampled_from(["", "a", "é", "[", "[binderclip] b", "[paperclip] c", "x" * 3000]),
            st.booleans(),
            st.sampled_from(["1", "2"]),
        )
    ),
    st.integers(1, 5),
)
def test_plain_lines_give_the_same_by_the_short_path(
    told: list[tuple[Stream, str, bool, str]], size: int
) -> None:
    """T3, T4: records, facts and figures do not depend on how the lines were taken."""
    lines = [
        (stream, Line(at * 10, text, len(text), cut), ts)
        for at, (stream, text, cut, ts) in enumerate(told)
    ]
    seen = []
    for parser in (GenericParser(), Spelt()):
        builder = TranscriptBuilder(parser, attempt=2, seq=7)
        records = [
            record
            for start in range(0, len(lines), size)
            for record in builder.feed_all(lines[start : start + size])
        ]
        records += builder.finish(99)
        seen.append((records, parser.facts, builder.coverage, builder.seq))
    assert seen[0] == seen[1]


def test_unknown_lines_of_a_structured_runtime_are_kept_raw() -> None:
    """T3: unparseable lines of a structured runtime become stdout."""
    entries = built(JsonParser(), b'not json\n{"type":"novelty"}\n[1]\n')
    assert [bare(entry) for entry in entries] == [
        Stdout(ts=TS, text=text) for text in ("not json", '{"type":"novelty"}', "[1]")
    ]


def test_stderr_lines_stand_between_stdout_lines_as_they_came() -> None:
    """T3: stderr becomes stderr, host notices on it system."""
    builder = TranscriptBuilder(GenericParser())
    records = fed(builder, b"out\n") + fed(builder, b"err\n[binderclip] n\n", "stderr")
    records += fed(builder, b"out 2\n")
    entries = apply([], records)
    kinds = [(type(entry), entry.stream, entry.seq) for entry in entries]
    assert kinds == [
        (Assistant, "stdout", 0),
        (Stderr, "stderr", 1),
        (System, "stderr", 2),
        (Assistant, "stdout", 3),
    ]


def test_host_fields_say_where_an_entry_came_from() -> None:
    """T1b, D2: id is attempt, stream, byte offset and number; seq the position."""
    parser = Scripted([User(ts=TS, text="a"), User(ts=TS, text="b")], [User(ts=TS, text="c")])
    builder = TranscriptBuilder(parser, attempt=2, seq=10)
    entries = apply([], fed(builder, "é\nx\n".encode()))
    assert [(entry.id, entry.seq, entry.attempt, entry.offset) for entry in entries] == [
        ("2o0.0", 10, 2, 0),
        ("2o0.1", 11, 2, 0),
        ("2o3.0", 12, 2, 3),
    ]


def test_a_parser_may_give_the_same_entry_twice() -> None:
    same = User(ts=TS, text="a")
    entries = built(Scripted([same], [same]), b"x\ny\n")
    assert [entry.id for entry in entries] == ["1o0.0", "1o2.0"]


def test_deltas_grow_one_entry() -> None:
    """T4: deltas of the same kind merge; another kind ends the text."""
    parser = Scripted(
        [Thinking(ts=TS, text="h", delta=True)],
        [Thinking(ts=TS, text="m", delta=True)],
        [Assistant(ts=TS, text="He", delta=True)],
        [Assistant(ts=TS, text="llo", delta=True)],
        [ToolCall(ts=TS, name="t", input={})],
        [Assistant(ts=TS, text="New", delta=True)],
        [Assistant(ts=TS, text="Whole")],
        [Assistant(ts=TS, text="again", delta=True)],
    )
    entries = built(parser, lines_of(parser))
    assert [getattr(entry, "text", "-") for entry in entries] == [
        "hm",
        "Hello",
        "-",
        "New",
        "Whole",
        "again",
    ]


def test_an_event_without_entries_does_not_end_a_text() -> None:
    """T4: pings between two deltas do not split a sentence."""
    parser = Scripted(
        [Assistant(ts=TS, text="a", delta=True)], [], [Assistant(ts=TS, text="b", delta=True)]
    )
    assert [getattr(entry, "text", "") for entry in built(parser, lines_of(parser))] == ["ab"]


def test_stderr_does_not_split_a_growing_text() -> None:
    """T4: what runs beside the text does not end it."""
    parser = Scripted(
        [Assistant(ts=TS, text="a", delta=True)], [Assistant(ts=TS, text="b", delta=True)]
    )
    builder = TranscriptBuilder(parser)
    records = fed(builder, b"1\n") + fed(builder, b"noise\n", "stderr") + fed(builder, b"2\n")
    assert isinstance(records[2], AppendRecord)
    assert [getattr(entry, "text", "") for entry in apply([], records)] == ["ab", "noise"]


def test_sub_agents_grow_their_own_texts() -> None:
    """T1b, T4: two sub-agents that speak at once are not mixed."""

    def piece(text: str, parent: str | None) -> list[Entry]:
        return [Assistant(ts=TS, text=text, delta=True, parent_tool_use_id=parent)]

    parser = Scripted(
        piece("a", None), piece("1", "p"), piece("b", None), piece("2", "p"), piece("x", "q")
    )
    entries = built(parser, lines_of(parser))
    texts = [(entry.parent_tool_use_id, getattr(entry, "text", "")) for entry in entries]
    assert texts == [(None, "ab"), ("p", "12"), ("q", "x")]


def test_a_result_gets_its_calls_name_and_duration() -> None:
    """T4: tool calls pair with results by toolUseId."""
    parser = Scripted(
        [ToolCall(ts=TS, name="Bash", input={}, tool_use_id="u")],
        lambda ts: [ToolResult(ts=ts, tool_use_id="u", content="c", is_error=False)],
    )
    builder = TranscriptBuilder(parser)
    fed(builder, b"x\n")
    (record,) = fed(builder, b"y\n", ts=LATER)
    assert isinstance(record, EntryRecord)
    assert isinstance(record.entry, ToolResult)
    assert (record.entry.tool_name, record.entry.duration_ms) == ("Bash", 1500)


def test_what_a_parser_knows_better_is_kept() -> None:
    parser = Scripted(
        [ToolCall(ts=TS, name="Bash", input={}, tool_use_id="u")],
        [
            ToolResult(
                ts=TS, tool_use_id="u", content="", is_error=False, tool_name="n", duration_ms=7
            )
        ],
    )
    last = built(parser, lines_of(parser))[-1]
    assert isinstance(last, ToolResult)
    assert (last.tool_name, last.duration_ms) == ("n", 7)


def test_a_result_without_its_call_stays_as_it_is() -> None:
    parser = Scripted([ToolResult(ts=TS, tool_use_id="u", content="c", is_error=True)])
    (entry,) = built(parser, b"x\n")
    assert isinstance(entry, ToolResult)
    assert (entry.tool_name, entry.duration_ms, entry.is_error) == (None, None, True)


@pytest.mark.parametrize("ts", ["never", "", "2020-01-01T00:00:00.000Z"])
def test_a_strange_clock_gives_no_negative_duration(ts: str) -> None:
    parser = Scripted(
        [ToolCall(ts=TS, name="t", input={}, tool_use_id="u")],
        [ToolResult(ts=ts, tool_use_id="u", content="", is_error=False)],
    )
    last = built(parser, lines_of(parser))[-1]
    assert isinstance(last, ToolResult)
    assert last.duration_ms in (None, 0)


def test_a_plan_is_replaced_by_its_next_state() -> None:
    """D2: replace is for plans only; the entry keeps its id and place."""

    def todo(status: str) -> list[Entry]:
        items = [{"text": "x", "status": status}]
        return [
            ToolCall(ts=TS, name="t", input={"items": items}, tool_use_id="p", tool_kind="todo")
        ]

    parser = Scripted(todo("open"), [User(ts=TS, text="u")], todo("done"))
    builder = TranscriptBuilder(parser)
    records = fed(builder, lines_of(parser))
    assert [type(record) for record in records] == [EntryRecord, EntryRecord, ReplaceRecord]
    plan, user = apply([], records)
    assert isinstance(plan, ToolCall)
    assert plan.input == {"items": [{"text": "x", "status": "done"}]}
    assert [(plan.id, plan.seq), (user.id, user.seq)] == [("1o0.0", 0), ("1o2.0", 1)]


def test_a_call_that_is_no_plan_is_never_replaced() -> None:
    call = [ToolCall(ts=TS, name="t", input={}, tool_use_id="p")]
    assert len(built(Scripted(call, list(call)), b"x\ny\n")) == 2


def test_a_parser_that_raises_loses_that_line_only() -> None:
    """T3: generic for that line; the parser stays."""
    parser = Scripted(ValueError("odd"), [User(ts=TS, text="next")])
    builder = TranscriptBuilder(parser)
    entries = apply([], fed(builder, b"bad\ngood\n"))
    assert [bare(entry) for entry in entries] == [
        Stdout(ts=TS, text="bad"),
        User(ts=TS, text="next"),
    ]
    assert builder.failures == ["ValueError: odd"]
    assert builder.coverage == Coverage(lines=2, understood=1, unknown=1)


def test_only_a_few_failures_are_kept_and_none_is_long() -> None:
    parser = Scripted(*(ValueError("x" * 10_000) for _ in range(50)))
    builder = TranscriptBuilder(parser)
    fed(builder, lines_of(parser))
    assert len(builder.failures) == 10
    assert max(map(len, builder.failures)) <= 500


@pytest.mark.parametrize(
    "junk",
    [
        5,
        "text",
        {"kind": "assistant"},
        Assistant(ts=TS, text="not in a list"),
        [None, 5, "x", {"kind": "user"}, object()],
        [Assistant(ts=TS, text=5)],  # type: ignore[arg-type]
        [Thinking(ts=TS, text=None, delta=True)],  # type: ignore[arg-type]
        [Init(ts=TS, model=None, session_id="s")],  # type: ignore[arg-type]
        [ToolCall(ts=TS, name="t", input={}, tool_use_id=["u"])],  # type: ignore[arg-type]
        [ToolCall(ts=TS, name=5, input={})],  # type: ignore[arg-type]
        [ToolResult(ts=TS, tool_use_id={}, content="c", is_error=False)],  # type: ignore[arg-type]
        [ToolResult(ts=TS, tool_use_id="u", content=b"c", is_error=False)],  # type: ignore[arg-type]
        [User(ts=TS, text="u", parent_tool_use_id=["p"])],  # type: ignore[arg-type]
        [Diff(ts=TS, change_type="add", text=["x"])],  # type: ignore[arg-type]
    ],
)
def test_junk_from_a_parser_is_dropped_and_counted(junk: Any) -> None:
    """T4: entries of a wrong shape are dropped and counted; the run goes on."""
    builder = TranscriptBuilder(Scripted(junk, [User(ts=TS, text="next")]))
    entries = apply([], fed(builder, b"x\ny\n"))
    assert [bare(entry) for entry in entries] == [User(ts=TS, text="next")]
    assert builder.dropped >= 1


@pytest.mark.parametrize("end", [5, None, "x", [object()], ValueError("late")])
def test_junk_at_the_end_does_not_stop_the_run(end: Any) -> None:
    builder = TranscriptBuilder(Scripted([User(ts=TS, text="u")], end=end))
    fed(builder, b"x\n")
    assert builder.finish(2) == []


def test_what_a_parser_still_held_comes_at_the_end() -> None:
    builder = TranscriptBuilder(Scripted([], end=[User(ts=TS, text="last")]))
    fed(builder, b"x\n")
    (record,) = builder.finish(2)
    assert isinstance(record, EntryRecord)
    assert (record.entry.id, record.entry.stream) == ("1o2.0", "stdout")


def test_an_oversized_line_becomes_stdout_with_its_size() -> None:
    """T4: at most 16 MiB of a line goes to a parser."""
    builder = TranscriptBuilder(Scripted([User(ts=TS, text="next")]))
    size = 17 * 1024 * 1024
    first, second = apply([], fed(builder, b"x" * size + b"\ny\n"))
    assert isinstance(first, Stdout)
    assert first.truncated == Truncated(bytes=size)
    assert len(first.text) < 70_000
    assert bare(second) == User(ts=TS, text="next")
    assert builder.coverage == Coverage(lines=2, understood=1, unknown=1)


def test_coverage_counts_non_empty_stdout_lines() -> None:
    """T4: understood = of a known shape, also when it gives no entry."""
    builder = TranscriptBuilder(Scripted([], None, [User(ts=TS, text="u")]))
    fed(builder, b"a\n\n\r\nb\nc\n")
    fed(builder, b"err\n", "stderr")
    assert builder.coverage == Coverage(lines=3, understood=2, unknown=1)


class Echo(JsonParser):
    """Makes of a line what it says, to let hypothesis write whole runs."""

    makers: ClassVar[dict[str, Callable[[dict[str, Any], str], Entry]]] = {
        "say": lambda e, ts: Assistant(ts=ts, text=e["text"], parent_tool_use_id=e["p"]),
        "piece": lambda e, ts: Assistant(
            ts=ts, text=e["text"], delta=True, parent_tool_use_id=e["p"]
        ),
        "think": lambda e, ts: Thinking(ts=ts, text=e["text"], delta=True),
        "call": lambda e, ts: ToolCall(ts=ts, name="t", input={}, tool_use_id=e["text"]),
        "todo": lambda e, ts: ToolCall(
            ts=ts, name="t", input=e, tool_use_id="plan", tool_kind="todo"
        ),
        "done": lambda e, ts: ToolResult(ts=ts, tool_use_id=e["text"], content="", is_error=False),
    }

    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        maker = self.makers.get(event["type"])
        return None if maker is None else [maker(event, ts)]


EVENTS = st.lists(
    st.builds(
        lambda kind, text, p: json.dumps({"type": kind, "text": text, "p": p}),
        st.sampled_from([*Echo.makers, "novelty"]),
        st.sampled_from(["a", "b", "🦆"]),
        st.sampled_from([None, "p"]),
    ),
    max_size=30,
)


@given(EVENTS)
def test_records_survive_json_and_play_into_one_transcript(lines: list[str]) -> None:
    """D2: what is stored as JSON lines gives every reader the same entries."""
    builder = TranscriptBuilder(Echo())
    records = fed(builder, "\n".join(lines).encode())
    entries = apply([], records)
    stored = [msgspec.json.decode(msgspec.json.encode(r), type=Record) for r in records]
    assert apply([], stored) == entries
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert len({entry.id for entry in entries}) == len(entries)
    said = "".join(json.loads(line)["text"] for line in lines if '"piece"' in line)
    grown = "".join(e.text for e in entries if isinstance(e, Assistant) and e.delta)
    assert sorted(said) == sorted(grown)
    assert builder.seq == len(entries)
