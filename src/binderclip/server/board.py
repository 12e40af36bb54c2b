"""One small stream for lists: which run is in which state, told to everybody who looks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from binderclip.contract.ids import new_id
from binderclip.server.feeds import event

KEPT = 1000
KEEP_ALIVE_SECONDS = 15.0


class Board:
    """The last notices, numbered; a viewer that missed more than these starts again."""

    def __init__(self) -> None:
        self._boot = new_id()[-8:]
        """Numbers begin again with each server, so ids carry which one gave them."""
        self._notices: deque[tuple[int, str, str | None, bytes]] = deque(maxlen=KEPT)
        self._count = 0
        self._viewers: set[asyncio.Event] = set()
        self._closing = False

    @property
    def watched(self) -> bool:
        return bool(self._viewers)

    def post(self, name: str, company_id: str | None, data: bytes) -> None:
        """Tell everybody of that company; called in the server's loop."""
        self._count += 1
        self._notices.append((self._count, name, company_id, data))
        self._wake()

    def close(self) -> None:
        self._closing = True
        self._wake()

    async def events(self, last_id: str | None, company_id: str | None) -> AsyncIterator[bytes]:
        """Notices behind the last one that the viewer knows; `reset` if some are lost."""
        seen, woken = self._resume(last_id), asyncio.Event()
        self._viewers.add(woken)
        try:
            yield b"retry: 1000\n\n"
            if seen is None:
                seen = self._count
                yield event("reset", self._id(seen), b"{}")
            while not self._closing:
                woken.clear()
                missed = [notice for notice in self._notices if notice[0] > seen]
                if missed and missed[0][0] > seen + 1:
                    yield event("reset", self._id(self._count), b"{}")
                elif missed:
                    yield self._told(missed, company_id)
                seen = self._count if missed else seen
                if not missed and not await _woken(woken):
                    yield b": keep-alive\n\n"
        finally:
            self._viewers.discard(woken)

    def _told(
        self, notices: list[tuple[int, str, str | None, bytes]], company_id: str | None
    ) -> bytes:
        return b"".join(
            event(name, self._id(number), data)
            for number, name, company, data in notices
            if company_id is None or company == company_id
        )

    def _id(self, number: int) -> str:
        return f"{self._boot}.{number}"

    def _resume(self, last_id: str | None) -> int | None:
        boot, _, number = (last_id or "").partition(".")
        if boot != self._boot or not number.isdecimal() or len(number) > 15:
            return None
        return int(number) if int(number) <= self._count else None

    def _wake(self) -> None:
        for viewer in self._viewers:
            viewer.set()


async def _woken(event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            await event.wait()
    except TimeoutError:
        return False
    return True
