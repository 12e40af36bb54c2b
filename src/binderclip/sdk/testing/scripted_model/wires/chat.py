"""OpenAI Chat Completions: `/v1/chat/completions`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

from ..exchange import Action, Asked, DeclaredTool, Event, Reply, ToolUse
from ..script import Failure, Json, Usage
from .openai import arguments_text, error_body


class ChatWire:
    name = "chat"

    def route(self, path: str) -> Action | None:
        return "generate" if path.endswith("/chat/completions") else None

    def read(self, target: str, body: Json) -> Asked:
        wanted = (body.get("response_format") or {}).get("json_schema") or {}
        return Asked(
            model=body.get("model", "scripted-1"),
            stream=bool(body.get("stream")),
            tools=tuple(_declared(tool) for tool in body.get("tools") or ()),
            schema=wanted.get("schema"),
        )

    def whole(self, asked: Asked, reply: Reply) -> Json:
        message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.uses:
            message["tool_calls"] = [_call(use, arguments_text(use)) for use in reply.uses]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(reply)}
        return {
            **_head(asked, "chat.completion"),
            "choices": [choice],
            "usage": _usage(reply.usage),
        }

    def events(self, asked: Asked, reply: Reply) -> Iterator[Event]:
        head = _head(asked, "chat.completion.chunk")
        for delta in _deltas(reply):
            piece = "role" not in delta
            yield Event({**head, "choices": [_choice(delta, None)], "usage": None}, piece=piece)
        yield Event({**head, "choices": [_choice({}, _stop(reply))], "usage": None})
        # Sent also to clients that did not ask for it, as many compatible servers do.
        yield Event({**head, "choices": [], "usage": _usage(reply.usage)})
        yield Event("[DONE]")

    def error(self, failure: Failure) -> Json:
        return error_body(failure)

    def failed(self, asked: Asked, failure: Failure) -> Event:
        return Event(error_body(failure))

    def count(self, tokens: int) -> Json:
        return {"input_tokens": tokens}


def _declared(tool: Json) -> DeclaredTool:
    if tool.get("type") == "custom":
        return DeclaredTool(tool["custom"]["name"], kind="custom")
    function = tool["function"]
    return DeclaredTool(function["name"], function.get("parameters") or {})


def _head(asked: Asked, kind: str) -> Json:
    ident = f"chatcmpl-{uuid.uuid4().hex[:24]}"
    return {"id": ident, "object": kind, "created": int(time.time()), "model": asked.model}


def _stop(reply: Reply) -> str:
    return reply.stop or ("tool_calls" if reply.uses else "stop")


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _call(use: ToolUse, arguments: str) -> Json:
    ident = f"call_{use.id}"
    if use.tool.kind == "custom":
        named = {"name": use.tool.name, "input": arguments}
        return {"id": ident, "type": "custom", "custom": named}
    named = {"name": use.tool.name, "arguments": arguments}
    return {"id": ident, "type": "function", "function": named}


def _choice(delta: Json, finish: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _deltas(reply: Reply) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": piece} for piece in reply.pieces(reply.thinking))
    yield from ({"content": piece} for piece in reply.pieces(reply.text))
    for index, use in enumerate(reply.uses):
        yield {"tool_calls": [{"index": index, **_call(use, "")}]}
        payload, key = (
            ("custom", "input") if use.tool.kind == "custom" else ("function", "arguments")
        )
        for piece in reply.pieces(arguments_text(use)):
            yield {"tool_calls": [{"index": index, payload: {key: piece}}]}
