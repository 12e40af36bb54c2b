"""The page for foreign parsers, as a browser is told to treat it."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

from tests.server.conftest import Served


def test_the_sandbox_page_forbids_everything_but_its_own_script(served: Served) -> None:
    """U4: an opaque origin, no network, and the one script named by its hash."""
    answer = served.client.get("/sandbox")
    policy = answer.headers["content-security-policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", answer.text, re.S)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("sandbox allow-scripts; default-src 'none';")
    assert f"script-src 'sha256-{digest}' blob:;" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy and "nonce" not in policy


def test_lines_tell_where_they_began(served: Served) -> None:
    """D3: a browser names its entries by the same offsets as the host."""
    agent = served.agent("printer", "echo one; echo three")
    run = served.post(f"/api/agents/{agent}/wakeup", {"reason": "manual"})["runId"]
    served.ended(run)
    lines = served.get(f"/api/runs/{run}/lines")["lines"]
    assert [(line["offset"], line["bytes"]) for line in lines] == [(0, None), (4, None)]
