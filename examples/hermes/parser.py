"""Reads what Hermes prints for people: a bar, an emoji, a verb; plain lines are its answer.

`ui-parser.js` beside this file gives the same entries for the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from binderclip.sdk import (
    Assistant,
    Entry,
    Failure,
    Init,
    Parser,
    System,
    Thinking,
    ToolCall,
    ToolKind,
    ToolResult,
    Usage,
    safe_session_id,
)

BAR = "\u250a"
SPEECH = "\U0001f4ac"
BLANK = " \t"
"""What is stripped: engines disagree about other white space."""
_NOTICE = re.compile(r"\[hermes\] (.*)", re.S)
_SESSION = re.compile(
    r"(?:Session(?: resumed| started)?|session_id): ([A-Za-z0-9][A-Za-z0-9_.:-]{0,199})"
)
_ENDED = re.compile(r"\[(done|error)\] (.*)", re.S)
_CALL = re.compile(r"(\$|[a-z][a-z_]*) ?(.*)", re.S)
_TOOK = re.compile(r" ?([0-9]{1,6}(?:\.[0-9]{1,3})?)s$")
_TOKENS = re.compile(r"tokens: ([0-9]{1,12}) in, ([0-9]{1,12}) out")
_DASH = " \u2014 "
_KINDS: dict[str, ToolKind] = {
    "$": "shell",
    "read": "read",
    "write": "write",
    "edit": "edit",
    "search": "search",
    "fetch": "web",
}


class HermesParser(Parser):
    """State: the open calls, oldest first, and the lines of the answer."""

    structured = False

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[str, str]] = []
        self._count = 0
        self._answer: list[str] = []

    def parse_line(self, line: str, ts: str) -> Sequence[Entry] | None:
        text = line.strip(BLANK)
        if not text:
            return []
        notice = _NOTICE.fullmatch(text)
        if notice:
            return self._notice(text, notice[1], ts)
        if text.startswith("session_id: "):
            self._remember(text)
            return [System(ts=ts, text=text)]
        if text.startswith(BAR):
            self._answer = []
            return self._barred(text[len(BAR) :].strip(BLANK), ts)
        self._answer.append(line)
        return [Assistant(ts=ts, text=line)]

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        if line.startswith("Session not found: "):
            self.facts.unknown_session = True
        elif line.startswith("Error: "):
            self.facts.failure = Failure("upstream", line.removeprefix("Error: "))
        return None

    def finish(self, ts: str) -> Sequence[Entry]:
        self.facts.final_text = "\n".join(self._answer).strip() or None
        return ()

    def _notice(self, text: str, told: str, ts: str) -> Sequence[Entry]:
        tokens = _TOKENS.fullmatch(told)
        if tokens:
            fresh, output = int(tokens[1]), int(tokens[2])
            self.facts.usage = Usage(input_tokens=fresh, output_tokens=output)
        if self._remember(told):
            return [Init(ts=ts, model="", session_id=self.facts.session_id or "")]
        return [System(ts=ts, text=text)]

    def _remember(self, told: str) -> bool:
        found = _SESSION.fullmatch(told)
        if found is None or safe_session_id(found[1]) is None:
            return False
        self.facts.session_id = found[1]
        return True

    def _barred(self, text: str, ts: str) -> Sequence[Entry]:
        if text.startswith(SPEECH):
            return [Thinking(ts=ts, text=text[len(SPEECH) :].strip(BLANK))]
        ended = _ENDED.fullmatch(text)
        if ended:
            return self._done(ended[2], ended[1] == "error", ts)
        called = _CALL.fullmatch(text)
        if called is None:
            return [System(ts=ts, text=text)]
        return [self._call(called[1], called[2].strip(BLANK), ts)]

    def _call(self, verb: str, detail: str, ts: str) -> ToolCall:
        self._count += 1
        used = f"hermes-{self._count}"
        self._calls.append((verb, used))
        key: Literal["command", "target"] = "command" if verb == "$" else "target"
        return ToolCall(
            ts=ts,
            name="shell" if verb == "$" else verb,
            input={key: detail},
            tool_use_id=used,
            tool_kind=_KINDS.get(verb, "other"),
        )

    def _done(self, text: str, failed: bool, ts: str) -> Sequence[Entry]:
        head, dash, output = text.partition(_DASH)
        if not dash:
            head, output = text, ""
        called = _CALL.fullmatch(head.strip(BLANK))
        verb, detail = (
            (called[1], called[2].strip(BLANK)) if called else ("tool", head.strip(BLANK))
        )
        took = _TOOK.search(output if dash else detail)
        if took and dash:
            output = output[: took.start()]
        elif took:
            detail = detail[: took.start()]
        made: list[Entry] = []
        used = self._close(verb)
        if used is None:
            made.append(self._call(verb, detail, ts))
            used = self._close(verb)
        made.append(
            ToolResult(
                ts=ts,
                tool_use_id=used or "",
                content=output,
                is_error=failed,
                tool_name="shell" if verb == "$" else verb,
                duration_ms=_milliseconds(took[1]) if took else None,
            )
        )
        return made

    def _close(self, verb: str) -> str | None:
        """The oldest open call of this verb."""
        for at, (name, used) in enumerate(self._calls):
            if name == verb:
                del self._calls[at]
                return used
        return None


def _milliseconds(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])
