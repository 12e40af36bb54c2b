"""Codex's adapter meets what every adapter must."""

from __future__ import annotations

import pytest

from binderclip.adapters.codex_local import create_adapter
from binderclip.sdk.testing.conformance import Requirement, requirements


@pytest.mark.parametrize("requirement", requirements(create_adapter()), ids=str)
def test_the_adapter_conforms(requirement: Requirement) -> None:
    """A1-A10, T1-T4, S2, S4, E1-E3: as each requirement says."""
    requirement()
