"""What a foreign parser returned, as entries of the contract (T1, T4); the browser does the same.

The rules and their vectors are shared with the web app: equal values in, equal entries out.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, get_args

from binderclip.contract.entry import (
    ENTRY_KINDS,
    Assistant,
    ChangeType,
    Diff,
    Entry,
    Init,
    Result,
    Stderr,
    Stdout,
    System,
    Thinking,
    ToolCall,
    ToolKind,
    ToolResult,
    User,
)

MOST_ENTRIES = 200
_CHANGES = get_args(ChangeType)
_TOOL_KINDS = get_args(ToolKind)
_GROWING: dict[str, type[Assistant] | type[Thinking]] = {
    "assistant": Assistant,
    "thinking": Thinking,
}
_PLAIN: dict[str, type[User] | type[Stderr] | type[System] | type[Stdout]] = {
    "user": User,
    "stderr": Stderr,
    "system": System,
    "stdout": Stdout,
}


class Repair:
    """Turns the answers of one run's foreign parser into entries; knows which calls are open."""

    def __init__(self, *, renumber: bool = False) -> None:
        self.dropped = 0
        self._renumber = renumber
        self._made = 0
        self._uses: dict[str, int] = {}
        self._open: list[tuple[str, str, str, bool]] = []
        """Open calls: the id that was told, the one in force, the name, whether it was made up."""

    def entries(self, answer: Any, ts: str) -> list[Entry]:
        """The entries of one line; things that are none are dropped and counted."""
        if answer is None:
            return []
        given = answer if isinstance(answer, list) else [answer]
        made = (self._one(item, ts) for item in given[:MOST_ENTRIES])
        return [entry for entry in made if entry is not None]

    def _one(self, item: Any, ts: str) -> Entry | None:
        entry = self._shaped(item, ts)
        if entry is None:
            self.dropped += 1
        return entry

    def _shaped(self, item: Any, ts: str) -> Entry | None:
        kind = item.get("kind") if isinstance(item, dict) else None
        if not isinstance(kind, str):
            return None
        if kind not in ENTRY_KINDS:
            return Stdout(ts=ts, text=compact(item))
        parent = _text(item, "parentToolUseId")
        if kind in _GROWING or kind in _PLAIN:
            return _plain(kind, item, ts, parent)
        if kind == "tool_call":
            return self._call(item, ts, parent)
        if kind == "tool_result":
            return self._result(item, ts, parent)
        if kind == "diff":
            return _diff(item, ts, parent)
        return _init(item, ts) if kind == "init" else _end(item, ts)

    def _call(self, item: dict[str, Any], ts: str, parent: str | None) -> Entry | None:
        name = item.get("name")
        if not isinstance(name, str):
            return None
        told = _text(item, "toolUseId") or ""
        used = self._id_of_call(told)
        self._open.append((told, used, name, not told))
        kind = item.get("toolKind")
        return ToolCall(
            ts=ts,
            name=name,
            input=item["input"] if item.get("input") is not None else {},
            tool_use_id=used,
            tool_kind=kind if kind in _TOOL_KINDS else None,
            title=_text(item, "title"),
            parent_tool_use_id=parent,
        )

    def _id_of_call(self, told: str) -> str:
        if not told or self._renumber:
            self._made += 1
            return f"call-{self._made}"
        self._uses[told] = self._uses.get(told, 0) + 1
        return told if self._uses[told] == 1 else f"{told}#{self._uses[told]}"

    def _result(self, item: dict[str, Any], ts: str, parent: str | None) -> Entry | None:
        content = item.get("content")
        if content is None:
            return None
        told, name = _text(item, "toolUseId") or "", _text(item, "toolName")
        used, known, guessed = self._pair(told, name)
        return ToolResult(
            ts=ts,
            tool_use_id=used,
            content=content if isinstance(content, str) else compact(content),
            is_error=item.get("isError") is True,
            tool_name=name or known,
            exit_code=_whole(item, "exitCode"),
            duration_ms=_whole(item, "durationMs"),
            parent_tool_use_id=parent,
            paired_by_guess=guessed,
        )

    def _pair(self, told: str, name: str | None) -> tuple[str, str | None, bool]:
        """The id of the call that a result answers, that call's name, and whether it is a guess."""
        by_id = [call for call in self._open if told and call[0] == told]
        if by_id:
            return self._close(by_id[-1], False)
        wanted = name or told
        by_name = [call for call in self._open if call[2] == wanted]
        if by_name:
            return self._close(by_name[0] if by_name[0][3] else by_name[-1], True)
        nameless = [call for call in self._open if call[3]] if not name and not told else []
        if nameless:
            return self._close(nameless[0], True)
        if told and not self._renumber:
            return told, None, False
        self._made += 1
        return f"call-{self._made}", None, False

    def _close(
        self, call: tuple[str, str, str, bool], guessed: bool
    ) -> tuple[str, str | None, bool]:
        self._open.remove(call)
        return call[1], call[2], guessed


def compact(value: Any) -> str:
    """A value as JSON without blanks, as `JSON.stringify` writes it."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return f"[{','.join(map(compact, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{compact(key)}:{compact(item)}' for key, item in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """JavaScript writes small numbers out to six zeros, and exponents without padding."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e-" not in text:
        return text
    return f"{Decimal(text):f}" if abs(value) >= 1e-6 else text.replace("e-0", "e-")


def _plain(kind: str, item: dict[str, Any], ts: str, parent: str | None) -> Entry | None:
    text = item.get("text")
    if not isinstance(text, str):
        return None
    if kind in _GROWING:
        delta = item.get("delta") is True
        return _GROWING[kind](ts=ts, text=text, delta=delta, parent_tool_use_id=parent)
    return _PLAIN[kind](ts=ts, text=text, parent_tool_use_id=parent)


def _diff(item: dict[str, Any], ts: str, parent: str | None) -> Entry | None:
    text: Any = item.get("text")
    change: Any = item.get("changeType")
    if not isinstance(text, str) or change not in _CHANGES:
        return None
    return Diff(
        ts=ts,
        change_type=change,
        text=text,
        tool_use_id=_text(item, "toolUseId"),
        path=_text(item, "path"),
        parent_tool_use_id=parent,
    )


def _init(item: dict[str, Any], ts: str) -> Entry:
    return Init(ts=ts, model=_text(item, "model") or "", session_id=_text(item, "sessionId") or "")


def _end(item: dict[str, Any], ts: str) -> Entry:
    cost: Any = item.get("costUsd")
    errors = item.get("errors")
    return Result(
        ts=ts,
        text=_text(item, "text") or "",
        input_tokens=_whole(item, "inputTokens") or 0,
        output_tokens=_whole(item, "outputTokens") or 0,
        cached_tokens=_whole(item, "cachedTokens") or 0,
        cost_usd=float(cost) if _is_number(cost) else None,
        subtype=_text(item, "subtype") or "",
        is_error=item.get("isError") is True,
        errors=tuple(e for e in errors if isinstance(e, str)) if isinstance(errors, list) else (),
    )


def _text(item: dict[str, Any], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) and value else None


def _whole(item: dict[str, Any], key: str) -> int | None:
    value: Any = item.get(key)
    return int(value) if _is_number(value) and abs(value) < 2**53 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
