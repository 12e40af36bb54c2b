"""Secrets: sealed in the database, opened only for the environment of an agent's process (D7).

The key is a file of its own (0600); without it the database tells names, never values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from binderclip.contract.company import SecretView
from binderclip.contract.errors import ConfigError, NotFound, StoreError
from binderclip.contract.ids import new_id
from binderclip.store.home import Home
from binderclip.store.jsonfile import write_atomic
from binderclip.store.shape import Shape
from binderclip.store.tables import secrets

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY_FILE = "secrets.key"
_shape = Shape(secrets, SecretView, "secret")


class Secrets:
    """The secrets that one transaction sees; only `open` tells a value."""

    def __init__(self, connection: Connection, home: Home) -> None:
        self._connection = connection
        self._home = home

    def set(self, company_id: str, name: str, value: str, now: str) -> SecretView:
        """Keep a value under a name; one that was there is replaced."""
        if not name.strip() or not value:
            raise ConfigError(
                "A secret needs a name and a value.", fields={"name": "", "value": ""}
            )
        sealed = _fernet(self._home, make=True).encrypt(value.encode()).decode()
        row = self._row(company_id, name)
        if row is None:
            view = SecretView(
                id=new_id(), company_id=company_id, name=name, created_at=now, updated_at=now
            )
            values = {**_shape.row(view), "sealed": sealed}
            self._connection.execute(insert(secrets).values(**values))
            return view
        change = update(secrets).where(secrets.c.id == row["id"])
        self._connection.execute(change.values(sealed=sealed, updated_at=now))
        return _shape.read(self._known(company_id, name))

    def list(self, company_id: str) -> list[SecretView]:
        """The names, in order."""
        query = select(secrets).where(secrets.c.company_id == company_id).order_by(secrets.c.name)
        return [_shape.read(row) for row in self._connection.execute(query).mappings()]

    def remove(self, company_id: str, name: str) -> None:
        id = self._known(company_id, name)["id"]
        self._connection.execute(delete(secrets).where(secrets.c.id == id))

    def open(self, company_id: str, name: str) -> str:
        """The value, for the process of an agent and nothing else."""
        from cryptography.fernet import InvalidToken

        try:
            sealed = self._known(company_id, name)["sealed"]
            return _fernet(self._home).decrypt(sealed.encode()).decode()
        except InvalidToken as problem:
            raise StoreError(
                f"The secret {name!r} cannot be opened with {self._home.path / KEY_FILE}.",
                hint="Put the key back that it was sealed with, or set the secret again.",
            ) from problem

    def _row(self, company_id: str, name: str) -> RowMapping | None:
        query = select(secrets).where(secrets.c.company_id == company_id, secrets.c.name == name)
        return self._connection.execute(query).mappings().one_or_none()

    def _known(self, company_id: str, name: str) -> RowMapping:
        row = self._row(company_id, name)
        if row is None:
            raise NotFound(f"There is no secret {name!r}.", hint="Set it before it is named.")
        return row


def secret_name(value: object) -> str | None:
    """The name in a reference, `{"secret": NAME}` or Paperclip's `{"type": "secret_ref", …}`."""
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "secret_ref":
        named = value.get("name") or value.get("secretId")
    else:
        named = value.get("secret") if len(value) == 1 else None
    return named if isinstance(named, str) else None


def replace_references(value: Any, open: Callable[[str], str]) -> Any:
    """A configuration with every reference replaced by what `open` gives for its name."""
    name = secret_name(value)
    if name is not None:
        return open(name)
    if isinstance(value, Mapping):
        return {key: replace_references(item, open) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_references(item, open) for item in value]
    return value


def _fernet(home: Home, *, make: bool = False) -> Fernet:
    # Only now: a server starts more often than it opens a secret.
    from cryptography.fernet import Fernet

    path = home.path / KEY_FILE
    try:
        return Fernet(path.read_bytes())
    except FileNotFoundError as problem:
        if not make:
            raise StoreError(f"The key of the secrets, {path}, is missing.") from problem
    except ValueError as problem:
        raise StoreError(f"{path} holds no key.", hint="Restore it from a backup.") from problem
    fresh = path.with_name(f"{KEY_FILE}.{os.getpid()}.new")
    write_atomic(fresh, Fernet.generate_key(), durable=True)
    try:
        # A link, not a rename: of two processes that make the first key, one wins.
        path.hardlink_to(fresh)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return Fernet(path.read_bytes())
