"""What every request passes: the right host, no foreign origin, bounded size and rate.

Every answer leaves with headers that keep a browser from doing more than showing it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from binderclip.server.errors import error_response

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
MOST_BODY_BYTES = 4 * 1024 * 1024
REQUESTS_PER_SECOND = 200.0
BURST = 1000.0
_MOST_CLIENTS = 4096
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
        "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
}


class Guard:
    """Stands before the application; `hosts` are the names that the server answers to."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] = LOOPBACK_NAMES) -> None:
        self._app = app
        self._hosts = hosts
        self._rates = _Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        dressed = _dressed(send)
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, dressed)
            return
        body = _Measured(receive)
        await self._app(scope, body, body.answering(dressed))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if name_of(host) not in self._hosts and name_of(host) != _arrived_at(scope):
            told = "This server answers to its own address only."
            return error_response(403, "forbidden_host", told)
        if not _same_origin(scope, headers, host):
            told = "Another web page may not ask this server."
            return error_response(403, "forbidden_origin", told)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            return _too_large()
        if not self._rates.allow(_client(scope)):
            told = "Too many requests; wait a second."
            return error_response(429, "too_many_requests", told, headers={"retry-after": "1"})
        return None


class _Measured:
    """Counts the bytes of a body that did not tell its length, and cuts it off."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._bytes = 0
        self._over = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > MOST_BODY_BYTES:
                self._over = True
                return {"type": "http.request", "body": b"", "more_body": False}
        return message

    def answering(self, send: Send) -> Send:
        """Whatever the application makes of a body that was cut, the answer is 413."""
        refused = False

        async def answer(message: Message) -> None:
            nonlocal refused
            if self._over and not refused and message["type"] == "http.response.start":
                refused = True
                response = _too_large()
                await send(
                    {
                        "type": "http.response.start",
                        "status": response.status_code,
                        "headers": response.raw_headers,
                    }
                )
                await send({"type": "http.response.body", "body": bytes(response.body)})
            elif not refused:
                await send(message)

        return answer


class _Rates:
    """A bucket of tokens per client; the clients seen longest ago are forgotten."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, client: str) -> bool:
        now = time.monotonic()
        tokens, then = self._buckets.pop(client, (BURST, now))
        tokens = min(BURST, tokens + (now - then) * REQUESTS_PER_SECOND)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - allowed, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return allowed


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _arrived_at(scope: Scope) -> str:
    """The address that the connection came in at: no name that leads here can be equal to it."""
    server: Any = scope.get("server")
    address = str(server[0]) if server else ""
    return f"[{address}]" if ":" in address else address


def _same_origin(scope: Scope, headers: Headers, host: str) -> bool:
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())
    # Browsers tell where a request comes from even when they send no Origin.
    site = headers.get("sec-fetch-site", "none")
    return site in ("none", "same-origin") or (
        scope["method"] in _SAFE_METHODS and headers.get("sec-fetch-mode") == "navigate"
    )


def _client(scope: Scope) -> str:
    """Whose rate a request counts for: a token's, else that of the address."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return str(hash(value))
    client: Any = scope.get("client")
    return str(client[0]) if client else ""


def _too_large() -> Response:
    told = f"A body may have {MOST_BODY_BYTES} bytes."
    return error_response(413, "too_large", told, headers={"connection": "close"})


def _dressed(send: Send) -> Send:
    async def dress(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return dress
