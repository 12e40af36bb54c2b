"""`binderclip up`: the server on this machine's own address."""

from __future__ import annotations

import socket
from contextlib import closing
from pkgutil import resolve_name

import click

from binderclip.contract.errors import ConfigError, StoreError
from binderclip.store.home import Home

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORT = 3210
SERVE = "binderclip.server.serve:serve"


@click.command("up")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=PORT, show_default=True, help="Port to listen on.")
@click.option("--open", "open_browser", is_flag=True, help="Open a browser once it listens.")
def command(host: str, port: int, open_browser: bool) -> None:
    """Start the server and print its address; Ctrl-C ends it, agents go on."""
    if host not in LOOPBACK:
        raise ConfigError(
            f"The server listens on this machine only, not on {host}.",
            hint=f"Use one of {', '.join(LOOPBACK)}.",
        )
    home = Home.from_env().ensure()
    with closing(_listening(host, port)) as listener:
        address = _address(host, listener)
        click.echo(f"binderclip is up at {address}  (Ctrl-C ends it, agents go on)")
        if open_browser:
            click.launch(address)
        _serve(home, listener)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as problem:
        listener.close()
        raise StoreError(
            f"Port {port} of {host} cannot be used: {problem.strerror}.",
            hint="Another binderclip may be up there; --port chooses another port.",
        ) from None
    return listener


def _address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def _serve(home: Home, listener: socket.socket) -> None:
    # By name, since the server stands beside the CLI and not below it.
    resolve_name(SERVE)(home, listener)
