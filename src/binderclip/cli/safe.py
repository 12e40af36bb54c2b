"""Makes text from agents safe to print: no byte of it can steer the terminal (T6).

Well-formed escape sequences are dropped, everything else that acts is made visible.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_ASCII_CONTROLS = bytes(point for point in (*range(32), 127) if point not in (9, 10))
# A string sequence that nobody ends is no sequence: dropping it would hide what follows.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,16}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{1,4}[0-~]"
    r"|\x1b[0-Z\\`-~]"
)
# In JSON a character can be written as an escape without changing its meaning.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """The text without anything but newlines, tabs and characters that only appear."""
    if text.isascii():
        # Ten times faster than the search, and most text is ASCII.
        data = text.encode("ascii")
        if len(data.translate(None, _ASCII_CONTROLS)) == len(data):
            return text
    elif _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(_visible, _SEQUENCE.sub("", text))


def safe_line(text: str) -> str:
    """Safe text on one line: newlines and tabs become spaces."""
    return " ".join(safe(text).split())


def safe_json(text: str) -> str:
    """JSON text for a terminal: what could act there is written as an escape."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _visible(match: re.Match[str]) -> str:
    point = ord(match[0])
    if point < 0x20:
        return chr(0x2400 + point)
    if point == 0x7F:
        return "\u2421"
    return f"<U+{point:04X}>"
