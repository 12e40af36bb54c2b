"""The words of an export: what a tool did, how long, how much, how it ended. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from binderclip.contract.entry import Diff, ToolCall, ToolKind, ToolResult
from binderclip.contract.run import RunState, RunView, Usage

VERBS: dict[ToolKind, str] = {
    "shell": "Ran",
    "read": "Read",
    "write": "Wrote",
    "edit": "Edited",
    "search": "Searched",
    "web": "Looked up",
    "todo": "Plan",
    "agent": "Sub-agent",
}
STATES: dict[RunState, tuple[str, str]] = {
    "queued": ("○", "queued"),
    "starting": ("◌", "starting"),
    "running": ("◌", "running"),
    "finalizing": ("◌", "finalizing"),
    "succeeded": ("✓", "succeeded"),
    "failed": ("✗", "failed"),
    "timed_out": ("◷", "timed out"),
    "cancelled": ("⊘", "cancelled"),
    "lost": ("?", "lost"),
}
_TELLING = ("command", "cmd", "script", "file_path", "filePath", "absolute_path", "path")
_TELLING_MORE = ("pattern", "query", "url", "description", "prompt", "name")
_LABEL = 300


def verb(call: ToolCall) -> str:
    """What the agent did, by the kind of its tool; the tool's own name where the kind is open."""
    return VERBS.get(call.tool_kind or "other", call.name or "tool")


def target(call: ToolCall) -> str:
    """What a tool was asked to do, on one line."""
    if call.tool_kind == "todo" and (items := plan_items(call)):
        return f"{sum(done for _, done in items)} of {len(items)} done"
    if call.title:
        return _line(call.title)
    return _line(_telling(call.input))


def plan_items(call: ToolCall) -> list[tuple[str, bool]]:
    """The points of a plan, and whether each is done."""
    items = call.input.get("items") if isinstance(call.input, Mapping) else None
    if not isinstance(items, list):
        return []
    return [
        (str(item.get("text", "")), item.get("status") in ("completed", "done"))
        for item in items
        if isinstance(item, Mapping)
    ]


def input_text(call: ToolCall) -> str:
    """The whole input; a shell's is its command."""
    given = call.input
    if call.tool_kind == "shell":
        told = _telling(given)
        if told:
            return told
    if given is None or given in ({}, ""):
        return ""
    return given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)


def outcome(result: ToolResult | None) -> str:
    """`exit 1 · 12.4 s`."""
    if result is None:
        return "no result"
    facts = []
    if result.exit_code:
        facts.append(f"exit {result.exit_code}")
    elif result.is_error:
        facts.append("failed")
    if result.duration_ms is not None and result.duration_ms >= 50:
        facts.append(duration(result.duration_ms / 1000))
    return " · ".join(facts)


def failed(result: ToolResult | None) -> bool:
    return result is not None and (result.is_error or bool(result.exit_code))


def diff_counts(lines: list[Diff]) -> str:
    """`+12 −3`."""
    added = sum(line.change_type == "add" for line in lines)
    removed = sum(line.change_type == "remove" for line in lines)
    return f"+{added} −{removed}" if added or removed else ""


def duration(seconds: float) -> str:
    """`0.4 s`, `34 s`, `2 min 05 s`, `1 h 07 min`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def took(view: RunView) -> str:
    try:
        begin = datetime.fromisoformat(view.created_at)
        end = datetime.fromisoformat(view.ended_at or "")
    except ValueError:
        return ""
    return duration((end - begin).total_seconds())


def tokens(usage: Usage | None) -> str:
    """`in 1,234 · cached 10,000 · out 567`, with only what the runtime told."""
    if usage is None:
        return ""
    parts = (
        ("in", usage.input_tokens),
        ("cached", usage.cached_input_tokens or None),
        ("out", usage.output_tokens),
    )
    return " · ".join(f"{name} {count:,}" for name, count in parts if count is not None)


def cost(view: RunView) -> str:
    """Dollars, or that they are unknown; never 0 for want of knowledge (D10)."""
    if view.cost_usd is not None:
        return f"${view.cost_usd:,.2f}" if view.cost_usd >= 1 else f"${view.cost_usd:.4f}"
    return "cost unknown" if view.usage else ""


def title(view: RunView) -> str:
    """What lists call the run, or its directory."""
    lines = (view.prompt or view.title or "").strip().splitlines()
    return _line(lines[0]) if lines else f"{view.adapter_type} in {view.cwd or '?'}"


def facts(view: RunView) -> list[str]:
    """What stands below the title."""
    model = " ".join(part for part in (view.adapter_type, view.model) if part)
    told = [model, view.created_at.replace("T", " ")[:19] + " UTC" if view.created_at else ""]
    told += [took(view), tokens(view.usage), cost(view)]
    if view.coverage and view.coverage.unknown:
        told.append(f"{view.coverage.understood:,} of {view.coverage.lines:,} lines understood")
    return [fact for fact in told if fact]


def _telling(given: Any) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        return "" if given is None else json.dumps(given, ensure_ascii=False, default=str)
    for key in (*_TELLING, *_TELLING_MORE):
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return " ".join(value)
    return json.dumps(given, ensure_ascii=False, default=str) if given else ""


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1] + "…"
