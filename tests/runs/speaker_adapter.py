"""The adapter of `speaker.py`, a runtime that tells its usage step by step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from binderclip.sdk import (
    Assistant,
    Capabilities,
    CliAdapter,
    CliConfig,
    Command,
    JsonParser,
    Manifest,
    Usage,
)

PROGRAM = Path(__file__).with_name("speaker.py")


class Config(CliConfig):
    place: str
    steps: int = 1
    words: str = ""


class SpeakerParser(JsonParser):
    def parse_event(self, event: dict[str, Any], ts: str) -> Any:
        facts = self.facts
        facts.session_id = event.get("session", facts.session_id)
        if "step" in event:
            spent = event["step"]
            facts.usage = Usage(input_tokens=0, output_tokens=100 * spent)
            facts.cost_usd = 0.01 * spent
        if event.get("done"):
            facts.ended, facts.final_text = "success", event["text"]
        return (Assistant(ts=ts, text=event["text"]),)


class Speaker(CliAdapter):
    manifest = Manifest(
        id="speaker",
        label="Speaker",
        command=sys.executable,
        usage_told="step",
        capabilities=Capabilities(supports_local_agent_jwt=True, supports_instructions_bundle=True),
    )
    Config = Config

    def command(self, call: Any) -> Command:
        session = (call.session or {}).get("sessionId", "")
        words = (str(PROGRAM), call.config.place, str(call.config.steps), session)
        return Command((sys.executable, "-S", *words), stdin=call.prompt)

    def create_parser(self) -> SpeakerParser:
        return SpeakerParser()


def create_adapter() -> Speaker:
    return Speaker()
