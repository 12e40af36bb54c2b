"""Tokens that a runtime told, in disjoint buckets (D10)."""

from __future__ import annotations

from typing import Literal

from binderclip.contract.wire import Wire

UsageSource = Literal["reported", "derived", "unknown"]


class Usage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Tokens in disjoint buckets; None means that the runtime did not tell (D10).

    `input_tokens` are fresh ones; `output_tokens` include `reasoning_tokens`.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    source: UsageSource = "reported"
