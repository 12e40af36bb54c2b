"""Cursor CLI's adapter meets what every adapter must meet, over all its recordings."""

from __future__ import annotations

import pytest

from binderclip.adapters.cursor import create_adapter
from binderclip.sdk.testing.conformance import Requirement, requirements


@pytest.mark.parametrize("requirement", requirements(create_adapter()), ids=str)
def test_adapter_conforms(requirement: Requirement) -> None:
    requirement()
