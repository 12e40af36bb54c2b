"""D9, D10: what a run uses is shown while it runs, where its runtime tells it step by step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.server.conftest import UP, Served
from tests.server.test_streams import events

ADAPTER = Path(__file__).parents[1] / "runs" / "speaker_adapter.py"
STEPS = 3


def speaking(served: Served, place: Path) -> subprocess.Popen[bytes]:
    """A run in a terminal beside the server, that waits behind its steps."""
    place.mkdir()
    (place / "wait").touch()
    words = ("--adapter", str(ADAPTER), "-c", f"place={place}", "-c", f"steps={STEPS}", "--json")
    return subprocess.Popen(
        [sys.executable, "-c", UP, "run", *words, "speak"],
        env={**os.environ, "BINDERCLIP_HOME": str(served.home.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def test_usage_so_far_is_on_the_stream_and_on_the_run(
    served: Served, tmp_path: Path, waiting: Any
) -> None:
    process = speaking(served, tmp_path / "place")
    try:
        run_id = waiting(lambda: next(served.home.run_ids(), None))
        waiting(lambda: served.client.get(f"/api/runs/{run_id}").status_code == 200)
        with events(served, f"/api/runs/{run_id}/stream") as found:
            told = (event for event in found if event.name == "usage")
            used = next(
                one.data for one in told if one.data["usage"]["outputTokens"] == 100 * STEPS
            )
            assert used["costUsd"] == 0.03
            view = served.get(f"/api/runs/{run_id}")
            assert (view["status"], view["costUsd"]) == ("running", 0.03)
            assert view["usage"]["outputTokens"] == 100 * STEPS
            (tmp_path / "place" / "go").touch()
            assert [one.data["costUsd"] for one in told] == [0.03]
        assert not (served.home.run_dir(run_id) / "usage.json").exists()
    finally:
        process.communicate(timeout=60)
    assert process.returncode == 0
