"""How a contract structure stands in a table: fields and columns have the same names."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    bindparam,
    insert,
    select,
    update,
)

from binderclip.contract.errors import NotFound
from binderclip.contract.wire import Wire, from_json
from binderclip.store.rows import json_text

W = TypeVar("W", bound=Wire)


class Shape(Generic[W]):
    """One structure, one table; the fields named in `json` are kept as JSON text."""

    def __init__(self, table: Table, kind: type[W], what: str, **json: Any) -> None:
        self.table = table
        self.kind = kind
        self.what = what
        self._json = json
        # Built once, since building a statement takes longer than running it.
        self._insert = insert(table)
        self._one = select(table).where(table.c.id == bindparam("one"))

    def row(self, value: W) -> dict[str, Any]:
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return self.columns(fields)

    def columns(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Field values as column values; what the table does not keep is left out."""
        return {
            name: json_text(value) if name in self._json else value
            for name, value in fields.items()
            if name in self.table.c
        }

    def read(self, row: RowMapping, **more: Any) -> W:
        """A row as its structure; `more` are fields that other tables hold."""
        fields = {name: row[name] for name in self.kind.__struct_fields__ if name in self.table.c}
        for name, kind in self._json.items():
            if fields[name] is not None:
                fields[name] = from_json(fields[name], kind)
        return self.kind(**fields, **more)

    def insert(self, connection: Connection, value: W, **more: Any) -> W:
        connection.execute(self._insert, {**self.row(value), **more})
        return value

    def get(self, connection: Connection, id: str, *, lock: bool = False) -> RowMapping:
        """The row of an id, locked for this transaction where the database can; or NotFound."""
        query = self._one.with_for_update() if lock else self._one
        found = connection.execute(query, {"one": id}).mappings().one_or_none()
        if found is None:
            raise NotFound(f"There is no {self.what} {id!r}.")
        return found

    def change(self, connection: Connection, id: str, fields: dict[str, Any]) -> None:
        """Set some fields; an unknown name is a mistake of the caller."""
        unknown = set(fields) - set(self.kind.__struct_fields__)
        if unknown:
            raise TypeError(f"{self.what} has no {', '.join(sorted(unknown))}")
        values = self.columns(fields)
        if values:
            connection.execute(update(self.table).where(self.table.c.id == id).values(**values))

    def page(self, *conditions: ColumnElement[bool], limit: int, before: str | None) -> Select[Any]:
        """A page of rows, newest first, older than the row `before`."""
        query = select(self.table).where(*conditions).order_by(self.table.c.id.desc()).limit(limit)
        return query if before is None else query.where(self.table.c.id < before)


def changed(value: W, **fields: Any) -> W:
    return msgspec.structs.replace(value, **fields)
