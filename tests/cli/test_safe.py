"""Text from agents cannot steer the terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.cli.safe import safe, safe_json, safe_line

HOSTILE = {
    "clears the screen": "\x1b[2J\x1b[H",
    "sets the title": "\x1b]0;pwned\x07",
    "sets the title, ended by ST": "\x1b]2;pwned\x1b\\",
    "links elsewhere": "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\",
    "writes the clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "never ends its title": "\x1b]0;pwned and all that follows",
    "asks the terminal to answer": "\x1b[6n\x1b[c\x1bZ",
    "device control": '\x1bP$q"p\x1b\\',
    "privacy message": "\x1b^secret\x1b\\",
    "eight-bit CSI": "\x9b2J",
    "eight-bit OSC": "\x9d0;pwned\x9c",
    "switches the character set": "\x1b(0\x0e",
    "resets the terminal": "\x1bc",
    "overwrites the line": "safe\rrm -rf /",
    "goes back": "safe\b\b\b\bevil",
    "rings": "\x07",
    "turns the text around": "\u202egnp.exe\u202c",
    "isolates": "\u2066hidden\u2069",
    "hides tags": "\U000e0041\U000e0042",
    "half a sequence": "\x1b[31",
    "lone surrogate": "\udc9b",
    "null and delete": "\x00\x7f",
}


def acts(character: str) -> bool:
    """Whether a character does anything but appear."""
    return (unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t") or (
        character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_hostile_gets_through(text: str) -> None:
    """T6: control sequences from the agent never reach the terminal raw."""
    assert not any(map(acts, safe(f"before {text} after")))


@given(st.text())
def test_no_text_at_all_gets_a_control_character_through(text: str) -> None:
    """T6: whatever the agent prints."""
    assert not any(map(acts, safe(text)))


@given(st.text(alphabet=st.characters(exclude_categories=("C",))))
def test_text_without_controls_stays_as_it_is(text: str) -> None:
    kept = text.replace("\u2028", "").replace("\u2029", "")
    assert safe(kept) == kept


def test_colours_are_dropped_and_words_stay() -> None:
    assert safe("\x1b[1;31mFAIL\x1b[0m src/a.ts") == "FAIL src/a.ts"


def test_a_title_that_never_ends_hides_nothing() -> None:
    assert safe("\x1b]0;and then\nthe rest") == "␛]0;and then\nthe rest"


def test_a_carriage_return_is_shown_not_obeyed() -> None:
    assert safe("10%\r100%") == "10%␍100%"


def test_newlines_and_tabs_are_kept() -> None:
    assert safe("a\n\tb\x1b[m") == "a\n\tb"


def test_a_line_has_no_newlines() -> None:
    assert safe_line("a\n  b\tc ") == "a b c"


def test_json_for_a_terminal_means_the_same() -> None:
    """T6: C1 and bidirectional controls are escapes in JSON, and no escape is lost."""
    text = json.dumps({"text": "a\x9b2J\u202eb\x1b[0m"}, ensure_ascii=False)
    assert not any(map(acts, safe_json(text)))
    assert json.loads(safe_json(text)) == json.loads(text)
