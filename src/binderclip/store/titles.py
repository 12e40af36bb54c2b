"""What a run is called in lists: what it was asked, its task, else the command line that it is."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TypeVar

import msgspec

from binderclip.contract.run import RunOrder
from binderclip.contract.wire import Wire
from binderclip.store.runfile import ORDER

_LONGEST = 200
W = TypeVar("W", bound=Wire)


class _Command(Wire, frozen=True, kw_only=True):
    command: str
    args: tuple[str, ...]


class _Asked(Wire, frozen=True, kw_only=True):
    """The parts of an order that tell a title."""

    config: msgspec.Raw = msgspec.Raw(b"{}")
    context: msgspec.Raw = msgspec.Raw(b"{}")


class _Task(Wire, frozen=True, kw_only=True):
    title: str


class _Context(Wire, frozen=True, kw_only=True):
    task: _Task


def title_of(order: RunOrder) -> str | None:
    """The title of a run whose order is at hand."""
    told = _first_line(order.prompt)
    return told or _told(msgspec.json.encode(order.context), msgspec.json.encode(order.config))


def title_in(directory: str, prompt: str | None) -> str | None:
    """The title of a run of which only the row was read; its order is opened if need be."""
    told = _first_line(prompt)
    if told is not None:
        return told
    try:
        asked = msgspec.json.decode((Path(directory) / ORDER).read_bytes(), type=_Asked)
    except (OSError, msgspec.DecodeError):
        return None
    return _told(asked.context, asked.config)


def _told(context: bytes | msgspec.Raw, config: bytes | msgspec.Raw) -> str | None:
    """The task's title, else the command line; other contexts and configurations do not fit."""
    task, command = _read(context, _Context), _read(config, _Command)
    if task is not None:
        return _first_line(task.task.title)
    return _line(command) if command is not None else None


def _read(data: bytes | msgspec.Raw, kind: type[W]) -> W | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        return None


def _line(command: _Command) -> str | None:
    return _first_line(shlex.join((command.command, *command.args)))


def _first_line(text: str | None) -> str | None:
    lines = (text or "").strip().splitlines()
    return lines[0].strip()[:_LONGEST] if lines else None
