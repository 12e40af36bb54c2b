"""Reading untrusted values without ever raising (H1)."""

from __future__ import annotations

from typing import Any

import msgspec


def as_string(value: object, fallback: str = "") -> str:
    """The value if it is a string, else the fallback."""
    return value if isinstance(value, str) else fallback


def as_number(value: object, fallback: float = 0) -> float:
    """The value if it is a finite number, else the fallback; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return fallback
    return value if abs(value) != float("inf") and value == value else fallback


def as_boolean(value: object, fallback: bool = False) -> bool:
    """The value if it is a boolean, else the fallback."""
    return value if isinstance(value, bool) else fallback


def as_string_array(value: object) -> list[str]:
    """The strings of a list; anything else gives an empty list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def parse_object(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def parse_json(text: object) -> dict[str, Any] | None:
    """The object that a JSON text holds, or None for anything else."""
    if not isinstance(text, str | bytes):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
