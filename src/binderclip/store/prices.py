"""Prices by model, for runtimes that tell tokens but no cost (D10): a known price or none at all.

A row without a source and a date is refused; a bucket without a rate leaves the cost unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from binderclip.contract.errors import StoreError
from binderclip.contract.run import Usage
from binderclip.contract.wire import Wire
from binderclip.store.home import Home

NAME = "prices.toml"
MILLION = 1_000_000
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


class Price(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model costs, in US dollars per million tokens of each bucket."""

    model: str
    """A model's id without its date; `*` stands for anything."""
    input: float
    output: float
    source: str
    date: date
    cache_read: float | None = None
    cache_write: float | None = None


class PriceFile(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    price: tuple[Price, ...] = ()


def shipped_prices() -> tuple[Price, ...]:
    """The rows that come with binderclip."""
    return _read(Path(__file__).with_name(NAME))


def prices(home: Home) -> tuple[Price, ...]:
    """A person's own rows, then the shipped ones: the first that fits counts."""
    own = home.path / NAME
    return (*(_read(own) if own.is_file() else ()), *shipped_prices())


def price_of(model: str, rows: Sequence[Price]) -> Price | None:
    """The row for a model, whatever provider or date its name carries."""
    name = model.rpartition("/")[2]
    names = (name, _DATED.sub("", name))
    return next((row for row in rows if any(fnmatchcase(n, row.model) for n in names)), None)


def cost_of(usage: Usage, price: Price) -> float | None:
    """What the tokens cost, or None where a count or its rate is not known."""
    parts = (
        (usage.input_tokens, price.input),
        (usage.cached_input_tokens, price.cache_read),
        (usage.cache_write_tokens or 0, price.cache_write),
        (usage.output_tokens, price.output),
    )
    total = 0.0
    for tokens, rate in parts:
        if tokens is None or (tokens and rate is None):
            return None
        total += tokens * (rate or 0.0)
    return round(total / MILLION, 10)


def _read(path: Path) -> tuple[Price, ...]:
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), PriceFile).price
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as fault:
        hint = "Every [[price]] needs model, input, output, source and date."
        raise StoreError(f"{path} cannot be used: {fault}", hint=hint) from fault
