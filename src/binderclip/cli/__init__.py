"""The `binderclip` command; each subcommand is imported when it is called, so that help is fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from binderclip import __version__

_COMMANDS = {
    "up": "Start the server and its web page on 127.0.0.1:3210.",
    "worker": "Run agents that were woken, without the server and its page.",
    "run": "Run an agent now, show it live, keep everything it printed.",
    "watch": "Show a run that is going on, or one that is over, from the beginning.",
    "runs": "List runs; show, log, transcript, export, cancel one.",
    "jobs": "List jobs: runs that continue each other or share a task.",
    "agents": "List agents; make, change and wake them.",
    "tasks": "List tasks; make, change, discuss and decide them.",
    "workspaces": "List workspaces; diff, merge, export, clean, resolve them.",
    "environments": "List other machines that agents work on; make, test, change them.",
    "sessions": "List the sessions that --continue resumes, or reset one.",
    "adapters": "List the agent runtimes that can be run; install, check, make others.",
    "doctor": "Test whether agents can run here, and say what is missing.",
    "replay": "Parse saved output offline and show what it becomes.",
    "record": "Run a command and keep its output as an adapter's fixture.",
}
INTERRUPTED = 130
# For the server: looking for plugins of pydantic takes as long as parsing its command line.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
_USAGE_CODES = frozenset({"bad_config", "unknown_adapter", "not_found"})


class Program(click.Group):
    """A group that knows its commands by name and imports them only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f"binderclip.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; a problem is one or two plain lines, never a traceback."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
        except click.ClickException as problem:
            problem.show()
            code = problem.exit_code
        except (KeyboardInterrupt, click.Abort):
            code = INTERRUPTED
        except Exception as problem:
            if os.environ.get("BINDERCLIP_DEBUG"):
                raise
            code = _told(problem)
        sys.exit(code)


def program() -> NoReturn:
    """The `binderclip` of a shell: run a command and end.

    Everything was closed by then, so the interpreter is not taken apart piece by piece first;
    that would take as long as a short command itself.
    """
    try:
        main()
        code: object = 0
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    os._exit(code if isinstance(code, int) else code is not None)


def _told(problem: Exception) -> int:
    """Print the problem and choose the exit code."""
    from binderclip.cli.safe import safe
    from binderclip.contract.errors import BinderclipError

    if not isinstance(problem, BinderclipError):
        click.echo(f"binderclip failed: {safe(f'{type(problem).__name__}: {problem}')}", err=True)
        click.echo("This is a bug; BINDERCLIP_DEBUG=1 shows where.", err=True)
        return 1
    click.echo(f"Error: {safe(problem.message)}", err=True)
    if problem.hint:
        click.echo(safe(problem.hint), err=True)
    return 2 if problem.code in _USAGE_CODES else 1


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="binderclip")
def main() -> None:
    """Run any AI agent runtime through an adapter, keep every byte, see what it did.

    \b
    binderclip run --adapter claude_local "fix the failing test"
    binderclip watch
    binderclip runs
    """
