"""What a run of Claude Code used and cost, over all its results (D10).

Neither count of the CLI has everything: `usage` leaves out sub-agents, the count by model leaves
out a try that was given up. Both are of this run only and never too high, so the larger is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from binderclip.sdk import SpentRecord, Usage, as_string, parse_object
from binderclip.sdk.usage import BUCKETS, add, count

_PROVIDERS = {"firstParty": "anthropic"}


class Spending:
    """Sums the results of one run."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.provider: str | None = None
        self._main: Usage | None = None
        self._models: Usage | None = None
        self._cost = 0.0
        self._cost_known = True

    def add(self, event: dict[str, Any]) -> None:
        """Take one result in."""
        self._main = add(self._main, buckets(event.get("usage")))
        since = event.get("model_usage_since_last_result")
        by_model = since if isinstance(since, dict) else event.get("modelUsage")
        if isinstance(since, dict):
            for model in since.values():
                self._models = add(self._models, buckets_of_model(model))
        self._note(parse_object(by_model))
        self._charge(event, since)
        self.usage = _larger(self._main, self._models)
        if _aborted(event) and not any(_counts(self.usage)):
            self.usage = self.cost_usd = None

    def _note(self, by_model: dict[str, Any]) -> None:
        for model in by_model.values():
            name = as_string(parse_object(model).get("provider"))
            self.provider = _PROVIDERS.get(name, name) or self.provider
            if parse_object(model).get("costBasis") == "unknown":
                self._cost_known = False

    def _charge(self, event: dict[str, Any], since: object) -> None:
        # `total_cost_usd` covers the whole session since some version after 2.1.197; versions
        # that have the share of each result tell exactly what this run cost.
        if isinstance(since, dict):
            self._cost += sum(
                _dollars(parse_object(model).get("costUSD")) for model in since.values()
            )
        else:
            self._cost = _dollars(event.get("total_cost_usd"))
        known = self._cost_known and event.get("total_cost_usd") is not None
        self.cost_usd = round(self._cost, 10) if known else None


def asked(message: dict[str, Any]) -> Sequence[SpentRecord]:
    """What one call took in; a message that goes on tells no real count of its answer."""
    told = buckets(message.get("usage"))
    took = told.input_tokens or told.cached_input_tokens or told.cache_write_tokens
    if message.get("stop_reason") is not None:
        return (SpentRecord(usage=told),) if took or told.output_tokens else ()
    if not took:
        return ()
    return (
        SpentRecord(
            usage=Usage(
                input_tokens=told.input_tokens,
                cached_input_tokens=told.cached_input_tokens,
                cache_write_tokens=told.cache_write_tokens,
            )
        ),
    )


def answered(event: dict[str, Any]) -> Sequence[SpentRecord]:
    """What one call gave back, by the last word of a streamed message."""
    told = buckets(event.get("usage"))
    if told.output_tokens is None:
        return ()
    answer = Usage(output_tokens=told.output_tokens, reasoning_tokens=told.reasoning_tokens)
    return (SpentRecord(usage=answer),)


def buckets(usage: object) -> Usage:
    """Disjoint buckets of the API's own usage object; its input excludes cached tokens."""
    told = parse_object(usage)
    details = parse_object(told.get("output_tokens_details"))
    return Usage(
        input_tokens=count(told.get("input_tokens")),
        cached_input_tokens=count(told.get("cache_read_input_tokens")),
        cache_write_tokens=count(told.get("cache_creation_input_tokens")),
        output_tokens=count(told.get("output_tokens")),
        reasoning_tokens=count(details.get("thinking_tokens")),
    )


def buckets_of_model(usage: object) -> Usage:
    """The same from the count that the CLI keeps by model."""
    told = parse_object(usage)
    return Usage(
        input_tokens=count(told.get("inputTokens")),
        cached_input_tokens=count(told.get("cacheReadInputTokens")),
        cache_write_tokens=count(told.get("cacheCreationInputTokens")),
        output_tokens=count(told.get("outputTokens")),
        reasoning_tokens=count(told.get("thinkingTokens")),
    )


def _larger(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        found = one or other
        return found if any(value is not None for value in _counts(found)) else None
    merged: dict[str, Any] = {}
    for name in BUCKETS:
        known = [n for n in (getattr(one, name), getattr(other, name)) if n is not None]
        merged[name] = max(known, default=None)
    return Usage(**merged) if any(value is not None for value in merged.values()) else None


def _counts(usage: Usage | None) -> list[int | None]:
    return [getattr(usage, name) for name in BUCKETS] if usage else []


def _aborted(event: dict[str, Any]) -> bool:
    return as_string(event.get("terminal_reason")).startswith("aborted")


def _dollars(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 1e9 else 0.0
