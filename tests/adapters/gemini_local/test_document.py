"""`--output-format json`: one document over many lines instead of events."""

from __future__ import annotations

import json
from pathlib import Path

from binderclip.adapters.gemini_local import create_adapter
from binderclip.sdk import Assistant, Result, Stdout
from binderclip.sdk.testing.replay import replay

DOCUMENT = (Path(__file__).parent / "recordings" / "json_document.txt").read_bytes()


def test_a_document_gives_answer_usage_and_session() -> None:
    """N1: a structured runtime's other form is understood as well."""
    seen = replay(create_adapter(), DOCUMENT)
    assert [type(entry) for entry in seen.entries] == [Assistant, Result]
    assert (seen.coverage.lines, seen.coverage.unknown) == (95, 0)
    result = seen.result
    assert (result.error_code, result.model) == (None, "gemini-2.5-pro")
    assert result.summary == "Done: I read notes.txt and wrote out.txt."
    assert result.session_id == "a85c75bb-6afb-4764-b9b4-045e9ac7d9d6"
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3090, 223)


def test_a_document_with_an_error_is_a_failure() -> None:
    error = {"type": "FatalAuthenticationError", "message": "no key", "code": 41}
    text = json.dumps({"session_id": "s-1", "error": error}, indent=2).encode()
    result = replay(create_adapter(), text, exit_code=41).result
    assert (result.error_code, result.error_message) == ("auth", "no key")


def test_a_document_that_was_cut_is_shown_raw() -> None:
    """T4: nothing is hidden."""
    seen = replay(create_adapter(), DOCUMENT[:60])
    (entry,) = seen.entries
    assert isinstance(entry, Stdout)
    assert entry.text == DOCUMENT[:60].decode()
    assert seen.result.error_code == "cut_output"


def test_braces_around_something_else_are_shown_raw() -> None:
    seen = replay(create_adapter(), b"{\nnot json\n}\n")
    (entry,) = seen.entries
    assert isinstance(entry, Stdout)
    assert entry.text == "{\nnot json\n}"
