"""Identifiers: UUIDv7, lower case, so that they sort by time and tell their month."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime

FULL_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
SHORT_LENGTH = 8


def new_id(unix_seconds: float | None = None) -> str:
    """A new id, made of the time in milliseconds and 74 random bits."""
    now = time.time() if unix_seconds is None else unix_seconds
    value = int(now * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 7 << 76
    return _written(value & ~(0b11 << 62) | 0b10 << 62)


def derived_id(purpose: str, id: str) -> str:
    """The id that always belongs to another one: of the same time, but never equal to it."""
    from hashlib import sha256

    digest = int.from_bytes(sha256(f"{purpose}:{id}".encode()).digest()[:10], "big")
    made_at = _number(id) >> 80 << 80 if FULL_ID.fullmatch(id) else 0
    value = (made_at | digest) & ~(0xF << 76) | 7 << 76
    return _written(value & ~(0b11 << 62) | 0b10 << 62)


def time_of(id: str) -> float:
    """The Unix time that an id was made at."""
    return (_number(id) >> 80) / 1000


def month_of(id: str) -> str:
    """The folder of a run: its year and month in UTC."""
    return datetime.fromtimestamp(time_of(id), UTC).strftime("%Y-%m")


def short(id: str) -> str:
    """What people see and type: the last eight characters."""
    return id[-SHORT_LENGTH:]


def floor_id(unix_seconds: float) -> str:
    """Sorts before every id that was made at this time or later."""
    return _written(int(unix_seconds * 1000) << 80)


def _written(value: int) -> str:
    # By hand: the module uuid loads what it would need to find the machine's addresses.
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _number(id: str) -> int:
    return int(id.replace("-", ""), 16)
