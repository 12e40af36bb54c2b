"""Error classes from what model vendors answer."""

from __future__ import annotations

import pytest

from binderclip.sdk.vendor_errors import failure_by_status


@pytest.mark.parametrize(
    ("status", "message", "code", "family"),
    [
        (401, "no", "auth", "auth"),
        (403, "no", "auth", "auth"),
        (400, "API key not valid. Please pass a valid API key.", "auth", "auth"),
        (
            400,
            "The input token count exceeds the maximum number of tokens",
            "context_overflow",
            None,
        ),
        (402, "pay", "quota", "provider_quota"),
        (404, "no such model", "bad_config", None),
        (413, "prompt is too long: 9 tokens", "context_overflow", None),
        (429, "slow down", "rate_limit", "transient_upstream"),
        (429, "You exceeded your current quota", "quota", "provider_quota"),
        (500, "oops", "upstream", "transient_upstream"),
        (529, "Overloaded", "upstream", "transient_upstream"),
        (None, "fetch failed", "upstream", "transient_upstream"),
        (None, "you hit a rate limit", "rate_limit", "transient_upstream"),
        (None, "insufficient_quota", "quota", "provider_quota"),
    ],
)
def test_an_answer_has_its_class(
    status: int | None, message: str, code: str, family: str | None
) -> None:
    """A9: failures are told apart."""
    found = failure_by_status(status, message)
    assert found is not None
    assert (found.code, found.family, found.message) == (code, family, message)


@pytest.mark.parametrize(("status", "message"), [(400, "bad field"), (418, "tea"), (None, "hm")])
def test_an_answer_that_tells_nothing_has_no_class(status: int | None, message: str) -> None:
    assert failure_by_status(status, message) is None


def test_a_status_decides_before_words() -> None:
    found = failure_by_status(500, "you exceeded your current quota")
    assert found is not None and found.code == "upstream"
