"""Wakes as rows: every reason that led to a run."""

from __future__ import annotations

from sqlalchemy import Connection, select

from binderclip.contract.wake import Wake
from binderclip.store.shape import Shape
from binderclip.store.tables import wakes

_shape = Shape(wakes, Wake, "wake")


class Wakes:
    """The wakes that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, wake: Wake) -> Wake:
        return _shape.insert(self._connection, wake)

    def of_run(self, run_id: str) -> list[Wake]:
        """Why a run was made, in the order of asking."""
        query = select(wakes).where(wakes.c.run_id == run_id).order_by(wakes.c.at, wakes.c.id)
        return [_shape.read(row) for row in self._connection.execute(query).mappings()]
