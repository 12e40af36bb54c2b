"""Environments as rows: where runs may work besides this machine."""

from __future__ import annotations

import builtins
from typing import Any

from sqlalchemy import Connection, delete, select

from binderclip.contract.company import Environment
from binderclip.contract.errors import Conflict
from binderclip.contract.ids import new_id
from binderclip.store.shape import Shape, changed
from binderclip.store.tables import agents, environments, tasks

_shape = Shape(environments, Environment, "environment", config=dict[str, Any])


class Environments:
    """The environments that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, environment: Environment, now: str) -> Environment:
        made = changed(environment, id=environment.id or new_id(), created_at=now, updated_at=now)
        self._refuse_taken(made)
        return _shape.insert(self._connection, made)

    def get(self, id: str) -> Environment:
        return _shape.read(_shape.get(self._connection, id))

    def list(self, company_id: str | None = None) -> builtins.list[Environment]:
        query = select(environments).order_by(environments.c.name)
        if company_id is not None:
            query = query.where(environments.c.company_id == company_id)
        return [_shape.read(row) for row in self._connection.execute(query).mappings()]

    def change(self, id: str, now: str, **fields: Any) -> Environment:
        self._refuse_taken(changed(self.get(id), **fields))
        _shape.change(self._connection, id, {**fields, "updated_at": now})
        return self.get(id)

    def remove(self, id: str) -> None:
        """Forget an environment that no agent and no task names."""
        self.get(id)
        for table in (agents, tasks):
            users = select(table.c.id).where(table.c.environment_id == id).limit(1)
            if self._connection.scalar(users) is not None:
                raise Conflict("The environment is in use.", code="in_use")
        self._connection.execute(delete(environments).where(environments.c.id == id))

    def _refuse_taken(self, wanted: Environment) -> None:
        if any(e.name == wanted.name and e.id != wanted.id for e in self.list(wanted.company_id)):
            message = f"There is an environment called {wanted.name!r} already."
            raise Conflict(message, code="name_taken")
