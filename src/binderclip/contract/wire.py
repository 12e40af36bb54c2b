"""The base of every contract structure: frozen, camelCase on the wire, unknown fields ignored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A value that crosses a wire: fields with a default are left out when they hold it."""


class Tagged(Wire, frozen=True, kw_only=True, tag_field="type"):
    """A member of a family that is told apart by `type` on the wire, and in Python as well."""

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)


def to_json(value: Any) -> bytes:
    """Encode a contract value as compact JSON."""
    return msgspec.json.encode(value)


def from_json(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON into a contract value; a wrong shape raises `msgspec.ValidationError`."""
    return msgspec.json.decode(data, type=kind)


def to_plain(value: Any) -> Any:
    """Turn a contract value into dicts and lists, exactly as they would stand in JSON."""
    # `msgspec.to_builtins` would leave tuples, which equal no list that was read from JSON.
    return msgspec.json.decode(msgspec.json.encode(value))


def from_plain(data: Any, kind: type[T]) -> T:
    """Build a contract value from dicts and lists as they come out of JSON."""
    return msgspec.convert(data, kind)


def iso_time(unix_seconds: float) -> str:
    """Write a time as ISO 8601 UTC with milliseconds and Z."""
    moment = datetime.fromtimestamp(unix_seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
