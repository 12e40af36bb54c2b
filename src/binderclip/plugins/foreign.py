"""The result of an adapter that was written for Paperclip, in our contract's words (A5, D10).

Zeros where nothing was told become unknown; a failure always has a code and a message.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec

from binderclip.contract.run import ErrorCode, ErrorFamily, ExecutionResult, Usage, UsageBasis
from binderclip.sdk.values import as_number, as_string, parse_object

LARGEST_SESSION = 1024 * 1024
_CODES = get_args(ErrorCode)
_FAMILIES = get_args(ErrorFamily)
_HINTS: tuple[tuple[str, ErrorCode], ...] = (
    ("auth", "auth"),
    ("login", "auth"),
    ("quota", "quota"),
    ("rate_limit", "rate_limit"),
    ("timeout", "timeout"),
    ("timed_out", "timeout"),
    ("session", "unknown_session"),
    ("not_found", "command_not_found"),
    ("refus", "refusal"),
    ("turn", "turn_limit"),
    ("upstream", "upstream"),
    ("overload", "upstream"),
)
_COUNTS_CACHED_AS_INPUT = ("openai",)
"""Providers whose count of input tokens contains the cached ones."""


def foreign_result(answer: dict[str, Any]) -> ExecutionResult:
    """What `execute` returned or threw."""
    if answer.get("thrown"):
        return _failed(as_string(answer["thrown"], "The adapter threw."), _thrown_code(answer))
    raw = answer.get("result")
    if not isinstance(raw, dict):
        return _failed(f"The adapter returned {_kind(raw)}, no result.", "plugin_failed")
    extra = dict(parse_object(raw.get("resultJson")))
    session, dropped = _session(answer, raw)
    if dropped:
        extra["sessionDropped"] = dropped
    code, message = _failure(raw, extra)
    usage = _usage(raw)
    return ExecutionResult(
        exit_code=_whole(raw.get("exitCode")),
        signal=as_string(raw.get("signal")) or None,
        timed_out=raw.get("timedOut") is True,
        error_message=message,
        error_code=code,
        error_family=raw.get("errorFamily") if raw.get("errorFamily") in _FAMILIES else None,
        retry_not_before=as_string(raw.get("retryNotBefore")) or None,
        usage=usage,
        usage_basis=_basis(raw) if usage else None,
        session_params=session,
        session_display_id=_display_id(answer, raw, session),
        session_id=as_string(raw.get("sessionId")) or None,
        provider=as_string(raw.get("provider")) or None,
        model=as_string(raw.get("model")) or None,
        cost_usd=as_number(raw.get("costUsd")) or None,
        result_json=_storable(extra) or None,
        summary=as_string(raw.get("summary")) or None,
        clear_session=raw.get("clearSession") is True,
    )


def _failure(raw: dict[str, Any], extra: dict[str, Any]) -> tuple[ErrorCode | None, str | None]:
    told, message = as_string(raw.get("errorCode")), as_string(raw.get("errorMessage")).strip()
    exit_code, signal = _whole(raw.get("exitCode")), as_string(raw.get("signal"))
    if told and told not in _CODES:
        extra["adapterErrorCode"] = told
    if raw.get("timedOut") is True:
        return "timeout", message or "The adapter's own time limit stopped the agent."
    if signal:
        return _code(told) or "killed", message or f"The agent was ended by {signal}."
    if exit_code not in (0, None):
        return _code(told) or "process_failed", message or f"The agent exited with {exit_code}."
    if told or (message and exit_code is None):
        return _code(told) or "process_failed", message or f"The adapter reported {told}."
    # Some adapters put warnings of the runtime into errorMessage and still exit 0.
    if message:
        extra["adapterWarning"] = message
    return None, None


def _code(told: str) -> ErrorCode | None:
    if told in _CODES:
        return told  # type: ignore[return-value]
    lowered = told.lower()
    return next((code for part, code in _HINTS if lowered and part in lowered), None)


def _thrown_code(answer: dict[str, Any]) -> ErrorCode:
    lowered = as_string(answer.get("thrown")).lower()
    if "enoent" in lowered or "command not found" in lowered or "not found in path" in lowered:
        return "command_not_found"
    return "plugin_failed"


def _failed(message: str, code: ErrorCode) -> ExecutionResult:
    return ExecutionResult(
        exit_code=None,
        signal=None,
        timed_out=False,
        error_code=code,
        error_message=message[:4000],
    )


def _usage(raw: dict[str, Any]) -> Usage | None:
    told = parse_object(raw.get("usage"))
    counts = {key: _whole(told.get(key)) for key in ("inputTokens", "outputTokens")}
    cached = _whole(told.get("cachedInputTokens"))
    if not any((*counts.values(), cached)):
        return None
    fresh = counts["inputTokens"]
    if as_string(raw.get("provider")) in _COUNTS_CACHED_AS_INPUT and fresh and cached:
        fresh = max(0, fresh - cached)
    return Usage(
        input_tokens=fresh,
        cached_input_tokens=cached,
        output_tokens=counts["outputTokens"],
        source="reported",
    )


def _basis(raw: dict[str, Any]) -> UsageBasis:
    return "session_cumulative" if raw.get("usageBasis") == "session_cumulative" else "per_run"


def _session(answer: dict[str, Any], raw: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The parameters to keep, written by the adapter's own codec; none that are far too large."""
    params = answer.get("session") or raw.get("sessionParams")
    if not isinstance(params, dict) or not params:
        legacy = as_string(raw.get("sessionId"))
        return ({"sessionId": legacy} if legacy else None), ""
    size = len(json.dumps(params))
    if size > LARGEST_SESSION:
        return None, f"{size} bytes of session parameters are more than {LARGEST_SESSION}"
    return params, ""


def _display_id(
    answer: dict[str, Any], raw: dict[str, Any], session: dict[str, Any] | None
) -> str | None:
    shown = as_string(answer.get("displayId")) or as_string(raw.get("sessionDisplayId"))
    return (shown or as_string((session or {}).get("sessionId")))[:200] or None


def _whole(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and abs(value) < 2**53 else None


def _storable(extra: dict[str, Any]) -> dict[str, Any]:
    data = msgspec.json.encode(extra)
    if len(data) <= LARGEST_SESSION:
        return extra
    return {"truncated": {"bytes": len(data)}}


def _kind(raw: Any) -> str:
    return "nothing" if raw is None else type(raw).__name__
