"""Running the server on a listening socket until it is told to end."""

from __future__ import annotations

import socket

import uvicorn

from binderclip.server.app import create_app
from binderclip.server.peers import PeerProtocol
from binderclip.server.site import Site
from binderclip.store.home import Home


class _Server(uvicorn.Server):
    """Lets viewers go first: a stream that nobody ends would keep the server from ending."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.end_streams()
        await super().shutdown(sockets)


def serve(home: Home, listener: socket.socket) -> None:
    """Serve until a signal ends it; agents go on."""
    app = create_app(home)
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    _Server(config, app.state.site).run(sockets=[listener])
