"""Anthropic Messages: `/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

from ..exchange import SEAL, Action, Asked, DeclaredTool, Event, Reply
from ..script import Failure, Json, Usage

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicWire:
    name = "anthropic"

    def route(self, path: str) -> Action | None:
        if path.endswith("/messages/count_tokens"):
            return "count"
        return "generate" if path.endswith("/messages") else None

    def read(self, target: str, body: Json) -> Asked:
        declared = [tool for tool in body.get("tools") or () if "input_schema" in tool]
        output = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        return Asked(
            model=body.get("model", "scripted-1"),
            stream=bool(body.get("stream")),
            tools=tuple(DeclaredTool(tool["name"], tool["input_schema"]) for tool in declared),
            schema=output.get("schema"),
        )

    def whole(self, asked: Asked, reply: Reply) -> Json:
        return {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": _blocks(reply),
            "stop_reason": reply.stop or ("tool_use" if reply.uses else "end_turn"),
            "stop_sequence": None,
            "usage": _usage(reply.usage),
        }

    def events(self, asked: Asked, reply: Reply) -> Iterator[Event]:
        whole = self.whole(asked, reply)
        usage = whole["usage"]
        opening = {**whole, "content": [], "stop_reason": None}
        yield _event("message_start", message={**opening, "usage": {**usage, "output_tokens": 1}})
        yield _event("ping")
        for index, block in enumerate(whole["content"]):
            yield from _block_events(index, block, reply)
        ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=ending, usage=usage)
        yield _event("message_stop")

    def error(self, failure: Failure) -> Json:
        kind = failure.type or _ERROR_TYPES.get(failure.status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": failure.message},
            "request_id": f"req_{uuid.uuid4().hex[:24]}",
        }

    def failed(self, asked: Asked, failure: Failure) -> Event:
        return Event(self.error(failure), "error")

    def count(self, tokens: int) -> Json:
        return {"input_tokens": tokens}


def _event(name: str, /, *, piece: bool = False, **fields: object) -> Event:
    return Event({"type": name, **fields}, name, piece)


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def _blocks(reply: Reply) -> list[Json]:
    blocks: list[Json] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": SEAL})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for use in reply.uses:
        named = {"id": f"toolu_{use.id}", "name": use.tool.name}
        blocks.append({"type": "tool_use", **named, "input": use.arguments})
    return blocks


def _block_events(index: int, block: Json, reply: Reply) -> Iterator[Event]:
    empty, deltas = _streamed(block, reply)
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", piece=True, index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _streamed(block: Json, reply: Reply) -> tuple[Json, list[Json]]:
    """The block as it opens, and the deltas that fill it."""
    if block["type"] == "thinking":
        pieces = reply.pieces(block["thinking"])
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if block["type"] == "text":
        pieces = reply.pieces(block["text"])
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    pieces = reply.pieces(json.dumps(block["input"], ensure_ascii=False))
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return {**block, "input": {}}, deltas
