"""Companies as rows; `local` is there from the start."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from binderclip.contract.company import Company
from binderclip.contract.ids import new_id
from binderclip.store.shape import Shape
from binderclip.store.tables import companies

_shape = Shape(companies, Company, "company")


class Companies:
    """The companies that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, name: str, now: str) -> Company:
        company = Company(id=new_id(), name=name, created_at=now, updated_at=now)
        return _shape.insert(self._connection, company)

    def get(self, id: str) -> Company:
        return _shape.read(_shape.get(self._connection, id))

    def list(self) -> list[Company]:
        """Every company, the oldest first."""
        rows = self._connection.execute(select(companies).order_by(companies.c.created_at))
        return [_shape.read(row) for row in rows.mappings()]

    def change(self, id: str, now: str, **fields: Any) -> Company:
        _shape.get(self._connection, id)
        _shape.change(self._connection, id, {**fields, "updated_at": now})
        return self.get(id)
