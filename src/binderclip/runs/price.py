"""The cost of a run whose runtime told tokens but no money (D10)."""

from __future__ import annotations

import msgspec

from binderclip.contract.errors import StoreError
from binderclip.contract.run import ExecutionResult
from binderclip.runs.driver import Drive
from binderclip.store.prices import cost_of, price_of, prices

RESULT_KEY = "costFrom"
"""Where a run's result says which row of the price table its cost comes from."""


def with_price(drive: Drive, result: ExecutionResult) -> ExecutionResult:
    """The result with a cost from the price table, where the runtime told none and a row fits."""
    usage, model = result.usage, result.model
    if result.cost_usd is not None or usage is None or not model:
        return result
    if result.usage_basis != "per_run":
        return result
    try:
        price = price_of(model, prices(drive.home))
    except StoreError as problem:
        drive.listener.notice(
            f"The cost is unknown: {problem.message} {problem.hint or ''}".strip()
        )
        return result
    cost = cost_of(usage, price) if price else None
    if price is None or cost is None:
        return result
    origin = {"model": price.model, "source": price.source, "date": price.date.isoformat()}
    kept = {**(result.result_json or {}), RESULT_KEY: origin}
    return msgspec.structs.replace(result, cost_usd=cost, result_json=kept)
