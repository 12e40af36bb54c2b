"""Running the server and its worker on a listening socket until they are told to end."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from binderclip.server.app import create_app
from binderclip.server.guard import LOOPBACK_NAMES
from binderclip.server.guarded import GuardedListener
from binderclip.server.peers import PeerProtocol, is_loopback
from binderclip.server.site import Site
from binderclip.store.home import Home

GRACE_SECONDS = 5
EVERYWHERE = ("0.0.0.0", "::")


class _Server(uvicorn.Server):
    """Lets viewers go first: a stream that nobody ends would keep the server from ending."""

    def __init__(self, config: uvicorn.Config, site: Site, drain: bool) -> None:
        super().__init__(config)
        self._site = site
        self._drain = drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self._drain:
            super().handle_exit(sig, frame)
            return
        # Agents need the API until they are done; a second signal does not wait for them.
        self._drain = False
        threading.Thread(target=self._end_drained, name="drain", daemon=True).start()

    def _end_drained(self) -> None:
        self._site.worker.stop(drain=True)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.end_streams()
        await super().shutdown(sockets)


def serve(
    home: Home,
    listener: socket.socket,
    *,
    started: Callable[[str, str], None],
    drain: bool = False,
    names: Iterable[str] = (),
) -> list[str]:
    """Serve until a signal ends it; the runs whose agents work on are returned.

    `names` are further names that lead here, a proxy's. `started` is told the address and the
    person's token once both are there.
    """
    host, port = listener.getsockname()[:2]
    app = create_app(home, hosts=_hosts(host) | {name.lower() for name in names})
    site: Site = app.state.site
    name = f"[{host}]" if ":" in host else host
    # Agents of this machine call a server that listens everywhere by loopback.
    site.address = f"http://{'127.0.0.1' if host in EVERYWHERE else name}:{port}"
    guarded = GuardedListener(home, app, site.tokens)
    site.guarded_port = guarded.port
    site.worker.start()
    try:
        guarded.reopen()
        config = uvicorn.Config(
            app,
            http=PeerProtocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = _Server(config, site, drain)
        with _obeying_signals(server):
            started(f"http://{name}:{port}", site.tokens.person)
            server.run(sockets=[listener])
    finally:
        left = site.worker.stop()
        guarded.close()
        site.database.close()
    return left


@contextmanager
def _obeying_signals(server: _Server) -> Iterator[None]:
    """Signals count from the first word on, and one that ended the server ends nothing else.

    uvicorn listens to them only while it serves, and raises them again afterwards.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {sig: signal.signal(sig, server.handle_exit) for sig in signals}
    try:
        yield
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)


def _hosts(host: str) -> frozenset[str]:
    """The names that the server answers to: its own, and loopback's."""
    if is_loopback(host):
        return LOOPBACK_NAMES
    own = {socket.gethostname().lower(), socket.getfqdn().lower()}
    if host in EVERYWHERE:
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        own |= {f"[{item[4][0]}]" if ":" in str(item[4][0]) else str(item[4][0]) for item in found}
    else:
        own.add(f"[{host}]" if ":" in host else host)
    return LOOPBACK_NAMES | own
