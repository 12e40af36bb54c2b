"""T1, T1b: kinds of entries, cutting long texts, playing records."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.entry import (
    ENTRY_KINDS,
    AppendRecord,
    Assistant,
    Entry,
    EntryRecord,
    Record,
    ReplaceRecord,
    Stdout,
    ToolCall,
    ToolResult,
    Truncated,
    User,
    apply,
    clip,
)

TS = "2026-01-02T03:04:05.678Z"


def test_the_kinds_are_those_of_the_contract() -> None:
    """T1: eleven kinds, by these names."""
    tags = tuple(kind.__struct_config__.tag for kind in get_args(Entry))
    assert tags == ENTRY_KINDS


@pytest.mark.parametrize(
    "data",
    [
        b'{"kind":"novelty","ts":"t","text":"x"}',
        b'{"ts":"t","text":"x"}',
        b'{"kind":"assistant","ts":"t"}',
        b'{"kind":"assistant","ts":"t","text":5}',
        b'{"kind":"diff","ts":"t","text":"x","changeType":"novelty"}',
        b'{"kind":"tool_result","ts":"t","toolUseId":"u","content":"c"}',
    ],
)
def test_entries_of_a_wrong_shape_are_refused(data: bytes) -> None:
    """T4: what is no entry does not become one."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(data, type=Entry)


@given(st.text(), st.integers(0, 40))
def test_a_cut_text_is_valid_and_a_beginning_of_the_whole(text: str, limit: int) -> None:
    """T1b: text over the limit is cut with its size told."""
    entry = Assistant(ts=TS, text=text)
    shown = clip(entry, limit)
    assert isinstance(shown, Assistant)
    size = len(text.encode())
    assert text.startswith(shown.text)
    assert len(shown.text.encode()) <= max(limit, 0) or shown is entry
    if shown is not entry:
        assert shown.truncated == Truncated(bytes=size)
    else:
        assert size <= limit


def test_a_tools_output_is_cut_as_well() -> None:
    """T1b: tool results are the longest texts."""
    shown = clip(ToolResult(ts=TS, tool_use_id="u", content="é" * 100_000, is_error=False))
    assert isinstance(shown, ToolResult)
    assert (len(shown.content), shown.truncated) == (32 * 1024, Truncated(bytes=200_000))


def test_what_was_cut_before_keeps_its_true_size() -> None:
    """T4: an oversized line stays known by the size it had on disk."""
    entry = Stdout(ts=TS, text="x" * 70_000, truncated=Truncated(bytes=200_000_000))
    assert clip(entry).truncated == Truncated(bytes=200_000_000)


def test_entries_without_a_text_are_left_alone() -> None:
    entry = ToolCall(ts=TS, name="Write", input={"content": "x" * 100_000})
    assert clip(entry) is entry


def test_records_play_into_entries() -> None:
    """D2: entry, append and replace, in order, also onto entries that are there."""
    there: list[Entry] = [Assistant(ts=TS, id="a", text="He", delta=True)]
    todo = ToolCall(ts=TS, id="c", name="todo", input={"items": []})
    done = msgspec.structs.replace(todo, input={"items": [{"text": "x", "status": "done"}]})
    records: list[Record] = [
        AppendRecord(id="a", text="llo"),
        EntryRecord(entry=User(ts=TS, id="b", text="u")),
        EntryRecord(entry=todo),
        AppendRecord(id="a", text="!"),
        ReplaceRecord(id="c", entry=done),
    ]
    played = apply(there, records)
    assert played == [
        Assistant(ts=TS, id="a", text="Hello!", delta=True),
        User(ts=TS, id="b", text="u"),
        done,
    ]
