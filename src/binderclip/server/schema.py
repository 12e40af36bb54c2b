"""Contract structures in `/openapi.json`: routes name a type, its schema comes from msgspec."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi

from binderclip.contract.wire import Wire
from binderclip.server.errors import ErrorBody
from binderclip.store.jsonfile import encode

_REF = "#/components/schemas/{name}"
_MARK = "x-kind"
_kinds: list[Any] = []
"""What routes answer with; describing it all takes longer than starting the server."""

REFUSALS: dict[int, str] = {
    400: "The request makes no sense here.",
    401: "Nobody who is known asked.",
    403: "Whoever asked may not do this.",
    404: "There is no such thing.",
    409: "It contradicts what is there.",
    413: "The body is too large.",
    422: "A field is wrong; `fields` names it.",
    429: "Too many requests.",
}


def answers(kind: Any, status: int = 200, description: str = "Done.") -> dict[str | int, Any]:
    """The `responses` of a route that answers with a contract type."""
    found: dict[str | int, Any] = {
        status: {
            "description": description,
            "content": {"application/json": {"schema": schema_of(kind)}},
        }
    }
    return found


def schema_of(kind: Any) -> dict[str, Any]:
    """A mark for the schema of a type, which is made when somebody asks for the document."""
    _kinds.append(kind)
    return {_MARK: len(_kinds) - 1}


def plain(description: str, media_type: str, status: int = 200) -> dict[str | int, Any]:
    """The `responses` of a route that answers with text or bytes."""
    schema: dict[str, Any] = {"type": "string"}
    return {status: {"description": description, "content": {media_type: {"schema": schema}}}}


def page_of(name: str, kind: Any) -> type[Any]:
    """A page of a list: `items`, and the `next` cursor, null on the last page."""
    return msgspec.defstruct(
        name,
        [("items", list[kind]), ("next", str | None)],
        bases=(Wire,),
        frozen=True,
        kw_only=True,
        omit_defaults=False,
        rename="camel",
    )


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A contract value as the body of an answer."""
    return Response(encode(value), status, headers, media_type="application/json")


def install(app: FastAPI) -> None:
    """Let `/openapi.json` tell the contract types and the refusals of every route."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas, components = msgspec.json.schema_components([*_kinds, ErrorBody], ref_template=_REF)
    error = {"application/json": {"schema": schemas[-1]}}
    for operations in schema["paths"].values():
        for operation in operations.values():
            _fill_in(operation["responses"], schemas)
            for status, told in REFUSALS.items():
                operation["responses"][str(status)] = {"description": told, "content": error}
    known = schema.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        known.pop(unused, None)
    known.update(components)
    return schema


def _fill_in(responses: dict[str, Any], schemas: tuple[dict[str, Any], ...]) -> None:
    for response in responses.values():
        for media in response.get("content", {}).values():
            number = media.get("schema", {}).get(_MARK)
            if number is not None:
                media["schema"] = schemas[number]
