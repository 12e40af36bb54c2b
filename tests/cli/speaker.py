"""An adapter for tests: its agent prints a file whose lines are entries."""

from __future__ import annotations

from collections.abc import Sequence

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


class SpeakerConfig(AdapterConfig):
    file: str = Field(description="What the agent prints.")


class SpeakerParser(Parser):
    def parse_line(self, line: str, ts: str) -> Sequence[Entry] | None:
        try:
            entry: Entry = _decode(line)
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


class SpeakerAdapter(CliAdapter):
    """Prints entries that somebody else wrote."""

    manifest = Manifest(id="speaker", label="Speaker", command="cat")
    Config = SpeakerConfig

    def create_parser(self) -> Parser:
        return SpeakerParser()

    def command(self, call: Call) -> Command:
        return Command(["cat", call.config.file])


def create_adapter() -> SpeakerAdapter:
    return SpeakerAdapter()
