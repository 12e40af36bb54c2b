"""What a run leaves in its private directory: the session's id and the tokens of the session.

Standard output names the session only at the end and tokens never (D10).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from binderclip.sdk import Facts, Usage, as_string, parse_json, parse_object, safe_session_id
from binderclip.sdk.usage import add, count, from_inclusive

USAGE_FILE = "copilot-usage.json"
SESSION_FILE = "copilot-session"
_NAMESPACE = UUID("6f1d7c1e-52a8-4b0e-9c55-6d0b8b0c9a11")


def new_session(run_id: str, scratch: Path) -> str:
    """Choose the id of a fresh session, so that a run that is killed can be continued too."""
    chosen = str(uuid5(_NAMESPACE, run_id))
    (scratch / SESSION_FILE).write_text(chosen, "utf-8")
    return chosen


def chosen_session(scratch: Path) -> str | None:
    """The id that this run's command line chose, if it began a session."""
    try:
        return safe_session_id((scratch / SESSION_FILE).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def read_usage(scratch: Path, facts: Facts, generated: bool) -> None:
    """Fill in the counts of the usage file: they cover all runs of the session.

    An answer that broke off is not counted there, so no count after one is unknown, not zero.
    """
    try:
        told = parse_json((scratch / USAGE_FILE).read_bytes())
    except OSError:
        return
    if told is None or not isinstance(told.get("modelMetrics"), dict):
        return
    if told["modelMetrics"] or not generated:
        facts.usage = session_usage(told["modelMetrics"])
        facts.usage_basis = "session_cumulative"
    facts.model = facts.model or as_string(told.get("currentModel")) or None


def session_usage(metrics: dict[str, Any]) -> Usage:
    """The sum over all models; a session that called none has used nothing."""
    total: Usage | None = None
    for model in metrics.values():
        used = parse_object(parse_object(model).get("usage"))
        total = add(total, _buckets(used))
    return total or Usage(
        input_tokens=0, cached_input_tokens=0, cache_write_tokens=0, output_tokens=0
    )


def _buckets(used: dict[str, Any]) -> Usage:
    """One model's counts; thinking that exceeds the output is no part of it, so it is left out."""
    output, reasoning = count(used.get("outputTokens")), count(used.get("reasoningTokens"))
    return from_inclusive(
        input_tokens=count(used.get("inputTokens")),
        cached=count(used.get("cacheReadTokens")),
        cache_write=count(used.get("cacheWriteTokens")),
        output=output,
        reasoning=reasoning if (reasoning or 0) <= (output or 0) else None,
    )
