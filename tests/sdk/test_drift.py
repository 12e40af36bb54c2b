"""Events that an adapter has never seen are told apart from those of its recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.drift import MOST, SHAPES, known_events, new_events
from binderclip.sdk.parser import JsonParser
from binderclip.sdk.testing.shapes import as_text, main, recorded_events

SAMPLE = Path(__file__).parent / "testing" / "sample_agent"
TS = "2026-01-01T00:00:00.000Z"
KNOWN = {"say": frozenset(("type", "text")), "system/init": frozenset(("type", "subtype"))}


def shapes(*events: dict[str, object], parser: JsonParser | None = None) -> set[tuple[str, ...]]:
    parser = parser or JsonParser()
    for event in events:
        parser.parse_line(json.dumps(event), TS)
    return parser.shapes


class Envelopes(JsonParser):
    inner = "item"


@pytest.mark.parametrize("type", [view.type for view in list_adapters()])
def test_a_built_in_adapters_shapes_are_those_of_its_recordings(type: str) -> None:
    adapter = load_adapter(type)
    events = recorded_events(adapter)
    written = adapter.folder / SHAPES
    command = f"python -m binderclip.sdk.testing.shapes {adapter.folder}"
    assert (written.read_text("utf-8") if written.exists() else as_text({})) == as_text(events), (
        f"run {command}"
    )


def test_new_types_and_fields_are_named() -> None:
    seen = shapes(
        {"type": "say", "text": "hi"},
        {"type": "say", "text": "hi", "mood": 1},
        {"type": "system", "subtype": "init"},
        {"type": "system", "subtype": "warning"},
        {"type": "dance\n"},
    )
    assert new_events(seen, KNOWN) == (
        "event dance?",
        "field mood of say",
        "event system/warning",
    )


def test_an_envelopes_content_counts() -> None:
    event = {"type": "item.completed", "item": {"type": "poem", "verse": 1}}
    seen = shapes(event, parser=Envelopes())
    assert new_events(seen, KNOWN) == ("event item.completed/poem",)
    known = {"item.completed/poem": frozenset(("type", "item"))}
    assert new_events(seen, known) == ("field verse of item.completed/poem",)


def test_odd_shapes_never_raise_and_findings_are_bounded() -> None:
    events = [{"type": {"a": [n]}, "subtype": [n]} for n in range(50)] + [{"type": None}, {}]
    assert len(new_events(shapes(*events), KNOWN)) == MOST


def test_nothing_is_new_where_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / SHAPES).write_text("[1]")
    assert known_events(tmp_path) == known_events(tmp_path / "missing") == {}
    assert new_events(shapes({"type": "dance"}), {}) == ()


def test_the_command_writes_what_recordings_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sample_agent"
    folder.mkdir()
    for name in ("__init__.py", "adapter.toml", "doc.md"):
        (folder / name).write_text((SAMPLE / name).read_text())
    case = folder / "fixtures" / "one"
    case.mkdir(parents=True)
    (case / "stdout.txt").write_text('{"type":"say","text":"hi"}\n')
    assert main([str(folder)]) == 0
    assert "1 events" in capsys.readouterr().out
    assert known_events(folder) == {"say": frozenset(("text", "type"))}
    assert (main([]), main([str(tmp_path / "none")])) == (2, 1)
