"""What is kept of one run, printed: its record, its bytes, its transcript."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from binderclip.cli import history
from binderclip.cli.ending import STATES, ending_of
from binderclip.cli.layout import Colour, Look, wrapped
from binderclip.cli.listing import print_json
from binderclip.cli.safe import safe, safe_line
from binderclip.cli.show import JsonShow, TextShow
from binderclip.cli.terminal import Terminal
from binderclip.cli.words import between, duration, homely, money, tokens
from binderclip.contract.entry import Record, Stream
from binderclip.contract.errors import RunNotFound
from binderclip.contract.ids import short
from binderclip.contract.run import RunView, StateChange
from binderclip.plugins.registry import load_adapter
from binderclip.runs.retell import retell
from binderclip.store.fileview import file_view
from binderclip.store.home import Home
from binderclip.store.runfile import ORDER, read_order, read_outcome
from binderclip.store.runlog import AttemptLog
from binderclip.store.transcripts import NAME, read_transcript
from binderclip.store.watch import shared
from binderclip.supervisor.launch import read_exit

_SAFETY_SECONDS = 1.0
_RECORDS_AT_ONCE = 2000
_NARROW = 60


def print_run(home: Home, run_id: str, *, as_json: bool) -> None:
    """Everything that is known about one run, and its history."""
    view, changes = _known(home, run_id)
    if as_json:
        print_json({**msgspec.to_builtins(view), "history": msgspec.to_builtins(changes)})
        return
    terminal = Terminal()
    look = Look(colour=terminal.colour, width=terminal.width)
    name, colour = STATES[view.status]
    out = f"{look.paint('●', colour)} run {look.paint(short(run_id), 'bold')}  "
    out += look.paint(name, colour) + "\n\n"
    out += "".join(_fact(key, text, look) for key, text in _facts(view) if text)
    out += _told("error", view.error_message, look, "red") + _told("summary", view.summary, look)
    terminal.write(out + _history(changes, look))


def _known(home: Home, run_id: str) -> tuple[RunView, Sequence[StateChange]]:
    """A run and its history: by its files, or by its row as long as it has none."""
    if not (home.run_dir(run_id) / ORDER).exists():
        from binderclip.cli.queued import queued_run

        return queued_run(home, run_id)
    outcome = read_outcome(home, run_id)
    return file_view(home, run_id), outcome.history if outcome else ()


def _facts(view: RunView) -> Iterator[tuple[str, str]]:
    took = between(view.created_at, view.ended_at)
    yield "id", view.id
    yield "adapter", view.adapter_type
    yield "directory", homely(view.cwd)
    yield "prompt", view.prompt or ""
    yield "woken by", ", ".join(view.wake_reasons)
    yield "waits", view.waiting_for or ""
    yield "created", view.created_at
    yield "ended", view.ended_at or ""
    yield "took", duration(took) if took is not None else ""
    yield "attempts", str(view.attempts)
    yield "model", " · ".join(part for part in (view.provider, view.model) if part)
    yield "tokens", tokens(view.usage)
    yield "cost", money(view.cost_usd) if view.usage or view.cost_usd is not None else ""
    yield "session", " · ".join(part for part in (view.session_id, view.session_reason) if part)
    if view.result is not None and view.result.exit_code is not None:
        yield "exit code", str(view.result.exit_code)
    yield "signal", (view.result.signal or "") if view.result else ""
    yield "error code", view.error_code or ""
    if view.coverage is not None:
        yield "coverage", f"{view.coverage.understood:,} of {view.coverage.lines:,} lines"
    told = (view.result.result_json if view.result else None) or {}
    if told.get("newEvents"):
        yield "new to us", f"{', '.join(told['newEvents'])}; `binderclip record` keeps it"
    yield "files", homely(view.directory)


def _fact(key: str, text: str, look: Look) -> str:
    indent = " " * 12
    return f"{look.paint(f'{key:<12}', 'dim')}{wrapped(safe(text), look.width, indent)}\n"


def _told(title: str, text: str | None, look: Look, colour: Colour = "plain") -> str:
    if not text:
        return ""
    lines = wrapped(safe(text), look.width, "  ").split("\n")
    body = "\n".join(look.paint(line, colour) for line in lines)
    return f"\n{look.paint(title, 'dim')}\n  {body}\n"


def _history(changes: Sequence[StateChange], look: Look) -> str:
    if not changes:
        return ""
    return f"\n{look.paint('history', 'dim')}\n" + "".join(_change(one, look) for one in changes)


def _change(change: StateChange, look: Look) -> str:
    name, colour = STATES[change.state]
    head = f"  {look.paint(change.at, 'dim')}  {look.paint(f'{name:<10}', colour)}"
    # A narrow terminal has the reason on a line of its own.
    if look.width is not None and look.width < _NARROW:
        return f"{head}\n    {wrapped(safe_line(change.reason), look.width, '    ')}\n"
    return f"{head}  {wrapped(safe_line(change.reason), look.width, ' ' * 40)}\n"


def print_log(
    home: Home, run_id: str, stream: Stream, attempt: int | None, *, follow: bool
) -> None:
    """The exact bytes of a log; a terminal gets them made safe."""
    directory = _attempt_dir(home, run_id, attempt)
    terminal = Terminal()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in _pieces(directory, stream, follow=follow):
        if terminal.gone:
            return
        if terminal.tty:
            terminal.write(safe(decoder.decode(piece)))
        else:
            terminal.write_bytes(piece)


def _attempt_dir(home: Home, run_id: str, attempt: int | None) -> Path:
    numbers = home.attempts(run_id)
    number = attempt if attempt is not None else (numbers[-1] if numbers else None)
    if number is None or number not in numbers:
        wanted = "no attempt" if number is None else f"no attempt {number}"
        raise RunNotFound(f"Run {short(run_id)} has {wanted}: its agent was never started.")
    return home.attempt_dir(run_id, number)


def _pieces(directory: Path, stream: Stream, *, follow: bool) -> Iterator[bytes]:
    with AttemptLog(directory) as log, shared().watch(directory, directory / "index") as watch:
        start = 0
        while True:
            # Asked first: what has ended is complete, and one more look sees all of it.
            over = not follow or read_exit(str(directory)) is not None
            while log.new_records():
                yield from log.read(stream, start, log.size(stream))
                start = log.size(stream)
            if over:
                return
            watch.wait(_SAFETY_SECONDS)


def print_transcript(home: Home, run_id: str, *, full: bool, debug: bool, as_json: bool) -> None:
    """The transcript of all attempts, and how the run ended if it is over."""
    terminal = Terminal()
    show: JsonShow | TextShow
    if as_json:
        show = JsonShow(run_id, terminal)
    else:
        show = TextShow(run_id, terminal, debug=debug, full=full)
    records = _records(home, run_id)
    while batch := list(islice(records, _RECORDS_AT_ONCE)):
        show.records(batch)
    outcome = read_outcome(home, run_id)
    if outcome is not None:
        ending = ending_of(read_order(home, run_id), outcome, history.last_attempt(home, run_id))
        show.end(ending, outcome.coverage)
    elif isinstance(show, TextShow):
        terminal.write(show.renderer.finish())


def _records(home: Home, run_id: str) -> Iterator[Record]:
    retell(home, run_id, load_adapter)
    for number in home.attempts(run_id):
        yield from read_transcript(home.attempt_dir(run_id, number) / NAME)
