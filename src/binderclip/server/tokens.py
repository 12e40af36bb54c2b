"""Tokens: the person's, a file of the data directory; and a run's, signed, dead with its run.

A run's token says which run, agent and company it is for; whether it still counts is the
business of the run's row.
"""

from __future__ import annotations

import hmac
import os
import secrets
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from binderclip.contract.errors import StoreError
from binderclip.store.home import Home
from binderclip.store.jsonfile import write_atomic

TOKEN_FILE = "token"
_ALGORITHM = "HS256"
_ISSUER = "binderclip"


class RunClaim(NamedTuple):
    """Who a run's token stands for."""

    run_id: str
    agent_id: str
    company_id: str


class Tokens:
    """The tokens of one data directory."""

    def __init__(self, home: Home) -> None:
        self._person = _made_once(home.path / TOKEN_FILE)
        # Of its own: whoever sees a run's token learns nothing about the person's.
        self._key = hmac.digest(self._person.encode(), b"run tokens", sha256)

    @property
    def person(self) -> str:
        return self._person

    def is_person(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._person.encode())

    def for_run(self, run_id: str, agent_id: str, company_id: str) -> str:
        """A token for an agent's process."""
        # Only now, here and below: people need no such token, nor does the start of a server.
        import jwt

        claims = {"iss": _ISSUER, "sub": agent_id, "run": run_id, "company": company_id}
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM)

    def read(self, token: str) -> RunClaim | None:
        """Who a token stands for; None if it was not made here."""
        import jwt

        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[_ALGORITHM],
                issuer=_ISSUER,
                options={"require": ["sub", "run", "company"]},
            )
        except jwt.InvalidTokenError:
            return None
        return RunClaim(str(claims["run"]), str(claims["sub"]), str(claims["company"]))


def _made_once(path: Path) -> str:
    """The token in a file that only its owner reads, made if it is missing."""
    if not path.exists():
        fresh = path.with_name(f"{TOKEN_FILE}.{os.getpid()}.new")
        write_atomic(fresh, secrets.token_urlsafe(32).encode(), durable=True)
        try:
            # A link, not a rename: of two processes that make the first token, one wins.
            path.hardlink_to(fresh)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    token = path.read_text("utf-8").strip()
    if len(token) < 20:
        raise StoreError(f"{path} holds no token.", hint="Delete it: a new one is made.")
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return token
