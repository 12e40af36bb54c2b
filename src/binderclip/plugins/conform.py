"""Whether a Python adapter meets the requirements, and what its recordings show (U7).

Runs in the adapter's own process and environment: its code may hang, crash or need packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from binderclip.sdk.adapter import Adapter
from binderclip.sdk.testing.conformance import requirements
from binderclip.sdk.testing.fixtures import cases_of
from binderclip.sdk.testing.replay import Replay


def conform(adapter: Adapter) -> dict[str, Any]:
    """Failed requirements in words, how many were met, and the score card."""
    failed = []
    all_of_them = requirements(adapter)
    for requirement in all_of_them:
        try:
            requirement()
        except Exception as problem:
            failed.append(f"{requirement}: {problem}")
    return {
        "met": len(all_of_them) - len(failed),
        "failed": failed,
        "tiers": _tiers([case.replayed(adapter) for case in cases_of(adapter)]),
    }


def _tiers(replays: Sequence[Replay]) -> list[dict[str, Any]]:
    """Runs; resumes and reports usage; has recordings of error, timeout, lost session."""
    good = [each for each in replays if each.result.error_code is None]
    resumes = []
    if not any(each.result.session_params for each in good):
        resumes.append("a session id in a recording")
    if not any(each.result.usage for each in good):
        resumes.append("usage in a recording")
    return [
        {"name": "runs", "missing": [] if good else ["a recording of a run that ended well"]},
        {"name": "resumes and reports usage", "missing": resumes},
        {"name": "knows how it fails", "missing": _unknown_failures(replays)},
    ]


def _unknown_failures(replays: Sequence[Replay]) -> list[str]:
    codes = {each.result.error_code for each in replays}
    missing = []
    if not codes - {None, "timeout", "idle_timeout", "unknown_session"}:
        missing.append("a recording of an error")
    if not codes & {"timeout", "idle_timeout"}:
        missing.append("a recording of a timeout")
    if "unknown_session" not in codes:
        missing.append("a recording of a lost session")
    return missing
