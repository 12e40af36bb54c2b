"""Making one run from the words of a command line, driving it, showing it in this terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from binderclip.cli import INTERRUPTED
from binderclip.cli.ending import ending_of, exit_code
from binderclip.cli.interrupt import interruptible
from binderclip.cli.show import Show, TextShow, heading, show_for
from binderclip.cli.terminal import Terminal
from binderclip.cli.words import homely
from binderclip.contract.errors import BadWorkingDirectory
from binderclip.contract.ids import short
from binderclip.contract.run import StateChange
from binderclip.contract.session import ResumeDecision
from binderclip.plugins.registry import load_adapter
from binderclip.runs import lifecycle
from binderclip.runs.driver import Drive, own_environment
from binderclip.runs.wake import local_order
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.config import config_from_assignments
from binderclip.sdk.fields import options_of
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome

if TYPE_CHECKING:
    from binderclip.cli.continuing import Origin
    from binderclip.supervisor.spare import Spare

_FRESH = ResumeDecision(action="fresh", reason="started without --continue")


class Wish(msgspec.Struct, frozen=True):
    """What was asked for on the command line."""

    adapter: str | None
    cwd: str | None
    config: tuple[str, ...]
    resume: bool
    continue_job: str | None
    resume_from: str | None
    timeout: float | None
    prompt: tuple[str, ...]
    words: tuple[str, ...]
    """Those after `--`."""


def drive_for(wish: Wish, spare: Spare | None = None) -> Drive:
    """The run that was asked for, ready to start."""
    home = Home.from_env().ensure()
    origin = _origin(home, wish)
    named = wish.adapter or (origin.adapter if origin else None)
    if named is None:
        raise click.UsageError("Missing option '--adapter' / '-a'.")
    adapter = load_adapter(named)
    values = config_from_assignments(adapter.Config, wish.config)
    if wish.timeout is not None:
        values["timeoutSec"] = wish.timeout
    said = _with_words(adapter, values, wish.prompt, wish.words)
    place = _directory(wish.cwd or (origin.cwd if origin else None))
    working = str(values.get("cwd") or place)
    session, job_id = _going_on(home, adapter, working, origin, wish.resume)
    order, request = local_order(
        adapter,
        cwd=place,
        prompt=said,
        config=values,
        session=session,
        now=time.time(),
        job_id=job_id,
    )
    return Drive(home, order, adapter, request, host_env=own_environment(), nursery=spare)


def detached(drive: Drive, *, as_json: bool) -> int:
    """Start a run and leave it; the exit code."""
    show = show_for(drive.run_id, Terminal(), as_json=as_json, debug=False)
    drive.listener = show
    return left(drive, show, lifecycle.detach(drive))


def followed(drive: Drive, *, as_json: bool, debug: bool) -> int:
    """Start a run and show it to its end; the exit code."""
    show = show_for(drive.run_id, Terminal(), as_json=as_json, debug=debug)
    drive.listener = show
    return shown(drive, show, lambda: lifecycle.run(drive))


def left(drive: Drive, show: Show, outcome: RunOutcome | None) -> int:
    """Say that the agent works on, or how a run ended that could not start; the exit code."""
    if outcome is not None:
        _end(drive, show, outcome)
        return exit_code(outcome.state)
    if isinstance(show, TextShow):
        run = short(drive.run_id)
        show.terminal.write(f"{run}\n")
        click.echo(f"The agent works on: binderclip watch {run}", err=True)
    else:
        show.state(StateChange(state="running", at=drive.now(), reason="detached", actor="cli"))
    return 0


def shown(drive: Drive, show: Show, run: Callable[[], RunOutcome]) -> int:
    """Drive a run that is shown in this terminal; the exit code."""
    with interruptible(show) as interrupts, show:
        show.open(heading(drive.adapter.type, homely(drive.order.cwd)))
        if drive.order.session_reason != _FRESH.reason:
            show.notice(f"session: {drive.order.session_reason}")
        outcome = run()
    _end(drive, show, outcome)
    if interrupts.count and outcome.state != "succeeded":
        return INTERRUPTED
    return exit_code(outcome.state)


def _end(drive: Drive, show: Show, outcome: RunOutcome) -> None:
    attempt = show.attempts[-1] if show.attempts else None
    show.end(ending_of(drive.order, outcome, attempt), outcome.coverage)


def _with_words(
    adapter: Adapter, values: dict[str, Any], prompt: tuple[str, ...], words: tuple[str, ...]
) -> str | None:
    """Put words after `--` where the adapter takes a command, and read the prompt."""
    if words and {"command", "args"} <= options_of(adapter.Config).keys():
        values.setdefault("command", words[0])
        values.setdefault("args", list(words[1:]))
        words = ()
    return prompt_of((*prompt, *words))


def prompt_of(prompt: tuple[str, ...]) -> str | None:
    """What the agent shall do; `-` alone is read from standard input."""
    if prompt == ("-",):
        return sys.stdin.read() or None
    return " ".join(prompt) or None


def _directory(cwd: str | None) -> str:
    path = Path(cwd or ".").expanduser()
    if not path.is_dir():
        raise BadWorkingDirectory(
            f"{path} is not a directory.", hint="--cwd names an existing one."
        )
    return str(path.absolute())


def _origin(home: Home, wish: Wish) -> Origin | None:
    if not wish.continue_job and not wish.resume_from:
        return None
    from binderclip.cli.continuing import origin_of

    return origin_of(home, wish.continue_job, wish.resume_from)


def _going_on(
    home: Home, adapter: Adapter, cwd: str, origin: Origin | None, resume: bool
) -> tuple[ResumeDecision, str | None]:
    """The session to resume and the job to join."""
    if origin is None and not resume:
        return _FRESH, None
    # Only now: looking for sessions needs the database, and a fresh run starts without it.
    from binderclip.cli.continuing import from_directory, from_origin

    if origin is None:
        return from_directory(home, adapter, cwd)
    return from_origin(origin, adapter, cwd), origin.checkpoint.job_id
