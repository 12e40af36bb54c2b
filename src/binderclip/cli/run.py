"""`binderclip run`: drive one run in this process, show it live, end with its exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome

if TYPE_CHECKING:
    from binderclip.cli.continuing import Origin

_FRESH = ResumeDecision(action="fresh", reason="started without --continue")


class WithCommand(click.Command):
    """Keeps the words after `--` apart: they are a command line, not a prompt."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["words"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command("run", cls=WithCommand)
@click.option("--adapter", "-a", metavar="TYPE", help="Type or path of an adapter.")
@click.option("--agent", metavar="AGENT", help="Name or id of an agent of yours, as it is set up.")
@click.option("--task", metavar="TASK", help="Work on this task, like T-12, as its assignee.")
@click.option("--cwd", metavar="DIR", help="Where the agent works; this directory if not given.")
@click.option("--config", "-c", multiple=True, metavar="KEY=VALUE", help="A field of the adapter.")
@click.option("--continue", "resume", is_flag=True, help="Resume the last session of this cwd.")
@click.option("--continue-job", metavar="JOB", help="Go on where this job ended.")
@click.option("--resume-from", metavar="CHECKPOINT", help="Go on from this point of a job.")
@click.option("--detach", is_flag=True, help="Start it, print its id, and leave it working.")
@click.option("--debug", is_flag=True, help="Also show lines that no parser understood.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead of text.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SEC", help="Stop it after this.")
@click.argument("prompt", nargs=-1)
@click.pass_context
def command(
    ctx: click.Context,
    adapter: str | None,
    agent: str | None,
    task: str | None,
    cwd: str | None,
    config: tuple[str, ...],
    resume: bool,
    continue_job: str | None,
    resume_from: str | None,
    detach: bool,
    debug: bool,
    as_json: bool,
    timeout: float | None,
    prompt: tuple[str, ...],
) -> None:
    """Run an agent now, show it live, keep everything it printed.

    PROMPT is what the agent shall do; `-` reads it from standard input. For an adapter that runs
    any command, the command follows `--`:

    \b
    binderclip run --adapter claude_local "fix the failing test"
    binderclip run --adapter process -- make test
    binderclip run --task T-12

    --agent and --task run an agent of yours by the rules of the server: one run for each task,
    the agent's limits and budget, the task's session. A run that would have to wait is refused.

    Ctrl-C asks the agent to end, a second one kills it. If this process is ended instead, the
    agent works on and `binderclip watch` shows it. Exit codes: 0 succeeded, 1 failed, 2 usage,
    124 timed out, 130 interrupted.
    """
    home = Home.from_env().ensure()
    if agent or task:
        _refuse_own_settings(ctx)
        said = _prompt((*prompt, *ctx.meta.get("words", ())))
        # Only now: a run of an adapter starts without the database.
        from binderclip.cli.staff import run_agent

        ctx.exit(run_agent(home, agent, task, said, detach=detach, as_json=as_json, debug=debug))
    origin = _origin(home, resume, continue_job, resume_from)
    named = adapter or (origin.adapter if origin else None)
    if named is None:
        raise click.UsageError("Missing option '--adapter' / '-a'.")
    loaded = load_adapter(named)
    values = config_from_assignments(loaded.Config, config)
    if timeout is not None:
        values["timeoutSec"] = timeout
    said = _with_words(loaded, values, prompt, ctx.meta.get("words", ()))
    place = _directory(cwd or (origin.cwd if origin else None))
    working = str(values.get("cwd") or place)
    session, job_id = _going_on(home, loaded, working, origin, resume)
    order, request = local_order(
        loaded,
        cwd=place,
        prompt=said,
        config=values,
        session=session,
        now=time.time(),
        job_id=job_id,
    )
    drive = Drive(home, order, loaded, request, host_env=own_environment())
    if detach:
        _detach(drive, as_json)
    ctx.exit(_show(drive, as_json=as_json, debug=debug))


def _refuse_own_settings(ctx: click.Context) -> None:
    """An agent brings its settings along; a mixture would be neither the one nor the other."""
    own = ("adapter", "cwd", "config", "resume", "continue_job", "resume_from", "timeout")
    for option in ctx.command.params:
        if option.name in own and ctx.params[option.name] not in (None, False, ()):
            raise click.UsageError(
                f"{option.opts[0]} does not go with --agent and --task: the agent's settings "
                "count. `binderclip agents edit` changes them."
            )


def _with_words(
    adapter: Adapter, values: dict[str, Any], prompt: tuple[str, ...], words: tuple[str, ...]
) -> str | None:
    """Put words after `--` where the adapter takes a command, and read the prompt."""
    if words and {"command", "args"} <= adapter.Config.model_fields.keys():
        values.setdefault("command", words[0])
        values.setdefault("args", list(words[1:]))
        words = ()
    return _prompt((*prompt, *words))


def _prompt(prompt: tuple[str, ...]) -> str | None:
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


def _origin(
    home: Home, resume: bool, continue_job: str | None, resume_from: str | None
) -> Origin | None:
    if sum(map(bool, (resume, continue_job, resume_from))) > 1:
        raise click.UsageError("--continue, --continue-job and --resume-from exclude each other.")
    if not continue_job and not resume_from:
        return None
    from binderclip.cli.continuing import origin_of

    return origin_of(home, continue_job, resume_from)


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


def _detach(drive: Drive, as_json: bool) -> None:
    show = show_for(drive.run_id, Terminal(), as_json=as_json, debug=False)
    drive.listener = show
    sys.exit(left(drive, show, lifecycle.detach(drive)))


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


def _show(drive: Drive, *, as_json: bool, debug: bool) -> int:
    show = show_for(drive.run_id, Terminal(), as_json=as_json, debug=debug)
    drive.listener = show
    return shown(drive, show, lambda: lifecycle.run(drive))


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
