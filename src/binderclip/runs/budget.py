"""Budgets in USD, tokens, runs and minutes, of an agent and of one run (D10).

Minutes are measured here and can always stop a run in flight; money and tokens only where the
runtime tells its usage step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection

from binderclip.contract.agent import Agent, Budget, Spent
from binderclip.contract.manifest import UsageTold
from binderclip.contract.run import Usage
from binderclip.sdk.usage import total_tokens
from binderclip.store.costs import Costs


def agent_over_budget(connection: Connection, agent: Agent, now: float) -> str | None:
    """Which line of its budget an agent has reached, in words."""
    if not agent.budget.is_set:
        return None
    return line_reached(agent.budget, spent_by(connection, agent, now))


def spent_by(connection: Connection, agent: Agent, now: float) -> Spent:
    """What an agent used of its budget; not looked up when it has none."""
    if not agent.budget.is_set:
        return Spent()
    return Costs(connection).spent(agent.id, agent.budget, now)


def line_reached(budget: Budget, spent: Spent) -> str | None:
    """The first line that is reached, in words."""
    period = {"day": "a day", "month": "a month", "total": "in all"}[budget.period]
    if budget.usd is not None and spent.usd >= budget.usd:
        return f"${spent.usd:.2f} of ${budget.usd:g} {period} are spent"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens} of {budget.tokens} tokens {period} are used"
    if budget.runs is not None and spent.runs >= budget.runs:
        return f"{spent.runs} of {budget.runs} runs {period} are made"
    if budget.minutes is not None and spent.minutes >= budget.minutes:
        return f"{spent.minutes:.1f} of {budget.minutes:g} minutes {period} are over"
    return None


def budget_note(agent: Agent, told: UsageTold) -> str | None:
    """How the budgets hold for a run with this runtime; None when there are none."""
    if not (agent.budget.is_set or agent.run_budget.is_set):
        return None
    if told == "step":
        return "The budget stops this run in flight."
    money = any(
        limit is not None
        for budget in (agent.budget, agent.run_budget)
        for limit in (budget.usd, budget.tokens)
    )
    if not money:
        return "The budget stops this run in flight."
    when = "at its end" if told == "end" else "never"
    return (
        f"This runtime tells its usage {when}: the budget in money and tokens is checked between "
        "runs only."
    )


class RunBudget:
    """The lines that one run must not cross: its own, and what its agent has left."""

    def __init__(self, agent: Agent, spent: Spent, told: UsageTold, clock: Callable[[], float]):
        self._limits = [
            (agent.run_budget, Spent(), "the run's budget"),
            (agent.budget, spent, "the agent's budget"),
        ]
        self._told = told
        self._clock = clock
        self._began = clock()

    def begin(self, started_at: str | None) -> None:
        """The run's time counts from here."""
        if started_at is not None:
            self._began = datetime.fromisoformat(started_at).timestamp()

    def crossed(self, usage: Usage | None, cost_usd: float | None) -> str | None:
        """Which line the run has crossed by now, in words."""
        minutes = max(0.0, self._clock() - self._began) / 60
        step = self._told == "step"
        for budget, before, whose in self._limits:
            now = Spent(
                usd=before.usd + (cost_usd or 0.0) if step else 0.0,
                tokens=before.tokens + total_tokens(usage) if step else 0,
                minutes=before.minutes + minutes,
            )
            line = line_reached(_without_runs(budget, step), now)
            if line is not None:
                return f"{whose}: {line}"
        return None


def _without_runs(budget: Budget, step: bool) -> Budget:
    return Budget(
        usd=budget.usd if step else None,
        tokens=budget.tokens if step else None,
        minutes=budget.minutes,
        period=budget.period,
    )
