"""`binderclip watch`: the run as it goes on, by reading its files, drawn as `run` draws it."""

from __future__ import annotations

import click

from binderclip.cli import INTERRUPTED
from binderclip.cli.ending import ending_of, exit_code
from binderclip.cli.history import find, last_attempt
from binderclip.cli.show import TextShow, heading, show_for
from binderclip.cli.terminal import Terminal
from binderclip.cli.words import homely, moment
from binderclip.contract.ids import short
from binderclip.plugins.registry import load_adapter
from binderclip.runs import follow
from binderclip.store.home import Home
from binderclip.store.runfile import read_order


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

    RUN is an id or its last characters; the newest run if it is not given. Ctrl-C ends the
    watching only, never the run. The exit code is that of the run.

    With --server the run may be on another machine; better put the token into BINDERCLIP_TOKEN,
    since others can read command lines.
    """
    if server is not None:
        # Only now: whoever watches files needs no HTTP.
        from binderclip.cli.afar import watch_afar

        ctx.exit(watch_afar(server, token, run, as_json=as_json, debug=debug))
    home = Home.from_env().ensure()
    run_id = find(home, run)
    order = read_order(home, run_id)
    show = show_for(run_id, Terminal(), as_json=as_json, debug=debug)
    if isinstance(show, TextShow):
        show.began(moment(order.created_at) or 0)
    try:
        with show:
            show.open(heading(order.adapter_type, homely(order.cwd)))
            outcome = follow.watch(home, run_id, load_adapter, show)
    except KeyboardInterrupt:
        click.echo(f"\nStopped watching; the run goes on: binderclip watch {short(run_id)}")
        ctx.exit(INTERRUPTED)
    show.end(ending_of(order, outcome, last_attempt(home, run_id)), outcome.coverage)
    ctx.exit(exit_code(outcome.state))
