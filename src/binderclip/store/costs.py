"""What was used and what it cost, by agent, adapter, model and day; and what of a budget is spent.

Money that a runtime did not tell is unknown and counted apart, never as zero (D10).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from binderclip.contract.agent import Budget, Spent
from binderclip.contract.company import CostLine
from binderclip.contract.ids import floor_id
from binderclip.contract.wire import iso_time
from binderclip.store.rows import dollars
from binderclip.store.tables import runs, usage

_DAY = func.substr(runs.c.ended_at, 1, 10)


class Costs:
    """Sums that one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lines(
        self,
        company_id: str | None = None,
        *,
        agent_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> list[CostLine]:
        """Finished runs by day, newest first; `since` and `until` are days, both included."""
        conditions: list[ColumnElement[bool]] = [runs.c.finalized]
        if company_id is not None:
            conditions.append(runs.c.company_id == company_id)
        if agent_id is not None:
            conditions.append(runs.c.agent_id == agent_id)
        if since is not None:
            conditions.append(since <= _DAY)
        if until is not None:
            conditions.append(until >= _DAY)
        return [_line(row) for row in self._connection.execute(_by_day(conditions)).mappings()]

    def spent(self, agent_id: str, budget: Budget, now: float) -> Spent:
        """What an agent's runs used since the budget's period began; working ones count as runs."""
        since = period_start(budget, now)
        conditions = [runs.c.agent_id == agent_id, runs.c.scheduled, runs.c.status != "queued"]
        if since is not None:
            conditions.append(runs.c.id >= floor_id(since))
        counted = select(
            func.count(),
            func.coalesce(func.sum(runs.c.cost_nanousd), 0),
        ).where(*conditions)
        count, nano = self._connection.execute(counted).one()
        return Spent(
            usd=dollars(int(nano)) or 0.0,
            tokens=self._tokens(conditions),
            runs=count,
            minutes=self._minutes(conditions, now),
            since=None if since is None else iso_time(since),
        )

    def _tokens(self, conditions: list[ColumnElement[bool]]) -> int:
        joined = select(func.coalesce(func.sum(_all_tokens()), 0)).select_from(
            usage.join(runs, runs.c.id == usage.c.run_id)
        )
        return int(self._connection.scalar(joined.where(*conditions)) or 0)

    def _minutes(self, conditions: list[ColumnElement[bool]], now: float) -> float:
        query = select(runs.c.started_at, runs.c.ended_at)
        rows = self._connection.execute(query.where(runs.c.started_at.is_not(None), *conditions))
        return sum(_seconds(began, ended, now) for began, ended in rows) / 60


def period_start(budget: Budget, now: float) -> float | None:
    """When the budget's period began, in UTC; None for one that never ends."""
    moment = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if budget.period == "total":
        return None
    return (moment.replace(day=1) if budget.period == "month" else moment).timestamp()


def _seconds(began: str, ended: str | None, now: float) -> float:
    end = datetime.fromisoformat(ended).timestamp() if ended else now
    return max(0.0, end - datetime.fromisoformat(began).timestamp())


def _all_tokens() -> ColumnElement[int]:
    names = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
    first, *rest = (func.coalesce(usage.c[name], 0) for name in names)
    total: ColumnElement[int] = first
    for each in rest:
        total = total + each
    return total


def _by_day(conditions: list[ColumnElement[bool]]) -> Any:
    keys = (_DAY, runs.c.agent_id, runs.c.adapter_type, runs.c.model)
    return (
        select(
            _DAY.label("day"),
            *keys[1:],
            func.count(runs.c.id.distinct()).label("runs"),
            *(
                func.coalesce(func.sum(usage.c[name]), 0).label(name)
                for name in (
                    "input_tokens",
                    "cached_input_tokens",
                    "cache_write_tokens",
                    "output_tokens",
                )
            ),
            func.coalesce(func.sum(usage.c.cost_nanousd), 0).label("nano"),
            func.count(case((runs.c.cost_nanousd.is_(None), runs.c.id)).distinct()).label(
                "unknown"
            ),
        )
        .select_from(runs.outerjoin(usage, usage.c.run_id == runs.c.id))
        .where(*conditions)
        .group_by(*keys)
        .order_by(_DAY.desc(), runs.c.agent_id, runs.c.adapter_type, runs.c.model)
    )


def _line(row: Any) -> CostLine:
    return CostLine(
        day=row["day"],
        agent_id=row["agent_id"],
        adapter_type=row["adapter_type"],
        model=row["model"],
        runs=row["runs"],
        input_tokens=int(row["input_tokens"]),
        cached_input_tokens=int(row["cached_input_tokens"]),
        cache_write_tokens=int(row["cache_write_tokens"]),
        output_tokens=int(row["output_tokens"]),
        cost_usd=dollars(int(row["nano"])) or 0.0,
        runs_of_unknown_cost=row["unknown"],
    )
