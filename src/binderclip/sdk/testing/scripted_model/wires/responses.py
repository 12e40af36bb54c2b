"""OpenAI Responses: `/v1/responses`, with reasoning, functions, free-form tools, local shell."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterable, Iterator

from ..exchange import SEAL, Action, Asked, DeclaredTool, Event, Reply, ToolKind, ToolUse
from ..script import Failure, Json, Usage
from .openai import arguments_text, error_body

_KINDS: dict[str, ToolKind] = {"custom": "custom", "local_shell": "local_shell"}


class ResponsesWire:
    name = "responses"

    def route(self, path: str) -> Action | None:
        return "generate" if path.endswith("/responses") else None

    def read(self, target: str, body: Json) -> Asked:
        wanted = (body.get("text") or {}).get("format") or {}
        return Asked(
            model=body.get("model", "scripted-1"),
            stream=bool(body.get("stream")),
            tools=tuple(_declared(body.get("tools") or ())),
            schema=wanted.get("schema"),
        )

    def whole(self, asked: Asked, reply: Reply) -> Json:
        done = {"status": "completed", "output": _items(reply), "usage": _usage(reply.usage)}
        return {**_head(asked), **done}

    def events(self, asked: Asked, reply: Reply) -> Iterator[Event]:
        whole = self.whole(asked, reply)
        numbers = itertools.count()
        for event in _unnumbered(whole, reply):
            assert isinstance(event.data, dict)
            yield Event({**event.data, "sequence_number": next(numbers)}, event.name, event.piece)

    def error(self, failure: Failure) -> Json:
        return error_body(failure)

    def failed(self, asked: Asked, failure: Failure) -> Event:
        error = {"code": failure.type or "server_error", "message": failure.message}
        return _event(
            "response.failed", response={**_head(asked), "status": "failed", "error": error}
        )

    def count(self, tokens: int) -> Json:
        return {"input_tokens": tokens}


def _declared(tools: Iterable[Json], namespace: str | None = None) -> Iterator[DeclaredTool]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _declared(tool.get("tools") or (), tool["name"])
            continue
        kind = str(tool.get("type", "function"))
        name = str(tool.get("name") or kind)
        parameters = tool.get("parameters") or {}
        yield DeclaredTool(name, parameters, _KINDS.get(kind, "function"), namespace)


def _head(asked: Asked) -> Json:
    return {
        "id": _ident("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }


def _ident(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }


def _items(reply: Reply) -> list[Json]:
    items = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        sealed = {"summary": summary, "encrypted_content": SEAL}
        items.append({"id": _ident("rs"), "type": "reasoning", **sealed})
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        said = {"role": "assistant", "status": "completed", "content": content}
        items.append({"id": _ident("msg"), "type": "message", **said})
    return items + [_call(use) for use in reply.uses]


def _call(use: ToolUse) -> Json:
    called: Json = {"call_id": f"call_{use.id}", "status": "completed"}
    if use.tool.kind == "local_shell" and isinstance(use.arguments, dict):
        action = {"type": "exec", "env": {}, **use.arguments}
        return {"id": _ident("lsh"), "type": "local_shell_call", **called, "action": action}
    called["name"] = use.tool.name
    if use.tool.namespace is not None:
        called["namespace"] = use.tool.namespace
    text = arguments_text(use)
    if use.tool.kind == "custom":
        return {"id": _ident("ctc"), "type": "custom_tool_call", **called, "input": text}
    return {"id": _ident("fc"), "type": "function_call", **called, "arguments": text}


def _event(name: str, /, *, piece: bool = False, **fields: object) -> Event:
    return Event({"type": name, **fields}, name, piece)


def _unnumbered(whole: Json, reply: Reply) -> Iterator[Event]:
    opening = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", response=opening)
    yield _event("response.in_progress", response=opening)
    for index, item in enumerate(whole["output"]):
        yield _event("response.output_item.added", output_index=index, item=_opened(item))
        yield from _filling(index, item, reply)
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _event("response.completed", response=whole)


def _opened(item: Json) -> Json:
    """The item as it is announced, before anything is in it."""
    emptied: Json = {
        "reasoning": {"summary": []},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
        "custom_tool_call": {"input": "", "status": "in_progress"},
        "local_shell_call": {"status": "in_progress"},
    }
    return {**item, **emptied[item["type"]]}


def _filling(index: int, item: Json, reply: Reply) -> Iterator[Event]:
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        part, place["summary_index"] = item["summary"][0], 0
        yield from _part_events(
            "reasoning_summary_part", "reasoning_summary_text", part, place, reply
        )
    elif item["type"] == "message":
        part, place["content_index"] = item["content"][0], 0
        yield from _part_events("content_part", "output_text", part, place, reply)
    elif item["type"] == "function_call":
        yield from _text_events("function_call_arguments", "arguments", item, place, reply)
    elif item["type"] == "custom_tool_call":
        yield from _text_events("custom_tool_call_input", "input", item, place, reply)


def _part_events(outer: str, inner: str, part: Json, place: Json, reply: Reply) -> Iterator[Event]:
    yield _event(f"response.{outer}.added", part={**part, "text": ""}, **place)
    yield from _text_events(inner, "text", part, place, reply)
    yield _event(f"response.{outer}.done", part=part, **place)


def _text_events(stem: str, key: str, held: Json, place: Json, reply: Reply) -> Iterator[Event]:
    for piece in reply.pieces(held[key]):
        yield _event(f"response.{stem}.delta", piece=True, delta=piece, **place)
    yield _event(f"response.{stem}.done", **{key: held[key]}, **place)
