"""D10: a cost is computed from known rates, or it is unknown."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from binderclip.contract.errors import StoreError
from binderclip.contract.run import Usage
from binderclip.store.home import Home
from binderclip.store.prices import Price, cost_of, price_of, prices, shipped_prices

ROW = Price(
    model="model-1", input=2.0, cache_read=0.2, output=10.0, source="a page", date=date(2026, 1, 2)
)
USAGE = Usage(input_tokens=1000, cached_input_tokens=500, cache_write_tokens=0, output_tokens=100)
OWN = """
[[price]]
model = "model-*"
input = 1.0
output = 1.0
source = "our contract"
date = 2026-02-03
"""


def test_a_cost_is_the_sum_over_disjoint_buckets() -> None:
    assert cost_of(USAGE, ROW) == pytest.approx((1000 * 2 + 500 * 0.2 + 100 * 10) / 1e6, abs=1e-12)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=1, output_tokens=1),
        Usage(cached_input_tokens=1, output_tokens=1),
        Usage(input_tokens=1, cached_input_tokens=0, output_tokens=1, cache_write_tokens=1),
    ],
    ids=["cache reads not told", "input not told", "no rate for cache writes"],
)
def test_a_missing_count_or_rate_leaves_the_cost_unknown(usage: Usage) -> None:
    assert cost_of(usage, ROW) is None


@pytest.mark.parametrize(
    "name", ["model-1", "vendor/model-1", "model-1-20260102", "vendor/model-1-2026-01-02"]
)
def test_a_model_is_found_by_its_name_without_provider_and_date(name: str) -> None:
    assert price_of(name, [ROW]) is ROW
    assert price_of("model-1-5", [ROW]) is None


def test_a_persons_own_rows_win(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    assert prices(home) == shipped_prices()
    (home.path / "prices.toml").write_text(OWN)
    found = price_of("model-1", (*prices(home), ROW))
    assert found is not None and found.source == "our contract"


@pytest.mark.parametrize("line", ['source = "our contract"', "date = 2026-02-03"])
def test_a_row_without_source_or_date_is_refused(tmp_path: Path, line: str) -> None:
    home = Home(tmp_path / "home").ensure()
    (home.path / "prices.toml").write_text(OWN.replace(line, ""))
    with pytest.raises(StoreError, match=r"prices\.toml cannot be used"):
        prices(home)


def test_every_shipped_row_names_a_page_of_the_vendor() -> None:
    assert {row.source.split("/")[2] for row in shipped_prices()} <= {"platform.claude.com"}
