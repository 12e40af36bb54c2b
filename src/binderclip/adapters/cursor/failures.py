"""Why a Cursor run failed: mostly words on stderr, since failures have no result line (A9)."""

from __future__ import annotations

import re

from binderclip.sdk import ErrorCode, Failure
from binderclip.sdk.vendor_errors import failure_by_status, family_of

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_UNKNOWN_SESSION = re.compile(
    r"unknown (session|chat)|(session|chat|conversation)\b.* not found|could not resume", re.I
)
_BY_WORDS: tuple[tuple[str, ErrorCode], ...] = (
    ("authentication required", "auth"),
    ("not authenticated", "auth"),
    ("not logged in", "auth"),
    ("[unauthenticated]", "auth"),
    ("cannot use this model", "bad_config"),
    ("unknown option", "bad_config"),
    ("outdated_client", "bad_config"),
    ("workspace trust required", "permission"),
    ("[permission_denied]", "permission"),
    ("usage limit", "quota"),
    ("[resource_exhausted]", "rate_limit"),
    ("[unavailable]", "upstream"),
    ("[deadline_exceeded]", "upstream"),
    ("retriableerror", "upstream"),
    ("connecterror", "upstream"),
)
_CATALOGUE = " Available models"


def told(line: str) -> str:
    """A line of stderr without colours."""
    return _COLOURS.sub("", line).strip()


def says_unknown_session(words: str) -> bool:
    """Whether the CLI says that it does not know the chat that it was to resume."""
    return bool(_UNKNOWN_SESSION.search(words))


def failure_of_words(words: str) -> Failure | None:
    """The class of what the CLI says; None if it is no complaint that we know."""
    lowered = words.lower()
    message = words.partition(_CATALOGUE)[0].removeprefix("Error: ").removeprefix("error: ")
    for sign, code in _BY_WORDS:
        if sign in lowered:
            return Failure(code, message, family_of(code))
    found = failure_by_status(None, message)
    if found is None and lowered.startswith("error"):
        return Failure("process_failed", message)
    return found
