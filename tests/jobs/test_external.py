"""Saved output of any runtime becomes events and a final text (N1)."""

from __future__ import annotations

import json

import pytest

from binderclip.jobs import parse_external_output
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.testing.fixtures import cases_of


@pytest.mark.parametrize("runtime", ["cursor", "gemini", "codex", "opencode"])
def test_plain_text_of_a_runtime_is_trimmed_and_has_no_events(runtime: str) -> None:
    """N1: plain text gives the trimmed text."""
    parsed = parse_external_output("  Hello World  \n", runtime)
    assert parsed.final_output == "Hello World"
    assert parsed.events == ()


@pytest.mark.parametrize("kind", ["result", "output"])
@pytest.mark.parametrize("field", ["content", "text", "result"])
def test_a_result_line_of_claude_code_sets_the_output(kind: str, field: str) -> None:
    """N1: in the documented form, and by the field name of today."""
    line = json.dumps({"type": kind, field: "Hello World"})
    assert parse_external_output(line, "claude-code").final_output == "Hello World"


def test_text_of_claude_code_that_is_no_json_is_the_output() -> None:
    assert parse_external_output("Plain text output", "claude-code").final_output == (
        "Plain text output"
    )


def test_lines_after_the_result_are_appended() -> None:
    """N1: lines that are no JSON are appended by newline; a later result replaces them."""
    lines = 'before\n{"type":"result","content":"one"}\n  after \n\nmore\n'
    assert parse_external_output(lines, "claude-code").final_output == "one\nafter\nmore"


def test_json_without_a_result_gives_the_output_as_it_is() -> None:
    line = ' {"type":"something_new","value":1} \n'
    assert parse_external_output(line, "claude-code").final_output == line.strip()


def test_an_unknown_runtime_gives_its_output_untouched() -> None:
    """N1."""
    parsed = parse_external_output("  as it is \n", "no-such-runtime")
    assert (parsed.final_output, parsed.events) == ("  as it is \n", ())


@pytest.mark.parametrize("view", list_adapters(), ids=lambda view: view.type)
def test_every_recording_that_ended_well_gives_its_summary(view: object) -> None:
    """N1: the parser is the adapter's own, so the text is that of the run."""
    adapter = load_adapter(view.type)  # type: ignore[attr-defined]
    runtime = adapter.manifest.runtime or adapter.type
    for case in cases_of(adapter):
        result = case.replayed(adapter).result
        # Text forms of claude-code follow their own rule, and a resumed session its own facts.
        if result.error_code or not result.summary or runtime == "claude-code" or case.given:
            continue
        parsed = parse_external_output(case.stdout, runtime)
        assert parsed.final_output == result.summary, case.name


def test_tools_of_a_recording_become_events_in_steps() -> None:
    adapter = load_adapter("claude_local")
    (case,) = [case for case in cases_of(adapter) if case.name == "tools"]
    parsed = parse_external_output(case.stdout, "claude-code", job_id="j", run_id="r")
    kinds = [event.type for event in parsed.events]
    assert kinds.count("callTools") == kinds.count("resolveToolResults") > 0
    assert all((event.job_id, event.run_id) == ("j", "r") for event in parsed.events)
    assert parsed == parse_external_output(
        case.stdout.decode(), "claude-code", job_id="j", run_id="r"
    )
