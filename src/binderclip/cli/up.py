"""`binderclip up`: the server, its worker and the web app on this machine."""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click

from binderclip.contract.errors import ConfigError, StoreError
from binderclip.contract.ids import short
from binderclip.store.home import Home
from binderclip.store.jsonfile import write_atomic

PORT = 3210
SERVE = "binderclip.server.serve:serve"
TOKEN = "BINDERCLIP_TOKEN"
SHORTEST_TOKEN = 20
REMEMBERED = "server.json"
"""Where the server listens, for the next `up` and for commands that ask it."""


@click.command("up")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port; the last one, or {PORT}.")
@click.option("--open", "open_browser", is_flag=True, help="Open a browser once it listens.")
@click.option("--drain", is_flag=True, help="At the end, wait for the agents that work.")
@click.option("--name", "names", multiple=True, help="A name that a proxy answers to for it.")
def command(
    host: str, port: int | None, open_browser: bool, drain: bool, names: tuple[str, ...]
) -> None:
    """Start server, worker and web app; Ctrl-C ends them, agents go on.

    The address that is printed carries the token of BINDERCLIP_HOME/token. Any address but this
    machine's own needs a token that was chosen on purpose, in BINDERCLIP_TOKEN.
    """
    home = Home.from_env().ensure()
    if not _is_loopback(host):
        _use_chosen_token(home, host)
    _offer_agents(home)
    with closing(_listening(home, host, port)) as listener:
        left = _serve(home, listener, open_browser, drain=drain, names=names)
    if left:
        shown = ", ".join(short(run_id) for run_id in left)
        click.echo(f"Agents work on: {shown}. The next `binderclip up` finds them.")


def _serve(home: Home, listener: socket.socket, open_browser: bool, **options: Any) -> list[str]:
    def started(address: str, token: str) -> None:
        _remember(home, address, listener)
        click.echo(f"binderclip is up at {address}/?token={token}")
        click.echo("Ctrl-C ends it, agents go on.")
        if open_browser:
            click.launch(f"{address}/?token={token}")

    # What is imported stays: to look through it for garbage would take a tenth of the start.
    gc.disable()
    # By name, since the server stands beside the CLI and not below it.
    serve = resolve_name(SERVE)
    gc.freeze()
    gc.enable()
    left: list[str] = serve(home, listener, started=started, **options)
    return left


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _use_chosen_token(home: Home, host: str) -> None:
    """Make the token of the environment this home's own, or refuse."""
    token = os.environ.get(TOKEN, "")
    if not token:
        raise ConfigError(
            f"Everybody who reaches {host} could ask this server, so it needs a token of your own.",
            hint=f"Set {TOKEN} to at least {SHORTEST_TOKEN} letters and digits that nobody "
            "guesses (`openssl rand -hex 32`) and start again, or leave --host out.",
        )
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise ConfigError(
            f"{TOKEN} is no token that keeps anybody out.",
            hint=f"It needs at least {SHORTEST_TOKEN} plain characters: `openssl rand -hex 32`.",
        )
    path = home.path / "token"
    if not path.exists() or path.read_text("utf-8").strip() != token:
        write_atomic(path, token.encode(), durable=True)


def _listening(home: Home, host: str, port: int | None) -> socket.socket:
    wanted = port if port is not None else _last_port(home)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, wanted))
        listener.listen(1024)
    except OSError as problem:
        listener.close()
        raise StoreError(
            f"Port {wanted} of {host} cannot be used: {problem.strerror}.",
            hint="Another binderclip may be up there; --port chooses another port.",
        ) from None
    return listener


def _last_port(home: Home) -> int:
    """Agents hold the address of the server, so it stays where it was."""
    try:
        port = json.loads((home.path / REMEMBERED).read_text())["port"]
    except (OSError, ValueError, LookupError, TypeError):
        return PORT
    return port if isinstance(port, int) and 0 < port < 65536 else PORT


def _remember(home: Home, address: str, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    everywhere = ipaddress.ip_address(host).is_unspecified
    near = f"http://127.0.0.1:{port}" if everywhere else address
    kept = {"port": port, "address": near}
    path = home.path / REMEMBERED
    path.write_text(json.dumps(kept))
    path.chmod(0o600)


def _offer_agents(home: Home) -> None:
    """On an empty home, offer an agent for each runtime that is installed here."""
    trace = home.sqlite or home.path / REMEMBERED
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or trace.exists():
        return
    for type, label, program in _installed():
        if click.confirm(
            f"{label} is installed ({program}). Create an agent for it?", default=True
        ):
            agent = _create(home, type, label)
            click.echo(f"Created {agent.name}, id {short(agent.id)}.")


def _installed() -> Iterator[tuple[str, str, Path]]:
    """Adapters whose command is found on this machine."""
    import shutil

    from binderclip.plugins.registry import list_adapters, load_adapter

    for view in list_adapters():
        if view.state == "ready" and view.capabilities.supports_local_agent_jwt:
            command = load_adapter(view.type).manifest.command
            found = shutil.which(command) if command else None
            if found:
                yield view.type, view.label, Path(found)


def _create(home: Home, type: str, label: str) -> Any:
    import time

    from binderclip.contract.agent import Agent
    from binderclip.contract.company import LOCAL_COMPANY
    from binderclip.plugins.registry import load_adapter
    from binderclip.runs.roster import Roster
    from binderclip.store.database import Database

    agent = Agent(id="", company_id=LOCAL_COMPANY, name=label, adapter_type=type)
    with Database.open(home) as database:
        return Roster(database, load_adapter, clock=time.time).create_agent(agent, "person")
