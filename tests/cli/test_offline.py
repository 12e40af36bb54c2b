"""Commands that run nothing: replay, doctor, adapters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SPEAKER, Cli


def test_replay_shows_saved_output_and_its_result(cli: Cli, said: Callable[..., str]) -> None:
    """T2: replaying a log gives the same transcript."""
    file = said({"kind": "tool_call", "name": "Bash", "input": {"command": "ls"}, "toolUseId": "a"})
    out = cli("replay", "--adapter", SPEAKER, file, "--exit-code", "3").stdout
    assert out.startswith("● Bash  ls\n")
    assert "✗ failed" in out


def test_replay_prints_merged_entries_as_json(cli: Cli, said: Callable[..., str]) -> None:
    """Design 6: entries, then the result with its coverage."""
    file = said(
        {"kind": "assistant", "text": "Hel", "delta": True},
        {"kind": "assistant", "text": "lo", "delta": True},
    )
    entry, result = cli.json_lines("replay", "-a", SPEAKER, file, "--json")
    assert (entry["type"], entry["entry"]["text"]) == ("entry", "Hello")
    assert result["type"] == "result"
    assert result["coverage"] == {"lines": 2, "understood": 2, "unknown": 0}


def test_replay_of_a_resumed_session_says_whose_counts_it_shows(cli: Cli, tmp_path: Path) -> None:
    """D10: counts of a whole session are not passed off as those of one run."""
    events = [
        {"type": "thread.started", "thread_id": "01a1e090-aa0d-74b0-99cf-5f96b4da1703"},
        {"type": "turn.completed", "usage": {"input_tokens": 500, "output_tokens": 20}},
    ]
    recording = tmp_path / "stdout.txt"
    recording.write_text("".join(json.dumps(event) + "\n" for event in events))
    words = ("replay", "-a", "codex_local", str(recording), "--json")
    assert cli.json_lines(*words)[-1]["result"]["usageBasis"] == "per_run"
    argv = ["codex", "exec", "resume", "--json", events[0]["thread_id"], "-"]
    (tmp_path / "cmd.json").write_text(json.dumps({"argv": argv}))
    result = cli.json_lines(*words)[-1]["result"]
    assert (result["usageBasis"], result["usage"]["inputTokens"]) == ("session_cumulative", 500)


def test_replay_takes_signals_stderr_and_standard_input(cli: Cli, tmp_path: Path) -> None:
    stderr = tmp_path / "stderr"
    stderr.write_text("warned\n")
    words = ("replay", "-a", "process", "-", "--stderr", str(stderr), "--signal", "kill", "--json")
    lines = [json.loads(line) for line in cli(*words, given=b"said\n").stdout.splitlines()]
    assert [line["entry"]["kind"] for line in lines[:-1]] == ["assistant", "stderr"]
    assert (lines[-1]["result"]["signal"], lines[-1]["result"]["exitCode"]) == ("SIGKILL", None)


def test_replay_of_a_missing_file_is_wrong_usage(cli: Cli) -> None:
    assert "does not exist" in cli("replay", "-a", "process", "none", code=2).stderr


def test_adapters_are_listed(cli: Cli) -> None:
    """Design 6: the fields of `adapters list --json`."""
    assert "process" in cli("adapters").stdout
    views = {view["type"]: view for view in json.loads(cli("adapters", "list", "--json").stdout)}
    assert {
        "label",
        "source",
        "version",
        "state",
        "disabled",
        "models",
        "parser",
        "capabilities",
    } <= set(views["process"])
    assert views["process"]["source"] == "builtin"


def test_an_adapter_tells_when_to_use_it_and_every_field(cli: Cli) -> None:
    """A2: doc, config and capabilities."""
    out = cli("adapters", "show", "process").stdout
    for word in ("Use when", "command  text  required", "timeoutSec", "supportsSkills"):
        assert word in out
    facts = json.loads(cli("adapters", "show", "process", "--json").stdout)
    assert {"agentConfigurationDoc", "configSchema", "capabilities"} <= set(facts)
    assert "Did you mean" in cli("adapters", "show", "proces", code=2).stderr


@pytest.mark.parametrize(
    ("command", "code", "status"), [("cat", 0, "pass"), ("no-such-program", 1, "fail")]
)
def test_doctor_fails_when_the_named_adapter_cannot_run(
    cli: Cli, command: str, code: int, status: str
) -> None:
    """E1: pass, warn or fail, by the worst check."""
    words = ("doctor", "--adapter", "process", "-c", f"command={command}")
    assert "data directory  ready" in cli(*words, code=code).stdout
    reports = json.loads(cli(*words, "--json", code=code).stdout)
    assert [report["status"] for report in reports] == ["pass", status]


def test_doctor_looks_at_every_adapter_and_fails_only_for_the_home(cli: Cli) -> None:
    """E2: expected findings are no failures of the doctor."""
    reports = json.loads(cli("doctor", "--json").stdout)
    listed = [view["type"] for view in json.loads(cli("adapters", "--json").stdout)]
    assert [report["adapterType"] for report in reports] == ["data directory", *listed]
    (cli.cwd / "file").write_text("")
    broken = cli("doctor", code=1, BINDERCLIP_HOME=str(cli.cwd / "file")).stdout
    assert "data directory  cannot run here" in broken
