"""The trail of what people and agents did, one row each."""

from __future__ import annotations

import builtins
from typing import Any

from sqlalchemy import Connection

from binderclip.contract.company import Activity
from binderclip.contract.ids import new_id
from binderclip.store.shape import Shape
from binderclip.store.tables import activity

_shape = Shape(activity, Activity, "activity", detail=dict[str, Any])


class Activities:
    """The trail that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def note(
        self,
        company_id: str,
        actor: str,
        verb: str,
        subject: tuple[str, str],
        now: str,
        **detail: Any,
    ) -> Activity:
        """Note that `actor` did `verb` to `subject`, its kind and id."""
        done = Activity(
            id=new_id(),
            company_id=company_id,
            at=now,
            actor=actor,
            verb=verb,
            subject_kind=subject[0],
            subject_id=subject[1],
            detail=detail,
        )
        return _shape.insert(self._connection, done)

    def list(
        self,
        company_id: str | None = None,
        *,
        subject: tuple[str, str] | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> builtins.list[Activity]:
        """The trail, newest first."""
        conditions = []
        if company_id is not None:
            conditions.append(activity.c.company_id == company_id)
        if subject is not None:
            conditions.append(activity.c.subject_kind == subject[0])
            conditions.append(activity.c.subject_id == subject[1])
        page = _shape.page(*conditions, limit=limit, before=before)
        return [_shape.read(row) for row in self._connection.execute(page).mappings()]
