"""`binderclip` in front of a person: colours, status line, Ctrl-C, narrow windows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.cli.layout import cells
from binderclip.store.runfile import read_outcome
from tests.cli.conftest import SPEAKER, Cli
from tests.cli.screen import Person, screen_of

TS = "2026-01-01T00:00:00.000Z"
SPINNER = "[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
STUBBORN = "trap '' TERM; echo ready; while :; do read line < gate; done"


@pytest.fixture
def gate(cli: Cli) -> Path:
    path = cli.cwd / "gate"
    os.mkfifo(path)
    return path


def shell(cli: Cli, script: str, *words: str) -> list[str]:
    return cli.argv("run", "-a", "process", "--cwd", str(cli.cwd), *words, "--", "sh", "-c", script)


def test_the_emulated_screen_obeys_what_we_print() -> None:
    assert screen_of("ab\rc\n\x1b[2Kx\r\x1b[2K\x1b[A\x1b[3Gd") == ["cbd", ""]


def test_the_status_line_spins_while_it_is_quiet_and_leaves_no_trace(cli: Cli, gate: Path) -> None:
    """T6: spinner and elapsed time while quiet, erased before each print."""
    script = "echo first; read line < gate; echo second"
    with Person(shell(cli, script), cli.env) as person:
        person.sees(f"{SPINNER} running · [0-9]")
        gate.write_text("go\n")
        assert person.leaves() == 0
    shown = [COLOUR.sub("", line) for line in person.screen]
    assert not re.search(SPINNER, "".join(shown))
    at = shown.index("◆ first")
    assert shown[at + 1 : at + 3] == ["  second", ""]


def test_the_status_line_names_the_tool_that_runs(cli: Cli, gate: Path) -> None:
    """Liveness with reasons: what it waits for, and since when."""
    call = {"kind": "tool_call", "ts": TS, "name": "Bash", "input": {}, "toolUseId": "a"}
    source = cli.cwd / "source"
    os.mkfifo(source)
    argv = cli.argv("run", "-a", SPEAKER, "-c", f"file={source}")
    with Person(argv, cli.env) as person, source.open("w") as agent:
        agent.write(json.dumps(call) + "\n")
        agent.flush()
        person.sees("Bash running [0-9]+ h")


def test_text_that_stopped_in_the_middle_of_a_line_goes_on_there(cli: Cli) -> None:
    """Streaming: the status line stands below an open line and gives it back."""
    delta = '{"kind":"assistant","ts":"2026-01-01T00:00:00Z","delta":true,"text":"%s"}\n'
    source = cli.cwd / "source"
    os.mkfifo(source)
    argv = cli.argv("run", "-a", SPEAKER, "-c", f"file={source}")
    with Person(argv, cli.env) as person, source.open("w") as agent:
        agent.write(delta % "one two thr")
        agent.flush()
        person.sees("thr")
        person.sees(SPINNER)
        agent.write(delta % "ee four")
        agent.close()
        person.leaves()
    assert "◆ one two three four" in [COLOUR.sub("", line) for line in person.screen]


def test_ctrl_c_once_asks_the_agent_to_end(cli: Cli, gate: Path) -> None:
    """A11: cancel with grace; exit code 130."""
    script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do read line < gate; done"
    with Person(shell(cli, script), cli.env) as person:
        person.sees("ready")
        person.press_ctrl_c()
        assert person.leaves() == 130
    assert "cancelling, Ctrl-C again to kill" in person.output
    assert "bye" in person.output
    assert "cancelled in" in person.output
    outcome = read_outcome(cli.home, cli.newest())
    assert outcome is not None
    assert outcome.state == "cancelled"


def test_ctrl_c_twice_kills_an_agent_that_does_not_listen(cli: Cli, gate: Path) -> None:
    """A11: nothing is left alive, however stubborn."""
    with Person(shell(cli, STUBBORN, "-c", "graceSec=1000"), cli.env) as person:
        person.sees("ready")
        person.press_ctrl_c()
        person.sees("again to kill")
        person.press_ctrl_c()
        person.sees("killing")
        assert person.leaves() == 130
    assert "SIGKILL" in person.output


def test_ctrl_c_ends_watching_and_not_the_run(cli: Cli, gate: Path) -> None:
    """Design 6: `watch` only looks."""
    script = "echo first; read line < gate; echo second"
    argv = ("run", "-a", "process", "--detach", "--", "sh", "-c", script)
    run = cli(*argv).stdout.strip()
    with Person(cli.argv("watch", run), cli.env) as person:
        person.sees("first")
        person.press_ctrl_c()
        assert person.leaves() == 130
    gate.write_text("go\n")
    assert "second" in cli("watch", run).stdout


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_turned_off(cli: Cli, name: str, value: str) -> None:
    """NO_COLOR, and terminals that know none."""
    with Person(shell(cli, "echo hi; exit 3"), cli.env | {name: value}) as person:
        assert person.leaves() == 1
    assert not COLOUR.search(person.output)
    assert "◆ hi" in person.output


def test_colours_are_there_on_a_terminal(cli: Cli) -> None:
    with Person(shell(cli, "echo hi; exit 3"), cli.env) as person:
        person.leaves()
    assert "\x1b[32m◆\x1b[0m hi" in person.output
    assert "\x1b[31;1mfailed" in person.output


def test_a_narrow_terminal_is_wrapped_at_words(cli: Cli) -> None:
    text = "the quick brown fox jumps over the lazy dog and goes on and on"
    with Person(shell(cli, f"echo {text}"), cli.env, columns=40) as person:
        person.leaves()
    shown = [COLOUR.sub("", line) for line in person.screen]
    at = next(at for at, line in enumerate(shown) if line.startswith("◆"))
    assert shown[at : at + 2] == [
        "◆ the quick brown fox jumps over the",
        "  lazy dog and goes on and on",
    ]
    assert all(cells(line) <= 40 for line in shown if "log  " not in line and "more  " not in line)


def test_the_agent_cannot_steer_the_terminal(cli: Cli) -> None:
    """T6: not on stdout, not on stderr, not by the raw log."""
    evil = r"printf '\033]0;pwned\007\033[2Jevil\n' | tee /dev/stderr"
    with Person(shell(cli, evil), cli.env) as person:
        person.leaves()
    with Person(cli.argv("runs", "log"), cli.env) as reader:
        reader.leaves()
    for seen in (person.output, reader.output):
        assert "evil" in seen
        assert "\x1b]" not in seen
        assert "\x1b[2J" not in seen


def test_a_list_fits_the_terminal(cli: Cli, said: Callable[..., str]) -> None:
    cli("run", "-a", "process", "-c", "command=cat", "a long prompt " * 20)
    with Person(cli.argv("runs"), cli.env, columns=90) as person:
        assert person.leaves() == 0
    assert all(cells(COLOUR.sub("", line)) <= 90 for line in person.screen)
    assert "\x1b[32msucceeded" in person.output
