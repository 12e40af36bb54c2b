"""Drift from a run to its reader: a notice once, the run's own page, and doctor; and prices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

AGENT = '''
from binderclip.sdk import *

class Reader(JsonParser):
    def parse_event(self, event, ts):
        self.facts.ended = "success"
        self.facts.model = "vendor/model-1"
        self.facts.usage = Usage(input_tokens=1000, cached_input_tokens=0, output_tokens=10)
        return ()

class Dancer(CliAdapter):
    """Prints one event."""
    def create_parser(self):
        return Reader()
    def command(self, call):
        return Command(argv=("sh", "-c", "echo '" + call.prompt + "'"))

def create_adapter():
    return Dancer()
'''


@pytest.fixture
def dancer(tmp_path: Path) -> str:
    folder = tmp_path / "dancer"
    folder.mkdir()
    (folder / "__init__.py").write_text(AGENT)
    (folder / "adapter.toml").write_text('id = "dancer"\nlabel = "Dancer"\ncommand = "sh"\n')
    (folder / "shapes.json").write_text(json.dumps({"say": ["type", "text"]}))
    return str(folder)


def test_a_new_event_is_told_once_and_stays_with_its_runs(cli: Cli, dancer: str) -> None:
    """A whole new event type or field is recorded once per version and shown."""
    known = cli.json_lines("run", "-a", dancer, "--json", '{"type":"say","text":"hi"}')
    assert not [line for line in known if line["type"] == "notice"]
    first = cli.json_lines("run", "-a", dancer, "--json", '{"type":"dance","steps":3}')
    (notice,) = [line["text"] for line in first if line["type"] == "notice"]
    assert "event dance" in notice and "binderclip record" in notice
    again = cli.json_lines("run", "-a", dancer, "--json", '{"type":"dance","steps":3}')
    assert not [line for line in again if line["type"] == "notice"]
    assert again[-1]["result"]["resultJson"]["newEvents"] == ["event dance"]
    assert "event dance" in cli("runs", "show", cli.newest()[-8:]).stdout
    reports = json.loads(cli("doctor", "--adapter", dancer, "--json").stdout)
    (check,) = [one for one in reports[-1]["checks"] if one["code"] == "drift"]
    assert check["level"] == "warn" and "event dance" in check["message"]
    assert "binderclip record" in check["hint"]


def test_a_cost_comes_from_the_table_where_the_runtime_tells_none(cli: Cli, dancer: str) -> None:
    """D10: with the row's source and date beside it; unknown without a row."""
    words = ("run", "-a", dancer, "--json", '{"type":"say"}')
    assert cli.json_lines(*words)[-1]["result"]["costUsd"] is None
    table = cli.home.path / "prices.toml"
    row = 'model = "model-1"\ninput = 2\noutput = 10\nsource = "a page"\ndate = 2026-01-02\n'
    table.write_text(f"[[price]]\n{row}")
    result = cli.json_lines(*words)[-1]["result"]
    assert result["costUsd"] == pytest.approx(0.0021)
    origin = {"model": "model-1", "source": "a page", "date": "2026-01-02"}
    assert result["resultJson"]["costFrom"] == origin
    table.write_text("[[price]]\n")
    lines = cli.json_lines(*words)
    assert any("prices.toml" in line.get("text", "") for line in lines)
    assert lines[-1]["result"]["costUsd"] is None
