"""Scripts as Python objects and as JSON, and what a bad one is told."""

from pathlib import Path

import pytest

from binderclip.sdk.testing.scripted_model import (
    Edit,
    Failure,
    Read,
    Repeat,
    Script,
    ScriptError,
    Shell,
    Tool,
    Turn,
    Usage,
    Write,
    parse_script,
)
from binderclip.sdk.testing.scripted_model.script import fill

EVERY_FIELD = """
{"turns": [
  {"thinking": "hm", "text": "look", "calls": [
     {"do": "shell", "command": "ls"}, {"do": "read", "path": "a"},
     {"do": "write", "path": "b", "content": "c"},
     {"do": "edit", "path": "d", "old": "e", "new": "f"},
     {"do": "tool", "name": "Grep", "arguments": {"pattern": "x"}}],
   "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "reasoning": 2},
   "stop": "max_tokens", "pieceSize": 3, "drip": 0.5, "wait": 1, "holdAfter": 2},
  {"failure": {"status": 429, "message": "slow", "type": "t", "headers": {"retry-after": "1"},
               "body": {"a": 1}}, "times": "forever"},
  {"text": {"repeat": "{n} ", "count": 3}, "cutAfter": 1},
  {"failure": {"body": "<html>"}, "failAfter": 0, "times": 2}],
 "aux": null, "auxWords": ["summary"], "models": ["m"]}
"""


def test_json_and_python_objects_describe_the_same_script() -> None:
    calls = (
        Shell("ls"),
        Read("a"),
        Write("b", "c"),
        Edit("d", "e", "f"),
        Tool("Grep", {"pattern": "x"}),
    )
    usage = Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=2)
    first = Turn(
        text="look",
        thinking="hm",
        calls=calls,
        usage=usage,
        stop="max_tokens",
        piece_size=3,
        drip=0.5,
        wait=1,
        hold_after=2,
    )
    refused = Failure(429, "slow", "t", {"retry-after": "1"}, {"a": 1})
    turns = (
        first,
        Turn(failure=refused, times="forever"),
        Turn(text=Repeat("{n} ", 3), cut_after=1),
        Turn(failure=Failure(body="<html>"), fail_after=0, times=2),
    )
    wanted = Script(turns, aux=None, aux_words=("summary",), models=("m",))
    assert parse_script(EVERY_FIELD) == wanted


def test_a_bare_list_is_the_turns() -> None:
    assert parse_script('[{"text": "a"}]') == parse_script([Turn(text="a")])
    assert parse_script([{"text": "a"}]) == Script((Turn(text="a"),))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('{"turns": []}', ["at least one turn"]),
        ('{"turns": [{"txt": "a"}]}', ["unknown field `txt`", "$.turns[0]"]),
        ('[{"text": "a"}, {"calls": [{"do": "dance"}]}]', ["dance", "$.turns[1].calls[0]"]),
        ('[{"calls": [{"do": "read"}]}]', ["path", "$.turns[0].calls[0]"]),
        ('[{"times": 0}]', ["`times` is at least 1"]),
        ('[{"times": "often"}]', ["often", "$.turns[0].times"]),
        ('[{"failAfter": 1}]', ["`failAfter` needs a `failure`"]),
        ('[{"cutAfter": 1, "holdAfter": 1}]', ["only one of"]),
        ('[{"cutAfter": -1}]', ["count pieces from 0"]),
        ('[{"pieceSize": 0}]', ["`pieceSize` is at least 1"]),
        ('[{"failure": {"status": 200}}]', ["400 to 599", "$.turns[0].failure"]),
        ('[{"usage": {"output": 1, "reasoning": 2}}]', ["`output` includes `reasoning`"]),
        ('[{"usage": {"input": -1}}]', ["not negative"]),
        ("{turns}", ["malformed"]),
        ('"text"', ["object"]),
    ],
)
def test_a_bad_script_is_refused_with_the_place_and_the_problem(
    script: str, words: list[str]
) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(script)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("[]")
    with pytest.raises(ScriptError, match=r"bad\.json: .*at least one turn"):
        parse_script(bad)
    with pytest.raises(ScriptError, match=r"cannot read script .*absent\.json"):
        parse_script(tmp_path / "absent.json")


def test_placeholders_are_filled_everywhere_and_other_braces_stay() -> None:
    script = parse_script(
        [
            {"text": '{cwd} {other} {"cwd": 1}', "calls": [{"do": "read", "path": "{cwd}/a"}]},
            {"failure": {"message": "no {cwd}"}},
        ]
    )
    filled = fill(script, {"cwd": "/w"})
    assert filled.turns[0].text == '/w {other} {"cwd": 1}'
    assert filled.turns[0].calls == (Read("/w/a"),)
    assert filled.turns[1].failure == Failure(message="no /w")


def test_a_repeated_text_counts_its_repetitions() -> None:
    assert str(Repeat("{n},", 3)) == "0,1,2,"
    assert str(Repeat("ab", 3)) == "ababab"
