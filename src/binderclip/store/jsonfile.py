"""JSON that was asked to hold whatever an agent printed: encoding never fails on its content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from binderclip.contract.errors import StoreError
from binderclip.supervisor.documents import put

T = TypeVar("T")

_DEEPEST = 200
_encoder = msgspec.json.Encoder(enc_hook=repr)
# Lone surrogates and endless nesting are legal JSON; a parser in Python may make odd keys.
_UNENCODABLE = (UnicodeEncodeError, RecursionError, TypeError)


def encode(value: Any) -> bytes:
    """A value as JSON; lone surrogates become question marks, bottomless nesting a note."""
    try:
        return _encoder.encode(value)
    except _UNENCODABLE:
        return _encoder.encode(_encodable(value, 0))


def encode_lines(values: Sequence[Any]) -> bytes:
    """Values as JSON lines; see `encode`."""
    try:
        return _encoder.encode_lines(values)
    except _UNENCODABLE:
        return b"".join(encode(value) + b"\n" for value in values)


def write_atomic(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Put a file in place whole or not at all; a disk that refuses it is a `StoreError`."""
    try:
        put(str(path), data, durable=durable)
    except OSError as problem:
        hint = "Check its owner and the free space of the disk."
        raise StoreError(f"{path} cannot be written: {problem.strerror}.", hint=hint) from problem


def read_json(path: Path, kind: type[T]) -> T:
    """Read a document of a known shape; FileNotFoundError when there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        hint = "Restore it from a backup or move its directory away."
        raise StoreError(f"{path} is damaged: {problem}.", hint=hint) from problem


def _encodable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth > _DEEPEST:
        return "(nested too deeply to be kept)"
    if isinstance(value, msgspec.Struct):
        return _encodable_struct(value, depth)
    if isinstance(value, dict):
        return {_encodable(str(key), depth): _encodable(value[key], depth + 1) for key in value}
    if isinstance(value, list | tuple):
        return [_encodable(item, depth + 1) for item in value]
    return value


def _encodable_struct(value: msgspec.Struct, depth: int) -> msgspec.Struct:
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    clean = {name: _encodable(item, depth + 1) for name, item in fields.items()}
    return msgspec.structs.replace(value, **clean)
