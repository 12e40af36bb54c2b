"""`binderclip replay`: saved output through an adapter's parser, offline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from binderclip.cli.ending import Ending
from binderclip.cli.show import JsonShow, Show, TextShow
from binderclip.cli.terminal import Terminal
from binderclip.contract.entry import EntryRecord, Record
from binderclip.plugins.registry import load_adapter
from binderclip.runs.finalize import state_of
from binderclip.sdk.testing.replay import Replay, replay
from binderclip.sdk.values import as_string_array, parse_json

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command("replay")
@click.option("--adapter", "-a", required=True, metavar="TYPE", help="Type or path of an adapter.")
@click.option("--stderr", type=_FILE, help="What it wrote to standard error.")
@click.option("--exit-code", type=int, default=0, show_default=True, help="How it exited.")
@click.option("--signal", metavar="NAME", help="The signal that ended it, instead of an exit code.")
@click.option("--full", is_flag=True, help="Fold nothing.")
@click.option("--debug", is_flag=True, help="Also show lines that no parser understood.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead of text.")
@click.argument("stdout", type=_FILE, metavar="STDOUT_FILE")
def command(
    adapter: str,
    stderr: Path | None,
    exit_code: int,
    signal: str | None,
    full: bool,
    debug: bool,
    as_json: bool,
    stdout: Path,
) -> None:
    """Parse saved output and show what it becomes, with the result that a run would have.

    Exits 0 when it could parse, whatever the output tells about the agent's success.
    """
    replayed = replay(
        load_adapter(adapter),
        _bytes(stdout),
        _bytes(stderr) if stderr else b"",
        exit_code=exit_code,
        signal=_signal_name(signal),
        argv=_recorded_argv(stdout),
    )
    terminal = Terminal()
    if as_json:
        whole = [EntryRecord(entry=entry) for entry in replayed.entries]
        _print(JsonShow("", terminal), whole, replayed)
    else:
        _print(TextShow("", terminal, debug=debug, full=full), replayed.records, replayed)


def _print(show: Show, records: Sequence[Record], replayed: Replay) -> None:
    show.records(records)
    show.end(Ending(state_of(replayed.result), replayed.result), replayed.coverage)


def _bytes(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def _recorded_argv(stdout: Path) -> tuple[str, ...]:
    """The command line that a recording keeps beside its output."""
    if str(stdout) == "-":
        return ()
    try:
        recorded = parse_json((stdout.parent / "cmd.json").read_bytes())
    except OSError:
        return ()
    return tuple(as_string_array((recorded or {}).get("argv")))


def _signal_name(name: str | None) -> str | None:
    if name is None:
        return None
    upper = name.upper()
    return upper if upper.startswith("SIG") else f"SIG{upper}"
