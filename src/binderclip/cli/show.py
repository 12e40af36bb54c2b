"""Shows a run while it happens, as text for people or as JSON Lines for programs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from binderclip.cli.cards import painted_lines
from binderclip.cli.ending import Ending, closing
from binderclip.cli.layout import Look, wrapped
from binderclip.cli.render import Renderer
from binderclip.cli.safe import safe_json, safe_line
from binderclip.cli.terminal import QUIET_SECONDS, Terminal, Ticker
from binderclip.cli.words import duration, moment
from binderclip.contract.entry import Coverage, Record
from binderclip.contract.ids import short
from binderclip.contract.run import ExecutionResult, StateChange
from binderclip.runs.driver import Listener
from binderclip.store.home import Home

_SILENT_SECONDS = 3.0
RECORDING = "binderclip.cli.recording"


class Show(Listener):
    """What every way of showing a run has; `attempts` are the directories it went through."""

    def __init__(self, run_id: str, terminal: Terminal) -> None:
        self.run_id = run_id
        self.terminal = terminal
        self.attempts: list[Path] = []
        self.on_attempt: Callable[[], None] = lambda: None

    def __enter__(self) -> Show:
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop whatever draws by itself."""

    def attempt(self, directory: Path) -> None:
        if directory not in self.attempts:
            self.attempts.append(directory)
        self.on_attempt()
        # Now, while the agent works: neither its start nor its end waits for what this needs.
        import_module(RECORDING)

    def finalized(self, home: Home, run_id: str) -> None:
        import_module(RECORDING).record(home, run_id)

    def open(self, what: str) -> None:
        """Say what begins."""

    def end(self, ending: Ending, coverage: Coverage | None) -> None:
        """Say how it ended."""


class TextShow(Show):
    """For people: blocks, cards, and a status line while it is quiet."""

    def __init__(
        self, run_id: str, terminal: Terminal, *, debug: bool = False, full: bool = False
    ) -> None:
        super().__init__(run_id, terminal)
        self.look = Look(terminal.colour, terminal.width, debug, full, short(run_id))
        self.renderer = Renderer(self.look)
        self._began = self._heard = time.time()
        self._word = "starting"
        # The status line's thread and Ctrl-C draw as well as the driver.
        self._drawing = threading.RLock()
        self._ticker = Ticker(terminal, self._waiting_for)

    def __enter__(self) -> TextShow:
        self._ticker.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ticker.__exit__()

    def open(self, what: str) -> None:
        text = wrapped(f"{what} · run {self.look.run}", self.look.width)
        self.terminal.write(painted_lines(text, self.look, "dim") + "\n\n")

    def began(self, at: float) -> None:
        """The run is older than this look at it."""
        self._began = at

    def state(self, change: StateChange) -> None:
        self._word = change.state

    def attempt(self, directory: Path) -> None:
        # Whoever watches is not told of states, but an attempt runs.
        self._word = "running"
        super().attempt(directory)

    def records(self, records: Sequence[Record]) -> None:
        self._heard = time.time()
        with self._drawing:
            self.look.width = self.terminal.width
            self.terminal.write(self.renderer.render(records), self.renderer.column)

    def notice(self, text: str) -> None:
        with self._drawing:
            self.terminal.write(self.renderer.notice(text))

    def end(self, ending: Ending, coverage: Coverage | None) -> None:
        unknown = 0 if self.look.debug else (coverage.unknown if coverage else 0)
        ending = Ending(
            ending.state, ending.result, ending.seconds, ending.log, unknown, ending.run
        )
        self.look.width = self.terminal.width
        drawn = self.renderer.finish()
        # One blank line before the end, also where nothing came before it.
        space = "\n" if self.renderer.started else ""
        self.terminal.write(drawn + space + closing(ending, self.look))

    def _waiting_for(self) -> str:
        """What the status line says: the tool that runs, or who is silent, and for how long."""
        now = time.time()
        with self._drawing:
            if now - self._heard > QUIET_SECONDS:
                self.terminal.write(self.renderer.pause(), self.renderer.column)
            running = list(self.renderer.running.values())
        elapsed = duration(now - self._began)
        if self._word not in ("starting", "running"):
            return f"{self._word} · {elapsed}"
        if running:
            name, since = running[-1]
            more = f" and {len(running) - 1} more" if len(running) > 1 else ""
            took = max(0.0, now - (moment(since) or now))
            return f"{name}{more} running {duration(took)} · {elapsed}"
        quiet = now - self._heard
        if quiet < _SILENT_SECONDS:
            return f"{self._word} · {elapsed}"
        who = "model silent" if self.renderer.model else "no output for"
        return f"{who} {duration(quiet)} · {elapsed}"


class JsonShow(Show):
    """For programs: one JSON object a line, the result last."""

    def __init__(self, run_id: str, terminal: Terminal) -> None:
        super().__init__(run_id, terminal)
        self._encoder = msgspec.json.Encoder()

    def state(self, change: StateChange) -> None:
        self._line({"type": "status", "runId": self.run_id, **status_fields(change)})

    def records(self, records: Sequence[Record]) -> None:
        data = self._encoder.encode_lines(list(records))
        if self.terminal.tty:
            self.terminal.write(safe_json(data.decode()))
        else:
            self.terminal.write_bytes(data)

    def notice(self, text: str) -> None:
        self._line({"type": "notice", "text": text})

    def end(self, ending: Ending, coverage: Coverage | None) -> None:
        self._line(result_line(ending.result, coverage))

    def _line(self, value: dict[str, Any]) -> None:
        text = self._encoder.encode(value).decode() + "\n"
        self.terminal.write(safe_json(text) if self.terminal.tty else text)


def status_fields(change: StateChange) -> dict[str, Any]:
    """A change of state as it stands in a status line."""
    return {"status": change.state, "at": change.at, "reason": change.reason}


def result_line(result: ExecutionResult | None, coverage: Coverage | None) -> dict[str, Any]:
    """The last line: every field of the result, so that unknown is null and never missing."""
    told: dict[str, Any] | None = None
    if result is not None:
        told = {
            field.encode_name: msgspec.to_builtins(getattr(result, field.name))
            for field in msgspec.structs.fields(result)
        }
    counts = coverage or Coverage(lines=0, understood=0, unknown=0)
    return {"type": "result", "result": told, "coverage": msgspec.to_builtins(counts)}


def show_for(run_id: str, terminal: Terminal, *, as_json: bool, debug: bool) -> Show:
    """The way to show a run that was asked for."""
    return JsonShow(run_id, terminal) if as_json else TextShow(run_id, terminal, debug=debug)


def heading(adapter: str, cwd: str) -> str:
    """What begins, in one line."""
    return f"{safe_line(adapter)} in {safe_line(cwd)}"
