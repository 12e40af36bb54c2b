"""Everything that clients sent, with keys masked before anybody can read it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

_SECRET_NAME = re.compile(r"key|token|secret|password|passwd|authorization|cookie", re.IGNORECASE)
_SECRET_QUERY = re.compile(r"([?&][^=&]*(?:key|token)[^=&]*=)[^&]*", re.IGNORECASE)


class RecordedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """One HTTP request; `turn` is the index of the turn that answered it, None for an aside."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    wire: str | None = None
    turn: int | None = None


def masked_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): "***" if _SECRET_NAME.search(name) else value for name, value in headers}


def masked_target(target: str) -> str:
    return _SECRET_QUERY.sub(r"\1***", target)


class Recording:
    """An append-only list of requests that threads can wait on, optionally also a JSONL file."""

    def __init__(self, log: Path | None = None) -> None:
        self._log = log
        self._requests: list[RecordedRequest] = []
        self._arrived = threading.Condition()

    def add(self, request: RecordedRequest) -> None:
        with self._arrived:
            self._requests.append(request)
            if self._log is not None:
                with self._log.open("ab") as file:
                    file.write(msgspec.json.encode(request) + b"\n")
            self._arrived.notify_all()

    def all(self) -> tuple[RecordedRequest, ...]:
        with self._arrived:
            return tuple(self._requests)

    def wait_for_turns(self, count: int, timeout: float) -> tuple[RecordedRequest, ...]:
        """The first `count` requests that took a turn, as soon as they are there."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self._turns()) >= count, timeout):
                seen = len(self._turns())
                raise TimeoutError(f"{seen} of {count} turns were asked for in {timeout} s")
            return tuple(self._turns()[:count])

    def _turns(self) -> list[RecordedRequest]:
        return [request for request in self._requests if request.turn is not None]
