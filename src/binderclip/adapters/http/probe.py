"""One HEAD on the endpoint's own address: does it answer, and does it know us?"""

from __future__ import annotations

from binderclip.adapters.http.config import HttpConfig
from binderclip.adapters.http.exchange import auth_headers, exchange, open_client
from binderclip.adapters.http.failure import Broken
from binderclip.sdk import Check


async def probe(config: HttpConfig) -> Check:
    """Any answer means that somebody is there; only a refused login is an error."""
    if "{{" in config.url:
        text = "The address holds placeholders, so it is not called outside a run."
        return Check(code="endpoint_not_tried", level="info", message=text)
    try:
        async with open_client(config) as client:
            await exchange(client, "HEAD", config.url, auth_headers(config), None, _unheard)
    except Broken as broken:
        if broken.status is None or broken.failure.code == "auth":
            code = "endpoint_auth" if broken.status else f"endpoint_{broken.cause}"
            return Check(code=code, level="error", message=str(broken))
    return Check(code="endpoint_ok", level="info", message="The endpoint answers.")


async def _unheard(_: bytes) -> None:
    return None
