"""Gemini: `models/NAME:generateContent`, `:streamGenerateContent` and `:countTokens`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from ..exchange import SEAL, Action, Asked, DeclaredTool, Event, Reply
from ..script import Failure, Json, Usage

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiWire:
    name = "gemini"

    def route(self, path: str) -> Action | None:
        if path.endswith(":countTokens"):
            return "count"
        generate = (":generateContent", ":streamGenerateContent")
        return "generate" if path.endswith(generate) else None

    def read(self, target: str, body: Json) -> Asked:
        named = re.search(r"/models/([^:/]+):", target)
        config = body.get("generationConfig") or {}
        return Asked(
            model=named[1] if named else "scripted-1",
            stream=":streamGenerateContent" in target,
            tools=tuple(_declared(body)),
            schema=config.get("responseJsonSchema") or config.get("responseSchema"),
            sse="alt=sse" in target,
        )

    def whole(self, asked: Asked, reply: Reply) -> Json:
        parts = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
        parts += [{"text": reply.text}] if reply.text else []
        return _frame(asked, reply, parts + _calls(reply), reply.stop or "STOP")

    def events(self, asked: Asked, reply: Reply) -> Iterator[Event]:
        for piece in reply.pieces(reply.thinking):
            yield Event(_frame(asked, reply, [{"text": piece, "thought": True}]), piece=True)
        for piece in reply.pieces(reply.text):
            yield Event(_frame(asked, reply, [{"text": piece}]), piece=True)
        ending = _calls(reply) or [{"text": ""}]
        yield Event(_frame(asked, reply, ending, reply.stop or "STOP"), piece=bool(reply.uses))

    def error(self, failure: Failure) -> Json:
        status = failure.type or _STATUSES.get(failure.status, "INTERNAL")
        return {"error": {"code": failure.status, "message": failure.message, "status": status}}

    def failed(self, asked: Asked, failure: Failure) -> Event:
        return Event(self.error(failure))

    def count(self, tokens: int) -> Json:
        return {"totalTokens": tokens}


def _declared(body: Json) -> Iterator[DeclaredTool]:
    for group in body.get("tools") or ():
        for tool in group.get("functionDeclarations") or ():
            schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
            yield DeclaredTool(tool["name"], schema)


def _frame(asked: Asked, reply: Reply, parts: list[Json], finish: str | None = None) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply.usage),
        "modelVersion": asked.model,
        "responseId": uuid.uuid4().hex[:24],
    }


def _usage(usage: Usage) -> Json:
    counts = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.prompt + usage.output,
    }
    if usage.cache_read:
        counts["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    return counts


def _calls(reply: Reply) -> list[Json]:
    return [
        {
            "functionCall": {"id": use.id, "name": use.tool.name, "args": use.arguments},
            "thoughtSignature": SEAL,
        }
        for use in reply.uses
    ]
