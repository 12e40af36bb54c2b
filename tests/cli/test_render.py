"""Records become text: blocks, cards, folds, streams."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binderclip.cli.layout import Look, cells
from binderclip.cli.render import Renderer
from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Diff,
    Entry,
    EntryRecord,
    Init,
    Record,
    ReplaceRecord,
    Result,
    Stderr,
    Stdout,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    Truncated,
    User,
)

TS = "2026-01-01T00:00:00.000Z"
PLAIN = Look(run="1a2b3c4d")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def entry(kind: type[Any], **fields: Any) -> EntryRecord:
    return EntryRecord(entry=kind(ts=TS, **fields))


def call(id: str = "t1", **fields: Any) -> EntryRecord:
    given = {"name": "Bash", "input": {"command": "npm test"}, "tool_kind": "shell"}
    return entry(ToolCall, tool_use_id=id, **{**given, **fields})


def answer(id: str = "t1", content: str = "ok", **fields: Any) -> EntryRecord:
    return entry(ToolResult, tool_use_id=id, content=content, **{"is_error": False, **fields})


def drawn(*records: Record, look: Look = PLAIN) -> str:
    renderer = Renderer(look)
    return renderer.render(records) + renderer.finish()


def coloured(*records: Record, width: int = 80) -> str:
    return drawn(*records, look=Look(colour=True, width=width))


def test_what_the_agent_said_stands_in_a_pipe_as_it_is() -> None:
    """T3: consecutive lines are one block, without marks that programs would trip over."""
    assert drawn(entry(Assistant, text="one"), entry(Assistant, text="  two")) == "one\n  two\n"


def test_consecutive_lines_are_one_block_on_a_terminal() -> None:
    """T3: one mark for the block."""
    out = drawn(
        entry(Assistant, text="one"),
        entry(Assistant, text="two"),
        look=Look(colour=False, width=40),
    )
    assert out == "◆ one\n  two\n"


def test_a_tool_is_a_card_with_its_duration() -> None:
    """T5: call and result stand together, with the time it took."""
    out = drawn(call(), answer(duration_ms=1300))
    assert out == "● Bash  npm test\n  ok\n  ✓ 1.3 s\n"


def test_a_failed_tool_says_how_it_failed_in_red() -> None:
    """T5: isError shows red."""
    records = call(), answer(content="boom", is_error=True, exit_code=3, duration_ms=400)
    assert drawn(*records).endswith("  boom\n  ✗ exit 3 · 0.4 s\n")
    out = coloured(*records)
    assert "\x1b[31mboom\x1b[0m" in out
    assert "\x1b[31mexit 3 · 0.4 s\x1b[0m" in out


def test_long_output_is_folded_and_says_how_to_see_it() -> None:
    """T5: a card is collapsed; the hint names the run."""
    text = "\n".join(f"line {number}" for number in range(100))
    out = drawn(call(), answer(content=text))
    assert "  line 2\n  … 93 more lines (runs transcript 1a2b3c4d --full)\n  line 96\n" in out
    assert out.count("\n") == 1 + 3 + 1 + 4 + 1


def test_nothing_is_folded_when_all_is_asked_for() -> None:
    text = "\n".join(f"line {number}" for number in range(100)) + "\n" + "x" * 9000
    out = drawn(call(), answer(content=text), look=Look(full=True))
    assert "more lines" not in out
    assert "x" * 9000 in out


def test_results_of_calls_made_at_once_name_their_call() -> None:
    """T4: pairs by toolUseId, wherever the result stands."""
    out = drawn(
        call("a", name="Read", input={"file_path": "a.ts"}, tool_kind="read"),
        call("b", name="Grep", input={"pattern": "x.*"}, tool_kind="search"),
        answer("a", "one"),
        answer("b", "two"),
    )
    assert out == (
        "● Read  a.ts\n● Grep  x.*\n\n↳ Read  a.ts\n  one\n  ✓\n\n↳ Grep  x.*\n  two\n  ✓\n"
    )


def test_a_result_without_a_call_still_shows() -> None:
    assert drawn(answer("lost", "text", tool_name="Odd")) == "↳ Odd\n  text\n  ✓\n"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"title": "Run the tests", "input": {"command": "x"}}, "Run the tests"),
        ({"input": {"command": ["ls", "-la"]}}, "ls -la"),
        ({"input": {"command": "a\nb"}}, "a b"),
        ({"input": {"odd": 1}}, '{"odd": 1}'),
        ({"input": None}, ""),
        ({"input": "free text"}, "free text"),
    ],
)
def test_a_header_tells_what_the_tool_is_asked(given: dict[str, Any], shown: str) -> None:
    assert drawn(call(**given)) == f"● Bash  {shown}".rstrip() + "\n"


def test_a_plan_has_boxes_and_is_drawn_again_when_it_changes() -> None:
    """T1b: a todo call is drawn by its items."""
    first, second = (
        ToolCall(
            ts=TS,
            id="1",
            name="Plan",
            tool_use_id="p",
            tool_kind="todo",
            input={
                "items": [{"text": "look", "status": state}, {"text": "fix", "status": "pending"}]
            },
        )
        for state in ("in_progress", "completed")
    )
    out = drawn(EntryRecord(entry=first), ReplaceRecord(id="1", entry=second))
    assert out == (
        "● Plan  0 of 2 done\n  ▸ look\n  ☐ fix\n\n● Plan  1 of 2 done\n  ☑ look\n  ☐ fix\n"
    )


def test_a_plan_of_an_odd_shape_is_no_reason_to_fail() -> None:
    """A8: output is untrusted."""
    odd = call(tool_kind="todo", input={"items": ["x", None, {"text": 3}]})
    assert "☐ 3" in drawn(odd)


def test_a_diff_is_coloured_by_its_changes() -> None:
    """T1: diff lines by changeType."""
    out = coloured(
        entry(Diff, change_type="file_header", text="src/a.py"),
        entry(Diff, change_type="remove", text="old"),
        entry(Diff, change_type="add", text="+new"),
    )
    assert "\x1b[1msrc/a.py\x1b[0m" in out
    assert "\x1b[31m-old\x1b[0m" in out
    assert "\x1b[32m+new\x1b[0m" in out


def test_a_long_diff_is_folded() -> None:
    lines = [entry(Diff, change_type="add", text=str(number)) for number in range(100)]
    assert "… 60 more lines" in drawn(*lines)


def test_what_a_sub_agent_does_is_indented_below_its_call() -> None:
    """T1b: parentToolUseId."""
    out = drawn(
        call("a", name="Task", input={"description": "docs"}, tool_kind="agent"),
        entry(Assistant, text="looking", parent_tool_use_id="a"),
        call("b", input={"command": "ls"}, parent_tool_use_id="a"),
        answer("b", "README", parent_tool_use_id="a"),
    )
    assert "\n  ◆ looking\n" in out
    assert "\n  ● Bash  ls\n    README\n    ✓\n" in out


def test_streamed_text_appears_as_it_comes() -> None:
    """T4: deltas grow one text."""
    renderer = Renderer(PLAIN)
    first = EntryRecord(entry=Assistant(ts=TS, id="1", text="Hel", delta=True))
    assert renderer.render([first]) == "Hel"
    assert renderer.render([AppendRecord(id="1", text="lo\nyou")]) == "lo\nyou"
    assert renderer.finish() == "\n"


def test_a_stream_that_was_interrupted_goes_on_as_itself() -> None:
    """T4: appends name their entry, so two streams never mix."""
    out = drawn(
        EntryRecord(entry=Assistant(ts=TS, id="1", text="main ", delta=True)),
        EntryRecord(entry=Thinking(ts=TS, id="2", text="hmm", delta=True)),
        AppendRecord(id="1", text="again"),
    )
    assert out == "main \n\n◇ hmm\n\nagain\n"


def test_thinking_is_dim_and_short() -> None:
    """T5: thinking is collapsed."""
    out = coloured(entry(Thinking, text="word " * 500))
    assert "\x1b[2;3m" in out
    assert len(ESCAPE.sub("", out)) < 500
    assert out.rstrip("\x1b[0m\n").endswith("…")


def test_streamed_thinking_stops_growing() -> None:
    first = EntryRecord(entry=Thinking(ts=TS, id="1", text="word " * 60, delta=True))
    more = [AppendRecord(id="1", text="word " * 60) for _ in range(10)]
    assert len(drawn(first, *more)) < 400


@pytest.mark.parametrize(
    ("record", "escape"),
    [
        (entry(System, text="[binderclip] note"), "\x1b[34mnote"),
        (entry(Assistant, text="said"), "\x1b[32m◆\x1b[0m said"),
        (call(), "\x1b[33;1mBash"),
        (entry(Stderr, text="warned"), "\x1b[2mwarned"),
        (entry(User, text="asked"), "\x1b[36m❯\x1b[0m asked"),
    ],
)
def test_each_kind_has_its_colour(record: EntryRecord, escape: str) -> None:
    """T6: system blue, assistant green, tools yellow."""
    assert escape in coloured(record)


def test_a_line_too_long_for_a_parser_is_shown_cut_with_its_size() -> None:
    """D2, T4: it is kept whole; the screen has its beginning."""
    line = entry(Stdout, text="x" * 5000, truncated=Truncated(bytes=200_000_000))
    out = drawn(line)
    assert out.startswith("? xxxx") and len(out) < 200
    assert out.endswith("… a line of 200.0 MB; the log has all of it\n")
    assert len(drawn(line, look=Look(debug=True))) > 5000


def test_unrecognised_lines_are_gray_and_only_shown_in_debug() -> None:
    """T6: counted otherwise."""
    record = entry(Stdout, text="{odd")
    renderer = Renderer(PLAIN)
    assert (renderer.render([record]), renderer.unknown) == ("", 1)
    look = Look(colour=True, width=80, debug=True)
    assert "\x1b[90m{odd" in drawn(record, look=look)


def test_the_final_words_are_not_said_twice() -> None:
    numbers = {"input_tokens": 1, "output_tokens": 1, "cached_tokens": 0, "cost_usd": None}
    told = entry(Result, text="done", subtype="success", is_error=False, errors=(), **numbers)
    assert drawn(entry(Assistant, text="done"), told) == "done\n"
    assert drawn(told) == "done\n"
    failed = entry(Result, text="", subtype="error", is_error=True, errors=("no key",), **numbers)
    assert "\x1b[31mno key" in coloured(failed)


def test_the_model_and_session_are_named() -> None:
    out = drawn(entry(Init, model="sonnet", session_id="7f3e1a2b-1111"))
    assert out == "· sonnet · session 7f3e1a2b\n"


def test_running_tools_are_known_until_they_end() -> None:
    renderer = Renderer(PLAIN)
    renderer.render([call("a")])
    assert renderer.running == {"a": ("Bash", TS)}
    renderer.render([answer("a")])
    assert renderer.running == {}


EVIL = "\x1b]0;pwned\x07\x1b[2J\x9b31m\r\b\u202e"


@pytest.mark.parametrize(
    "record",
    [
        entry(Init, model=EVIL, session_id=EVIL),
        entry(Assistant, text=EVIL),
        entry(Thinking, text=EVIL),
        entry(User, text=EVIL),
        call(name=EVIL, title=EVIL),
        call(input={"command": EVIL}),
        call(input={EVIL: EVIL}),
        call(tool_kind="todo", input={"items": [{"text": EVIL, "status": EVIL}]}),
        answer(content=EVIL, tool_name=EVIL),
        entry(Stderr, text=EVIL),
        entry(System, text=EVIL),
        entry(Stdout, text=EVIL),
        entry(Diff, change_type="add", text=EVIL),
    ],
    ids=lambda record: type(record.entry).__name__,
)
def test_no_kind_lets_a_control_sequence_through(record: EntryRecord) -> None:
    """T6: every field of every kind is made safe."""
    out = drawn(record, look=Look(width=80, debug=True))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out)


TEXTS = st.text(max_size=120)
ENTRIES = st.one_of(
    st.builds(Assistant, ts=st.just(TS), text=TEXTS),
    st.builds(Thinking, ts=st.just(TS), text=TEXTS),
    st.builds(Stderr, ts=st.just(TS), text=TEXTS),
    st.builds(ToolCall, ts=st.just(TS), name=TEXTS, input=TEXTS, tool_use_id=st.just("a")),
    st.builds(
        ToolResult, ts=st.just(TS), tool_use_id=st.just("a"), content=TEXTS, is_error=st.booleans()
    ),
)


@given(st.lists(ENTRIES, max_size=12), st.integers(40, 100))
@example([ToolCall(ts=TS, name="0" * 39, input="", tool_use_id="a")], 40)
def test_whatever_comes_fits_the_terminal(entries: list[Entry], width: int) -> None:
    """T6: narrow terminals are no reason to spill."""
    out = drawn(*(EntryRecord(entry=one) for one in entries), look=Look(width=width))
    assert all(cells(line) <= width for line in out.split("\n"))


@given(st.lists(ENTRIES, max_size=12), st.integers(1, 5))
def test_batches_do_not_change_what_is_drawn(entries: list[Entry], size: int) -> None:
    """D2: live and replay agree."""
    records = [EntryRecord(entry=one) for one in entries]
    renderer = Renderer(Look(width=60))
    batches = [records[at : at + size] for at in range(0, len(records), size)]
    out = "".join(renderer.render(batch) for batch in batches) + renderer.finish()
    assert out == drawn(*records, look=Look(width=60))
