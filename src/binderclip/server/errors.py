"""Every refusal in one shape: `{"error": {"code", "message", "hint"?, "fields"?}}`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from binderclip.contract.errors import BinderclipError
from binderclip.contract.wire import Wire, to_json

_STATUSES = {
    "not_found": 404,
    "unknown_adapter": 404,
    "bad_config": 422,
    "conflict": 409,
    "busy": 409,
    "secret_found": 409,
    "workspace_failed": 409,
    "restore_conflict": 409,
    "store_failed": 500,
}


class ErrorDetail(Wire, frozen=True, kw_only=True):
    code: str
    message: str
    hint: str | None = None
    fields: dict[str, str] | None = None


class ErrorBody(Wire, frozen=True, kw_only=True):
    """What every refused request is answered with."""

    error: ErrorDetail


class Refused(BinderclipError):
    """A request that is not carried out, with the status that says why."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, fields=fields)
        self.status = status
        self.code = code  # type: ignore[misc]
        self.headers = dict(headers or {})


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    hint: str | None = None,
    fields: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    detail = ErrorDetail(code=code, message=message, hint=hint, fields=dict(fields or {}) or None)
    body = to_json(ErrorBody(error=detail))
    return Response(body, status, dict(headers or {}), media_type="application/json")


def install(app: FastAPI) -> None:
    """Answer everything that can go wrong in the one shape."""
    app.add_exception_handler(BinderclipError, _binderclip)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _binderclip(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, BinderclipError)
    status = problem.status if isinstance(problem, Refused) else _status_of(problem)
    return error_response(
        status,
        problem.code,
        problem.message,
        hint=problem.hint,
        fields=problem.fields,
        headers=problem.headers if isinstance(problem, Refused) else None,
    )


def _status_of(problem: BinderclipError) -> int:
    # A conflict may carry a code of its own; the class it belongs to decides.
    for kind in type(problem).__mro__:
        status = _STATUSES.get(getattr(kind, "code", ""))
        if status is not None and problem.code not in _STATUSES:
            return status
    return _STATUSES.get(problem.code, 400)


def _validation(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    fields = {_field(error): str(error.get("msg", "is wrong")) for error in problem.errors()}
    told = "; ".join(f"{name}: {text}" for name, text in fields.items())
    return error_response(422, "invalid_request", f"The request is wrong: {told}", fields=fields)


def _field(error: dict[str, Any]) -> str:
    place = [str(part) for part in error.get("loc", ()) if part not in ("body", "query", "path")]
    return ".".join(place) or "body"


def _http(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    phrase = HTTPStatus(problem.status_code).phrase
    code = phrase.lower().replace(" ", "_")
    told = problem.detail if problem.detail != phrase else f"{phrase}."
    return error_response(problem.status_code, code, told, headers=problem.headers)


def _unexpected(_: Request, problem: Exception) -> Response:
    message = f"The server failed: {type(problem).__name__}. This is a bug; its log says where."
    return error_response(500, "internal_error", message)
