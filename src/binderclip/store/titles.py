"""What a run is called in lists: what it was asked, else the command line that it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from binderclip.contract.run import RunOrder
from binderclip.contract.wire import Wire
from binderclip.store.runfile import ORDER

_LONGEST = 200


class _Command(Wire, frozen=True, kw_only=True):
    command: str
    args: tuple[str, ...]


class _Asked(Wire, frozen=True, kw_only=True):
    """The part of an order that tells a command; of other runtimes it does not fit."""

    config: _Command


def title_of(order: RunOrder) -> str | None:
    """The title of a run whose order is at hand."""
    told = _first_line(order.prompt)
    if told is not None:
        return told
    try:
        return _line(msgspec.convert(order.config, _Command))
    except msgspec.ValidationError:
        return None


def title_in(directory: str, prompt: str | None) -> str | None:
    """The title of a run of which only the row was read; its order is opened if need be."""
    told = _first_line(prompt)
    if told is not None:
        return told
    try:
        asked = msgspec.json.decode((Path(directory) / ORDER).read_bytes(), type=_Asked)
    except (OSError, msgspec.DecodeError):
        return None
    return _line(asked.config)


def _line(command: _Command) -> str | None:
    return _first_line(shlex.join((command.command, *command.args)))


def _first_line(text: str | None) -> str | None:
    lines = (text or "").strip().splitlines()
    return lines[0].strip()[:_LONGEST] if lines else None
