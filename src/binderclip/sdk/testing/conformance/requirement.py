"""One numbered requirement of the suite: calling it raises `AssertionError` if it is not met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from binderclip.sdk.adapter import Adapter, CliAdapter
from binderclip.sdk.testing.fixtures import Case, cases_of


@dataclass(frozen=True)
class Subject:
    """The adapter under test, and values for the config fields that it requires."""

    adapter: Adapter
    config: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def cases(self) -> list[Case]:
        return cases_of(self.adapter)

    @property
    def is_cli(self) -> bool:
        return isinstance(self.adapter, CliAdapter)


@dataclass(frozen=True)
class Requirement:
    """A sentence that holds for this adapter, or else its call raises."""

    number: int
    sentence: str
    check: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.number:02d} {self.sentence}"

    def __call__(self) -> None:
        self.check()


def demand(holds: object, otherwise: str) -> None:
    """Like `assert`, but it stays in optimised runs and says what to do."""
    if not holds:
        raise AssertionError(otherwise)
