"""Codex's items: messages, commands, file changes, searches, plans, other agents."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from binderclip.sdk import (
    Assistant,
    Diff,
    Entry,
    System,
    Thinking,
    ToolCall,
    ToolKind,
    ToolResult,
    as_string,
    as_string_array,
    parse_object,
)
from binderclip.sdk.diff import patch_diff

_SHELLS = ("/bin/bash -lc ", "/bin/sh -lc ", "/bin/zsh -lc ", "bash -lc ", "sh -lc ", "zsh -lc ")
_LONGEST_TITLE = 120
_LONGEST_UNQUOTED = 10_000
_NO_END = "Codex did not tell how this ended."
_Maker = Callable[[dict[str, Any]], tuple[str, ToolKind, Any, str]]


class Items:
    """The items of one run; a tool's call is shown when it starts, its result when it ends."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}

    def entries(self, item: dict[str, Any], done: bool, ts: str) -> Sequence[Entry] | None:
        """What an item shows now; None if its type is unknown."""
        kind = item.get("type")
        make = _CALLS.get(kind) if type(kind) is str else None
        if make is not None:
            return self._tool(item, make, done, ts)
        if kind == "agent_message" or kind == "reasoning":
            return _words(kind, item, ts) if done else ()
        if kind == "todo_list":
            return self._plan(item, done, ts)
        if kind != "error":
            return None
        message = as_string(item.get("message"))
        return (System(ts=ts, text=message),) if done and message else ()

    def left_open(self, ts: str) -> list[Entry]:
        """Results for what started and never ended: commands of more than about ten seconds."""
        silent = [
            ToolResult(ts=ts, tool_use_id=use, tool_name=name, content=_NO_END, is_error=False)
            for use, name in self._open.items()
        ]
        self._open.clear()
        return list(silent)

    def _tool(self, item: dict[str, Any], make: _Maker, done: bool, ts: str) -> list[Entry]:
        use = as_string(item.get("id"))
        found: list[Entry] = []
        if use not in self._open:
            name, kind, given, title = make(item)
            self._open[use] = name
            found.append(
                ToolCall(
                    ts=ts,
                    name=name,
                    input=given,
                    tool_use_id=use,
                    tool_kind=kind,
                    title=title.split("\n", 1)[0][:_LONGEST_TITLE] or None,
                )
            )
        if done:
            found += _result(item, use, self._open.pop(use), ts)
        return found

    def _plan(self, item: dict[str, Any], done: bool, ts: str) -> list[Entry]:
        use = as_string(item.get("id"))
        steps = [_step(step) for step in _objects(item.get("items"))]
        plan = ToolCall(
            ts=ts,
            name="todo_list",
            input={"items": steps},
            tool_use_id=use,
            tool_kind="todo",
            title=next((s["text"] for s in steps if s["status"] == "pending"), None),
        )
        if not done:
            return [plan]
        end = ToolResult(ts=ts, tool_use_id=use, tool_name="todo_list", content="", is_error=False)
        return [plan, end]


def _words(kind: str, item: dict[str, Any], ts: str) -> Sequence[Entry]:
    text = as_string(item.get("text"))
    if not text:
        return ()
    return (Assistant(ts=ts, text=text) if kind == "agent_message" else Thinking(ts=ts, text=text),)


def _result(item: dict[str, Any], use: str, name: str, ts: str) -> list[Entry]:
    code, told = item.get("exit_code"), item.get("error")
    code = code if type(code) is int else None
    error = as_string(told.get("message")) if isinstance(told, dict) else ""
    failed = bool(code or error) or item.get("status") in ("failed", "declined")
    result = ToolResult(
        ts=ts,
        tool_use_id=use,
        tool_name=name,
        content=error or _content(item),
        is_error=failed,
        exit_code=code,
    )
    return [result] if failed or "changes" not in item else [result, *_changes(item, use, ts)]


def _content(item: dict[str, Any]) -> str:
    output = item.get("aggregated_output")
    if isinstance(output, str):
        return output
    parts = _objects(parse_object(item.get("result")).get("content"))
    if parts:
        return "\n".join(as_string(part.get("text")) or f"[{part.get('type')}]" for part in parts)
    states = parse_object(item.get("agents_states")).values()
    said = [as_string(parse_object(state).get("message")) for state in states]
    return "\n".join(words for words in said if words) or as_string(item.get("status"))


def _changes(item: dict[str, Any], use: str, ts: str) -> list[Diff]:
    """Which files changed; what changed in them only if this version tells it."""
    found: list[Diff] = []
    for change in _objects(item.get("changes")):
        path, patch = as_string(change.get("path")), as_string(change.get("diff"))
        if patch:
            found += patch_diff(ts, path, patch, use)
        elif path:
            text = f"{as_string(change.get('kind'))} {path}".strip()
            found.append(
                Diff(ts=ts, change_type="file_header", text=text, tool_use_id=use, path=path)
            )
    return found


def _command(item: dict[str, Any]) -> tuple[str, ToolKind, Any, str]:
    command = unwrapped(as_string(item.get("command")))
    return "command_execution", "shell", {"command": command}, command


def _file_change(item: dict[str, Any]) -> tuple[str, ToolKind, Any, str]:
    changes = _objects(item.get("changes"))
    paths = [as_string(change.get("path")) for change in changes]
    new = bool(changes) and all(change.get("kind") == "add" for change in changes)
    return "file_change", "write" if new else "edit", {"changes": changes}, ", ".join(paths)


def _mcp(item: dict[str, Any]) -> tuple[str, ToolKind, Any, str]:
    tool = f"{as_string(item.get('server'))}.{as_string(item.get('tool'))}"
    return tool, "mcp", item.get("arguments"), tool


def _web_search(item: dict[str, Any]) -> tuple[str, ToolKind, Any, str]:
    query = as_string(item.get("query"))
    return "web_search", "web", {"query": query, "action": item.get("action")}, query


def _other_agent(item: dict[str, Any]) -> tuple[str, ToolKind, Any, str]:
    tool, prompt = as_string(item.get("tool")), as_string(item.get("prompt"))
    to = as_string_array(item.get("receiver_thread_ids"))
    return tool or "collab", "agent", {"prompt": prompt, "to": to}, prompt or tool


_CALLS: dict[str, _Maker] = {
    "command_execution": _command,
    "file_change": _file_change,
    "mcp_tool_call": _mcp,
    "web_search": _web_search,
    "collab_tool_call": _other_agent,
}


def unwrapped(command: str) -> str:
    """The command that the agent wrote, without the shell that Codex puts around it."""
    shell = next((prefix for prefix in _SHELLS if command.startswith(prefix)), None)
    if shell is None:
        return command
    inner = command[len(shell) + 1 : -1]
    quote = command[len(shell) : len(shell) + 1]
    plain = quote in ("'", '"') and command[-1:] == quote and len(command) > len(shell) + 1
    if plain and quote not in inner and (quote == "'" or "\\" not in inner):
        return inner
    return _unquoted(command, command[len(shell) :])


def _unquoted(command: str, word: str) -> str:
    if len(word) > _LONGEST_UNQUOTED:
        return command
    try:
        words = shlex.split(word)
    except ValueError:
        return command
    return words[0] if len(words) == 1 else command


def _step(step: dict[str, Any]) -> dict[str, str]:
    done = step.get("completed") is True
    return {"text": as_string(step.get("text")), "status": "completed" if done else "pending"}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
