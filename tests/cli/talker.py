"""An adapter with sessions: it says which one it was given, and names one of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from binderclip.sdk import (
    Assistant,
    Call,
    CliAdapter,
    CliConfig,
    Command,
    Entry,
    Init,
    JsonParser,
    Manifest,
)

SCRIPT = """
import json, sys
given = sys.argv[1]
print(json.dumps({"type": "init", "session": given or "talk-1"}))
print(json.dumps({"type": "say", "text": f"session {given}" if given else "no session"}))
"""


class TalkerParser(JsonParser):
    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        if event["type"] == "init":
            self.facts.session_id = event["session"]
            return (Init(ts=ts, model="m", session_id=event["session"]),)
        self.facts.final_text = event["text"]
        self.facts.ended = "success"
        return (Assistant(ts=ts, text=event["text"]),)


class Talker(CliAdapter):
    """Talks."""

    manifest = Manifest(id="talker", label="Talker", command=sys.executable)
    Config = CliConfig

    def command(self, call: Call) -> Command:
        session = (call.session or {}).get("sessionId", "")
        return Command((sys.executable, "-c", SCRIPT, session))

    def create_parser(self) -> TalkerParser:
        return TalkerParser()


def create_adapter() -> Talker:
    return Talker()
