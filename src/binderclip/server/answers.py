"""Answers that a client may hold already: an ETag for what is polled, ranges for what is long."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response

from binderclip.server.errors import Refused
from binderclip.store.jsonfile import encode

NEXT = "x-next-cursor"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def polled(request: Request, value: Any) -> Response:
    """A value as JSON, or 304 for whoever holds this very one."""
    body = encode(value)
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"etag": etag, "cache-control": "private, no-cache"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def listed(request: Request, items: Sequence[Any], more: str | None) -> Response:
    """A page as a plain list, as existing agents expect it; a header leads to the rest."""
    response = polled(request, items)
    if more:
        response.headers[NEXT] = more
    return response


def matches(header: str | None, etag: str) -> bool:
    """Whether a list of tags, as `If-None-Match` holds it, names this one."""
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The one range of bytes that a header asks for; None for the whole, 416 for a wrong one."""
    match = _RANGE.fullmatch((header or "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        first, last = max(0, size - int(match[2])), size - 1
        fits = int(match[2]) > 0 and size > 0
    else:
        first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
        fits = first < size and (not match[2] or int(match[2]) >= first)
    if not fits:
        message = f"There are {size} bytes; {header} lies outside of them."
        headers = {"content-range": f"bytes */{size}"}
        raise Refused(416, "range_not_satisfiable", message, headers=headers)
    return first, last
