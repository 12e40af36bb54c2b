"""What can be known about an endpoint: from its configuration, and by one HEAD when asked (E2)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from binderclip.adapters.http.config import HttpConfig
from binderclip.sdk import Check, CheckCall
from binderclip.sdk.env import is_secret_name

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def http_checks(call: CheckCall) -> Iterator[Check]:
    config: HttpConfig = call.config
    parts = urlsplit(config.url)
    yield Check(code="endpoint", level="info", message=f"Calls {config.method} on {parts.netloc}.")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        yield Check(
            code="url_not_encrypted",
            level="warn",
            message=f"{parts.netloc} is called without TLS: prompt and token can be read.",
            hint="Use https.",
        )
    yield from _credentials(config)
    if call.depth == "live":
        yield from _reached(config)


def _credentials(config: HttpConfig) -> Iterator[Check]:
    for name in config.headers:
        if is_secret_name(name):
            yield Check(
                code="credential_in_headers",
                level="warn",
                message=f"The header {name} stands in the configuration in plain text.",
                hint="Use authHeader and authToken: a secret is stored encrypted and masked.",
            )
    where = f"Sends authToken in {config.auth_header}." if config.auth_token else "Sends no token."
    yield Check(code="auth", level="info", message=where)


def _reached(config: HttpConfig) -> Iterator[Check]:
    import asyncio

    from binderclip.adapters.http.probe import probe

    yield asyncio.run(probe(config))
