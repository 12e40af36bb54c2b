"""An adapter for tests: its agent tells a story, a file whose lines are entries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from binderclip.sdk import (
    AdapterConfig,
    Call,
    CliAdapter,
    Command,
    Entry,
    Field,
    Init,
    Manifest,
    Parser,
    Result,
    Usage,
)

_decode = msgspec.json.Decoder(Entry).decode
_VOICE = Path(__file__).with_name("voice.py")


class TellerConfig(AdapterConfig):
    file: str = Field(description="The story.")


class TellerParser(Parser):
    def parse_line(self, line: str, ts: str) -> Sequence[Entry] | None:
        try:
            entry: Entry = msgspec.structs.replace(_decode(line), ts=ts)
        except msgspec.DecodeError:
            return None
        if isinstance(entry, Init):
            self.facts.model, self.facts.session_id = entry.model, entry.session_id
        if isinstance(entry, Result):
            self._end(entry)
        return [entry]

    def _end(self, entry: Result) -> None:
        self.facts.ended = "failure" if entry.is_error else "success"
        self.facts.final_text, self.facts.cost_usd = entry.text, entry.cost_usd
        self.facts.usage = Usage(
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            cached_input_tokens=entry.cached_tokens,
        )


class TellerAdapter(CliAdapter):
    """Prints entries that somebody else wrote."""

    manifest = Manifest(id="story_teller", label="Story teller", command=sys.executable)
    Config = TellerConfig

    def create_parser(self) -> Parser:
        return TellerParser()

    def command(self, call: Call) -> Command:
        return Command([sys.executable, str(_VOICE), call.config.file])


def create_adapter() -> TellerAdapter:
    return TellerAdapter()
