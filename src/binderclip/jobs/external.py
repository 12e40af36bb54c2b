"""Output of any runtime that somebody saved, as events and a final text (N1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from binderclip.contract.entry import ReplaceRecord
from binderclip.contract.event import Event
from binderclip.jobs.events import Identity, Steps, milliseconds
from binderclip.jobs.runtimes import adapter_of
from binderclip.jobs.source import in_last_state, whole_entries
from binderclip.sdk.testing.replay import REPLAY_TS, Replay, replay

_CLAUDE_CODE = "claude-code"
_OF_PERSTACK = frozenset({"cursor", _CLAUDE_CODE, "gemini"})
"""Their text is trimmed even where no adapter for them is installed."""


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """What saved output became."""

    events: tuple[Event, ...]
    final_output: str


def parse_external_output(
    stdout: str | bytes, runtime: str, *, job_id: str = "", run_id: str = ""
) -> ParsedOutput:
    """Read saved output by the parser of the runtime's adapter, the one that live runs have."""
    text = stdout if isinstance(stdout, str) else stdout.decode("utf-8", "replace")
    adapter = adapter_of(runtime)
    if adapter is None:
        return ParsedOutput((), text.strip() if runtime in _OF_PERSTACK else text)
    data = stdout if isinstance(stdout, bytes) else stdout.encode("utf-8", "surrogatepass")
    seen = replay(adapter, data)
    who = Identity(job_id, run_id, adapter.type, runtime)
    plans = {
        record.id: record.entry for record in seen.records if isinstance(record, ReplaceRecord)
    }
    told = in_last_state(whole_entries(seen.records), plans)
    events = tuple(Steps(who, milliseconds(REPLAY_TS)).events(told))
    lenient = _claude_code_output(text) if runtime == _CLAUDE_CODE else ""
    return ParsedOutput(events, lenient or _final_text(seen, text))


def _final_text(seen: Replay, text: str) -> str:
    told = seen.result.summary if seen.coverage.understood else None
    return told if told and told.strip() else text.strip()


def _claude_code_output(text: str) -> str:
    """The last result or output line, and the lines after it that are no JSON."""
    output = ""
    for line in map(str.strip, text.split("\n")):
        if not line:
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            output = f"{output}\n{line}" if output else line
            continue
        if isinstance(event, dict) and event.get("type") in ("result", "output"):
            output = _told(event)
    return output.strip()


def _told(event: dict[str, Any]) -> str:
    for name in ("content", "text", "result"):
        value = event.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
