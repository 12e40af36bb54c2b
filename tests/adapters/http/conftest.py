"""The loopback endpoint of a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.http.endpoint import Endpoint, serving


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as one:
        yield one
