"""One request and its whole answer; redirects stay on the address that a person wrote.

Every way to fail is one `Broken`; the bytes of the body are handed on before they are judged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import msgspec

from binderclip.adapters.http.config import HttpConfig
from binderclip.adapters.http.failure import cut, no_json, redirected, refused, unreached
from binderclip.adapters.http.template import shown_url

KEPT_BYTES = 16 * 1024 * 1024
REDIRECTS = 5

OnBytes = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Reply:
    """An answer that came completely; `body` holds its first 16 MiB."""

    status: int
    content_type: str
    body: bytearray = field(default_factory=bytearray)
    size: int = 0

    @property
    def says_json(self) -> bool:
        kind = self.content_type.partition(";")[0].strip().lower()
        return kind == "application/json" or (kind.endswith("+json") and "seq" not in kind)

    def document(self) -> Any:
        """The body as JSON, or a failure that says why it is none."""
        if self.size > KEPT_BYTES:
            raise no_json(f"the answer has {self.size} bytes, too many to read", self.status)
        try:
            return msgspec.json.decode(bytes(self.body))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
            raise no_json(f"the answer is none: {problem}", self.status) from problem


def open_client(config: HttpConfig) -> httpx.AsyncClient:
    read = config.read_timeout_sec
    return httpx.AsyncClient(
        timeout=httpx.Timeout(read, connect=config.connect_timeout_sec),
        verify=not config.dangerously_skip_tls_verify,
        follow_redirects=False,
        # What is logged is what was sent, so it should not be compressed on the way.
        headers={"Accept-Encoding": "identity", "User-Agent": "binderclip"},
    )


def auth_headers(config: HttpConfig) -> dict[str, str]:
    if config.auth_token is None:
        return {}
    token = config.auth_token.get_secret_value()
    bearer = config.auth_header.lower() == "authorization" and " " not in token
    return {config.auth_header: f"Bearer {token}" if bearer else token}


async def exchange(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    headers: Mapping[str, str],
    payload: Any,
    on_bytes: OnBytes,
) -> Reply:
    """Send one request and read its answer to the end; an answer of 400 and above is `Broken`."""
    content = None if payload is None else msgspec.json.encode(payload)
    kind = {} if content is None else {"Content-Type": "application/json"}
    sent = [(name.encode(), value.encode()) for name, value in {**kind, **headers}.items()]
    request = client.build_request(method, url, headers=sent, content=content)
    response = await _answered(client, request)
    where = shown_url(url)
    try:
        reply = Reply(response.status_code, response.headers.get("content-type", ""))
        await _read(response, reply, on_bytes, where)
    finally:
        await response.aclose()
    if response.is_redirect:
        raise redirected(response, where)
    if not response.is_success:
        raise refused(response, where, datetime.now(UTC))
    return reply


async def _answered(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    where = shown_url(str(request.url))
    for hop in range(REDIRECTS):
        try:
            response = await client.send(request, stream=True)
        except httpx.HTTPError as problem:
            raise unreached(problem, where) from problem
        following = response.next_request
        same = following is not None and _origin(following.url) == _origin(request.url)
        if following is None or not same or hop == REDIRECTS - 1:
            break
        await response.aclose()
        request = following
    return response


async def _read(response: httpx.Response, reply: Reply, on_bytes: OnBytes, where: str) -> None:
    try:
        async for chunk in response.aiter_bytes():
            reply.size += len(chunk)
            reply.body += chunk[: max(0, KEPT_BYTES - len(reply.body))]
            await on_bytes(chunk)
    except httpx.HTTPError as problem:
        raise cut(problem, where) from problem


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
