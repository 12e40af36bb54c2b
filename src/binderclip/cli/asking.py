"""Asking the API: the running server's, or with none the same routes in this process.

Commands so have one way to do things, with or without a server.
"""

from __future__ import annotations

import json
from pkgutil import resolve_name
from typing import Any

import anyio
import httpx

from binderclip.contract.errors import BinderclipError
from binderclip.store.home import Home
from binderclip.supervisor import locks

LOCK = "worker.lock"
APP = "binderclip.server.app:create_app"
_HERE = "http://127.0.0.1"
_SECONDS = 30.0


class Refusal(BinderclipError):
    """What the API answered instead of doing it."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(
            str(error.get("message", "The server refused.")),
            hint=error.get("hint"),
            fields=error.get("fields"),
        )
        self.code = str(error.get("code", "error"))  # type: ignore[misc]


class Api:
    """The API of one home."""

    def __init__(self, home: Home | None = None) -> None:
        self.home = home or Home.from_env().ensure()
        self.address = running(self.home)
        self._app: Any = None

    @property
    def served(self) -> bool:
        """Whether somebody carries out what is queued: a server, or a worker alone."""
        return locks.held(str(self.home.path / LOCK))

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._app is not None:
            self._app.state.site.database.close()

    def get(self, path: str, **params: Any) -> Any:
        return self.ask("GET", path, params={k: v for k, v in params.items() if v is not None})

    def post(self, path: str, body: Any = None) -> Any:
        return self.ask("POST", path, json=body)

    def patch(self, path: str, body: Any) -> Any:
        return self.ask("PATCH", path, json=body)

    def pages(self, path: str, **params: Any) -> list[Any]:
        """All items of a list, page by page."""
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = self.get(path, **params, limit=200, cursor=cursor)
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                return found

    def ask(self, method: str, path: str, **options: Any) -> Any:
        response = anyio.run(self._ask, method, path, options)
        if response.status_code >= 400:
            raise Refusal(response.json()["error"])
        return response.json() if response.content else None

    async def _ask(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        base, token, transport = self._way()
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            base_url=base, headers=headers, transport=transport, timeout=_SECONDS
        ) as client:
            return await client.request(method, path, **options)

    def _way(self) -> tuple[str, str, httpx.ASGITransport | None]:
        if self.address is not None:
            return self.address, (self.home.path / "token").read_text().strip(), None
        if self._app is None:
            # By name, since the server stands beside the CLI and not below it.
            self._app = resolve_name(APP)(self.home)
        return _HERE, self._app.state.site.tokens.person, httpx.ASGITransport(self._app)


def running(home: Home) -> str | None:
    """Where the home's server listens, if it does; what is there may be the server of another."""
    if not locks.held(str(home.path / LOCK)):
        return None
    try:
        address = str(json.loads((home.path / "server.json").read_text())["address"])
        httpx.get(f"{address}/api/health", timeout=2).raise_for_status()
    except (OSError, ValueError, LookupError, TypeError, httpx.HTTPError):
        return None
    return address
