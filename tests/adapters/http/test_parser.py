"""What the lines of an answer become, and that no line can break the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.http import create_adapter
from binderclip.sdk.testing.conformance import Requirement, requirements
from binderclip.sdk.testing.fixtures import plain_entry
from binderclip.sdk.testing.replay import Replay, replay

CONFIG = {"url": "https://agent.example/wake"}


@pytest.mark.parametrize("requirement", requirements(create_adapter(), CONFIG), ids=str)
def test_the_adapter_conforms(requirement: Requirement) -> None:
    requirement()


def read(text: str) -> Replay:
    return replay(create_adapter(), text.encode())


def entries(text: str) -> list[dict[str, Any]]:
    return [plain_entry(entry) for entry in read(text).entries]


def said(text: str) -> list[str]:
    return [entry["text"] for entry in entries(text)]


def test_framing_is_recognised_from_the_first_line() -> None:
    """T3: a text that merely looks like framing further down stays a text."""
    assert said("Summary\nid: 7\ndata: 5 rows\n") == ["Summary", "id: 7", "data: 5 rows"]
    assert said(": hello\n\ndata: one\n\nid: 7\ndata: two\n") == ["onetwo"]


def test_a_text_that_begins_like_framing_is_not_lost() -> None:
    seen = read("id: 7\nname: x\nevent: none\n")
    texts = [plain_entry(entry)["text"] for entry in seen.entries]
    assert sorted(texts) == ["event: none", "id: 7", "name: x"]


def test_a_smile_is_no_comment() -> None:
    assert said(":) all good\n") == [":) all good"]


def test_data_keeps_its_spaces() -> None:
    assert said("data: a\n\ndata:  b\n\ndata:c\n\ndata:\n\n") == ["a bc"]


def test_a_json_string_as_data_is_text() -> None:
    assert said('data: "two\\nlines"\n\n') == ["two\nlines"]


def test_deltas_grow_one_entry_and_whole_texts_make_new_ones() -> None:
    """T4: deltas of the same kind merge."""
    assert said('{"delta":"a"}\n{"delta":"b"}\n{"text":"c"}\n{"text":"d"}\n') == ["ab", "c", "d"]
    assert read('{"delta":"a"}\n{"text":"final"}\n').result.summary == "final"


def test_a_document_over_many_lines_is_one_object() -> None:
    document = {"content": "whole", "list": [{"x": 1}], "more": {"y": None}}
    seen = read(json.dumps(document, indent=2))
    assert (len(seen.entries), seen.result.summary) == (1, "whole")
    assert seen.coverage.unknown == 0


def test_a_document_without_its_end_is_shown_as_it_came() -> None:
    assert said('{\n "a": 1,\n') == ["{", ' "a": 1,']


def test_an_unknown_document_is_shown_whole() -> None:
    assert said('{\n "a": 1\n}\n') == ['{\n "a": 1\n}']


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"tool_call","name":7,"input":{}}',
        '{"kind":"nothing"}',
        '{"kind":"result","text":"x"}',
        '{"ok":true}',
        '{"text":5}',
    ],
)
def test_an_object_of_no_known_shape_is_kept_and_counted(line: str) -> None:
    """T4: unknown lines are shown raw."""
    seen = read(f"{line}\n")
    assert seen.coverage.unknown == 1
    assert plain_entry(seen.entries[0])["text"] == line


def test_host_fields_of_an_answer_are_not_believed() -> None:
    """T1b: id, place and number are the host's."""
    (entry,) = read('{"kind":"user","text":"x","id":"9o9.9","seq":7,"offset":5}\n').entries
    assert (entry.id, entry.seq, entry.offset) == ("1o0.0", 0, 0)


def test_an_unsafe_session_id_is_not_kept() -> None:
    """A8: it may end up in a URL or a payload."""
    result = read('{"kind":"init","model":"m","sessionId":"../../x y"}\n').result
    assert result.session_params is None


def test_an_answer_cannot_claim_an_unknown_session() -> None:
    """S4: words of the agent reset nothing."""
    assert not read('{"error":"unknown session"}\n').result.clear_session


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"error":"no luck"}', "no luck"),
        ('{"error":{"message":"no luck","code":5}}', "no luck"),
        ('{"error":{"code":5}}', '{"code":5}'),
        ('{"error":["a"]}', '["a"]'),
        ("event: error\ndata: no luck", "no luck"),
        ('event: error\ndata: {"detail":"no luck"}', "no luck"),
    ],
)
def test_an_error_is_a_failure_in_its_own_words(line: str, message: str) -> None:
    """A9, T5."""
    seen = read(f"{line}\n")
    assert seen.result.error_message == f"The endpoint reported: {message}"
    assert plain_entry(seen.entries[-1])["isError"] is True


@pytest.mark.parametrize("value", ["null", "false", '""', "0", "[]", "{}"])
def test_an_empty_error_is_none(value: str) -> None:
    seen = read(f'{{"error":{value},"text":"fine"}}\n')
    assert (seen.result.error_code, seen.result.summary) == (None, "fine")


def test_an_event_name_belongs_to_its_own_data() -> None:
    result = read("event: error\ndata: no luck\n\ndata: more\n\ndata: [DONE]\n\n").result
    assert result.summary == "more"


def test_every_part_of_a_stream_of_events_is_understood() -> None:
    """T4: comments, names and ids are known shapes without entries."""
    seen = read(
        ': keep-alive\nid: 1\nevent: message\ndata: {"delta":"Hel"}\n\n'
        'data: {"delta":"lo, "}\n\ndata: world\n\nretry: 500\ndata: [DONE]\n\n'
    )
    assert [plain_entry(entry)["text"] for entry in seen.entries] == ["Hello, world"]
    assert (seen.result.summary, seen.coverage.unknown) == ("Hello, world", 0)
