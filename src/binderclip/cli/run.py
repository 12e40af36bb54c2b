"""`binderclip run`: drive one run in this process, show it live, end with its exit code."""

from __future__ import annotations

import gc
from types import ModuleType

import click


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
    words = ctx.meta.get("words", ())
    if agent or task:
        _refuse_own_settings(ctx)
        # Only now: a run of an adapter starts without the database.
        from binderclip.cli.staff import run_agent

        ctx.exit(
            run_agent(agent, task, (*prompt, *words), detach=detach, as_json=as_json, debug=debug)
        )
    if sum(map(bool, (resume, continue_job, resume_from))) > 1:
        raise click.UsageError("--continue, --continue-job and --resume-from exclude each other.")
    from binderclip.supervisor.spare import Spare

    # The supervisor's interpreter starts while this one still imports what it needs.
    with Spare() as spare:
        running = _imported()
        wish = running.Wish(
            adapter, cwd, config, resume, continue_job, resume_from, timeout, prompt, words
        )
        drive = running.drive_for(wish, spare)
        if detach:
            ctx.exit(running.detached(drive, as_json=as_json))
        ctx.exit(running.followed(drive, as_json=as_json, debug=debug))


def _imported() -> ModuleType:
    """What a run needs; collecting garbage meanwhile would find none and take a tenth longer."""
    gc.disable()
    try:
        from binderclip.cli import running
    finally:
        gc.enable()
    return running


def _refuse_own_settings(ctx: click.Context) -> None:
    """An agent brings its settings along; a mixture would be neither the one nor the other."""
    own = ("adapter", "cwd", "config", "resume", "continue_job", "resume_from", "timeout")
    for option in ctx.command.params:
        if option.name in own and ctx.params[option.name] not in (None, False, ()):
            raise click.UsageError(
                f"{option.opts[0]} does not go with --agent and --task: the agent's settings "
                "count. `binderclip agents edit` changes them."
            )
