"""An adapter for the accounting agent that can die where a test tells it to.

It kills its own process at the point that the file `die-at` beside the agent's account names,
once: the file is removed first.
"""

import os
import signal
import sys
from pathlib import Path

from binderclip.sdk import (
    Assistant,
    CliAdapter,
    CliConfig,
    Command,
    JsonParser,
    Manifest,
)

AGENT = Path(__file__).with_name("agent.py")


class Config(CliConfig):
    place: str
    lines: int = 200
    gates: int = 1


class CountingParser(JsonParser):
    def parse_event(self, event, ts):
        if event.get("done"):
            self.facts.ended = "success"
            self.facts.final_text = "done"
            return ()
        return (Assistant(ts=ts, text=str(event["n"])),)


class Counting(CliAdapter):
    manifest = Manifest(id="counting", label="Counting", command=sys.executable)
    Config = Config

    def command(self, call):
        config = call.config
        die(config.place, "command")
        words = (str(AGENT), config.place, str(config.lines), str(config.gates))
        return Command((sys.executable, "-S", *words))

    def create_parser(self):
        return CountingParser()

    def conclude(self, outcome):
        die(outcome.request.config["place"], "conclude")
        return super().conclude(outcome)


def die(place: str, point: str) -> None:
    order = Path(place) / "die-at"
    if order.exists() and order.read_text() == point:
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def create_adapter():
    return Counting()
