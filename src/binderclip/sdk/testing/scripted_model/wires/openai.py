"""What OpenAI's two wires share: the error envelope and the text of a call's arguments."""

from __future__ import annotations

import json

from ..exchange import ToolUse
from ..script import Failure, Json

_ERRORS: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "permission_denied"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def error_body(failure: Failure) -> Json:
    kind, code = _ERRORS.get(failure.status, ("server_error", None))
    named = {"type": failure.type or kind, "code": failure.type or code}
    return {"error": {"message": failure.message, "param": None, **named}}


def arguments_text(use: ToolUse) -> str:
    if isinstance(use.arguments, str):
        return use.arguments
    return json.dumps(use.arguments, ensure_ascii=False)
