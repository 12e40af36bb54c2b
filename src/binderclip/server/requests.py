"""What requests have in common: bodies in camelCase, cursors, and keys that make repeats safe."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from sqlalchemy import delete, insert, select

from binderclip.contract.wire import Wire, iso_time
from binderclip.server.auth import Actor
from binderclip.server.errors import Refused
from binderclip.server.site import Site
from binderclip.store.tables import idempotency

Id = Annotated[str, Path(min_length=1, max_length=64)]
Limit = Annotated[int, Query(ge=1, le=200, description="At most so many.")]
Cursor = Annotated[str | None, Query(max_length=64, description="`next` of the page before.")]
Position = Annotated[int, Query(ge=0, le=10_000_000, description="`next` of the page before.")]
AnyLimit = Annotated[int | None, Query(ge=1, le=200, description="At most so many; else all.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="A repeated request with the same key gets the first one's answer.",
    ),
]
_KEPT_SECONDS = 7 * 24 * 3600.0
_locks = [threading.Lock() for _ in range(64)]
W = TypeVar("W", bound=Wire)


class Body(BaseModel):
    """A request's body; fields that are not known are ignored, as other servers may want them."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def given(self) -> dict[str, Any]:
        """The fields that the request really has."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def paged(found: Sequence[W], limit: int) -> tuple[list[W], str | None]:
    """A page out of one more than was asked for, and where the next one begins."""
    page = list(found[:limit])
    more = len(found) > limit and page
    return page, str(getattr(page[-1], "id")) if more else None  # noqa: B009


def cut(found: Sequence[W], limit: int | None, position: int) -> tuple[Sequence[W], str | None]:
    """A page of a list that is known whole, from a position in it, and where the next begins."""
    end = len(found) if limit is None else position + limit
    return found[position:end], str(end) if end < len(found) else None


def once(
    site: Site, actor: Actor, place: str, key: str | None, body: Any, make: Callable[[], Response]
) -> Response:
    """Carry out a creating request, or give the answer that the same request got before."""
    if not key:
        return make()
    scope = f"{actor.kind}:{actor.run_id or ''}:{place}"
    asked = hashlib.blake2b(repr(body).encode("utf-8", "replace"), digest_size=16).hexdigest()
    with _locks[hash((scope, key)) % len(_locks)]:
        earlier = _answered(site, scope, key, asked)
        if earlier is not None:
            return earlier
        response = make()
        _remember(site, scope, key, asked, response)
        return response


def _answered(site: Site, scope: str, key: str, asked: str) -> Response | None:
    place = (idempotency.c.scope == scope) & (idempotency.c.key == key)
    with site.database.reading() as connection:
        row = connection.execute(select(idempotency).where(place)).mappings().one_or_none()
    if row is None:
        return None
    if row["request"] != asked:
        message = "This Idempotency-Key was used for another request."
        raise Refused(422, "idempotency_key_reused", message)
    headers = {"idempotency-replayed": "true"}
    return Response(row["answer"], row["status"], headers, media_type="application/json")


def _remember(site: Site, scope: str, key: str, asked: str, response: Response) -> None:
    values = {
        "scope": scope,
        "key": key,
        "request": asked,
        "status": response.status_code,
        "answer": bytes(response.body).decode(),
        "created_at": site.now(),
    }
    old = idempotency.c.created_at < iso_time(site.clock() - _KEPT_SECONDS)
    with site.database.writing() as connection:
        connection.execute(delete(idempotency).where(old))
        connection.execute(insert(idempotency).values(**values))
