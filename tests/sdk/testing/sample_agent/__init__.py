"""A small structured runtime that exists for the tests of the SDK's testing kit only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from binderclip.sdk import (
    Assistant,
    Call,
    CliAdapter,
    CliConfig,
    Command,
    Entry,
    Failure,
    Field,
    Init,
    JsonParser,
    Secret,
    Thinking,
    ToolCall,
    ToolResult,
    as_string,
    dangerous,
    parse_object,
)
from binderclip.sdk.usage import count, from_inclusive


class SampleConfig(CliConfig):
    api_secret: Secret | None = Field(None, description="A secret that goes to the environment.")
    skip_permissions: bool = dangerous(default=False, description="Act without asking.")


class SampleParser(JsonParser):
    def parse_event(self, event: dict[str, Any], ts: str) -> Sequence[Entry] | None:
        handler = getattr(self, f"_on_{event.get('type')}", None)
        return None if handler is None else handler(event, ts)

    def parse_stderr(self, line: str, ts: str) -> Sequence[Entry] | None:
        self.facts.unknown_session |= line.startswith("No session ")
        return None

    def _on_begin(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        self.facts.session_id = as_string(event.get("session")) or None
        self.facts.model = as_string(event.get("model")) or None
        return [Init(ts=ts, model=self.facts.model or "", session_id=self.facts.session_id or "")]

    def _on_say(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        text = as_string(event.get("text"))
        self.facts.final_text = text
        return [Assistant(ts=ts, text=text)]

    def _on_piece(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        return [Thinking(ts=ts, text=as_string(event.get("text")), delta=True)]

    def _on_call(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        made = as_string(event.get("id")) or None
        name = as_string(event.get("name"))
        return [ToolCall(ts=ts, name=name, input=parse_object(event.get("args")), tool_use_id=made)]

    def _on_answer(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        made = as_string(event.get("id"))
        return [
            ToolResult(ts=ts, tool_use_id=made, content=as_string(event.get("out")), is_error=False)
        ]

    def _on_end(self, event: dict[str, Any], ts: str) -> Sequence[Entry]:
        if event.get("error"):
            self.facts.ended = "failure"
            self.facts.failure = Failure("upstream", as_string(event.get("error"), "failed"))
            return []
        self.facts.ended = "success"
        tokens = parse_object(event.get("tokens"))
        self.facts.usage = from_inclusive(
            input_tokens=count(tokens.get("in")),
            cached=count(tokens.get("cached")),
            output=count(tokens.get("out")),
        )
        return []


class SampleAgent(CliAdapter):
    """A runtime for tests."""

    Config = SampleConfig

    def create_parser(self) -> SampleParser:
        return SampleParser()

    def command(self, call: Call) -> Command:
        argv = [call.config.command or self.manifest.command, "--json"]
        if call.session:
            argv += ["--resume", call.session["sessionId"]]
        env = {}
        if call.config.api_secret:
            env["SAMPLE_SECRET"] = call.config.api_secret.get_secret_value()
        return Command([*argv, *call.config.extra_args], env=env, stdin=call.prompt)


def create_adapter() -> SampleAgent:
    return SampleAgent()
