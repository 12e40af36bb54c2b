"""The start of the server imports only what every server needs."""

from __future__ import annotations

import subprocess
import sys

LATER = ("alembic", "jwt", "cryptography", "rich", "httpx", "psycopg")


def test_what_few_requests_need_is_imported_by_them() -> None:
    """D11: start-up counts."""
    code = (
        "import sys, binderclip.server.serve;"
        f"print([name for name in {LATER!r} if name in sys.modules])"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
