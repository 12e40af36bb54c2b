"""`binderclip watch`: the run as it goes on, by reading its files, drawn as `run` draws it."""

from __future__ import annotations

import click

from binderclip.cli import INTERRUPTED
from binderclip.cli.ending import Ending, ending_of, exit_code
from binderclip.cli.history import find_any, last_attempt
from binderclip.cli.show import Show, TextShow, heading, show_for
from binderclip.cli.terminal import Terminal
from binderclip.cli.words import homely, moment
from binderclip.contract.entry import Coverage
from binderclip.contract.ids import short
from binderclip.plugins.registry import load_adapter
from binderclip.runs import follow
from binderclip.store.home import Home
from binderclip.store.runfile import ORDER, read_order


@click.command("watch")
@click.argument("run", required=False)
@click.option("--debug", is_flag=True, help="Also show lines that no parser understood.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead of text.")
@click.option("--server", metavar="URL", help="Watch a run of the server at this address.")
@click.option("--token", envvar="BINDERCLIP_TOKEN", help="Token of that server's home.")
@click.pass_context
def command(
    ctx: click.Context,
    run: str | None,
    debug: bool,
    as_json: bool,
    server: str | None,
    token: str | None,
) -> None:
    """Show a run from its beginning and stay with it until it is over.

    RUN is an id or its last characters; the newest run if it is not given. A run that is queued
    is waited for. Ctrl-C ends the watching only, never the run. The exit code is that of the run.

    With --server the run may be on another machine; better put the token into BINDERCLIP_TOKEN,
    since others can read command lines.
    """
    if server is not None:
        # Only now: whoever watches files needs no HTTP.
        from binderclip.cli.afar import watch_afar

        ctx.exit(watch_afar(server, token, run, as_json=as_json, debug=debug))
    home = Home.from_env().ensure()
    run_id = find_any(home, run)
    show = show_for(run_id, Terminal(), as_json=as_json, debug=debug)
    try:
        with show:
            ending, coverage = _watch(home, run_id, show)
    except KeyboardInterrupt:
        click.echo(f"\nStopped watching; the run goes on: binderclip watch {short(run_id)}")
        ctx.exit(INTERRUPTED)
    show.end(ending, coverage)
    ctx.exit(exit_code(ending.state))


def _watch(home: Home, run_id: str, show: Show) -> tuple[Ending, Coverage | None]:
    """Show a run until it is over, and how it ended."""
    if not (home.run_dir(run_id) / ORDER).exists():
        from binderclip.cli.queued import await_start

        over = await_start(home, run_id, show)
        if over is not None:
            return Ending(over.status, over.result, run=short(run_id)), over.coverage
    order = read_order(home, run_id)
    if isinstance(show, TextShow):
        show.began(moment(order.created_at) or 0)
    show.open(heading(order.adapter_type, homely(order.cwd)))
    outcome = follow.watch(home, run_id, load_adapter, show)
    return ending_of(order, outcome, last_attempt(home, run_id)), outcome.coverage
