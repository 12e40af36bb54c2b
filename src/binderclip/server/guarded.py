"""The listener that agents on other machines reach: the agents' routes, by a run's token only (W6).

Whoever is on the other machine may connect to it, so neither peer, cookie nor the person's token
counts. It opens when the first run needs it, and again at its port while such a run may go on.
"""

from __future__ import annotations

import json
import re
import socket
import threading

import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from binderclip.server.errors import error_response
from binderclip.server.tokens import Tokens
from binderclip.store.home import Home
from binderclip.store.jsonfile import encode, write_atomic

REMEMBERED = "guarded.json"
_GRACE_SECONDS = 2
_ROUTES = {
    "/api/agents/me": ("GET",),
    "/api/companies/[^/]+/issues": ("GET", "POST"),
    "/api/issues/[^/]+": ("GET", "PATCH"),
    "/api/issues/[^/]+/checkout": ("POST",),
    "/api/issues/[^/]+/comments": ("GET", "POST"),
    "/api/issues/[^/]+/interactions": ("POST",),
    "/api/approvals/[^/]+": ("GET",),
}
"""What R4 promises to agents, and nothing else."""
_KEPT_HEADERS = frozenset(
    {b"authorization", b"host", b"content-type", b"content-length", b"transfer-encoding"}
    | {b"accept", b"idempotency-key", b"if-none-match", b"x-paperclip-run-id", b"origin"}
)


class AgentsOnly:
    """Stands before the application and lets through what an agent with its token may ask."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self._tokens.read(token.strip()) is None:
            told = "This address is for agents at work: it needs the token of a run."
            headers = {"www-authenticate": "Bearer"}
            await error_response(401, "unauthorized", told, headers=headers)(scope, receive, send)
        elif not _is_for_agents(scope["method"], scope["path"]):
            told = "There is no such thing at this address."
            await error_response(404, "not_found", told)(scope, receive, send)
        else:
            kept = [pair for pair in scope["headers"] if pair[0].lower() in _KEPT_HEADERS]
            await self._app({**scope, "headers": kept, "state": {}}, receive, send)


class GuardedListener:
    """Opens a loopback port for `AgentsOnly` when somebody asks for it."""

    def __init__(self, home: Home, app: ASGIApp, tokens: Tokens, *, lasting: bool = True) -> None:
        """`lasting` keeps its port for the next server; a listener of one run has any port."""
        self._path = home.path / REMEMBERED if lasting else None
        self._app = AgentsOnly(app, tokens)
        self._lock = threading.Lock()
        self._port: int | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def reopen(self) -> None:
        """Listen where an earlier server did: agents on other machines hold that port."""
        if self._last_port():
            self.port()

    def port(self) -> int:
        """The port, listening."""
        with self._lock:
            if self._port is None:
                self._port = self._open()
            return self._port

    def close(self) -> None:
        with self._lock:
            if self._server is not None and self._thread is not None:
                self._server.should_exit = True
                self._thread.join()

    def _open(self) -> int:
        listener = _bound(self._last_port())
        port = int(listener.getsockname()[1])
        if self._path is not None:
            write_atomic(self._path, encode({"port": port}))
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="guarded", daemon=True
        )
        self._thread.start()
        return port

    def _last_port(self) -> int:
        if self._path is None:
            return 0
        try:
            port = json.loads(self._path.read_bytes())["port"]
        except (OSError, ValueError, LookupError, TypeError):
            return 0
        return port if isinstance(port, int) and 0 < port < 65536 else 0


def _is_for_agents(method: str, path: str) -> bool:
    return any(
        method in methods and re.fullmatch(pattern, path) for pattern, methods in _ROUTES.items()
    )


def _bound(port: int) -> socket.socket:
    """A listening socket at this port of loopback, or at another one if it is taken."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        # Whoever connects before the server reads waits for it.
        listener.listen(128)
    except OSError:
        listener.close()
        if not port:
            raise
        return _bound(0)
    return listener
