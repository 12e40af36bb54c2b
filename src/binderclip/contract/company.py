"""Companies: the scope that agents, tasks and secrets belong to (R1)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from binderclip.contract.wire import Wire

LOCAL_COMPANY = "local"
"""The company that every home has from the start."""

NetworkCeiling = Literal["none", "allowlist", "open"]


class Company(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A scope, and the policy that its agents may only narrow (A12, A13)."""

    id: str
    name: str
    forbid_dangerous: bool = False
    network: NetworkCeiling = "open"
    created_at: str = ""
    updated_at: str = ""


class Environment(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Where runs may work: this machine, or another one by ssh."""

    id: str
    company_id: str
    name: str
    kind: Literal["local", "ssh"] = "local"
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""


class SecretView(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A secret by its name; its value is never shown."""

    id: str
    company_id: str
    name: str
    created_at: str
    updated_at: str


class Activity(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Something that somebody did, for people who look back."""

    id: str
    company_id: str
    at: str
    actor: str
    verb: str
    subject_kind: str
    subject_id: str
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class CostLine(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What was used by one agent with one adapter and model on one day."""

    day: str
    agent_id: str
    adapter_type: str
    model: str | None
    runs: int
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float
    runs_of_unknown_cost: int
    """Runs whose runtime told no cost; their money is not in `cost_usd` (D10)."""
