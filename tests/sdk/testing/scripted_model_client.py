"""A client of the scripted model that speaks raw HTTP on all four wires."""

import json
from typing import Any

import httpx

from binderclip.sdk.testing.scripted_model import ScriptedModel

WIRES = ("anthropic", "responses", "chat", "gemini")
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}

_PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/g-1:generateContent",
}
_TOOLS: dict[str, dict[str, Any]] = {
    "anthropic": {"name": "Bash", "input_schema": SHELL},
    "responses": {"type": "function", "name": "exec_command", "parameters": SHELL},
    "chat": {"type": "function", "function": {"name": "bash", "parameters": SHELL}},
    "gemini": {
        "functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": SHELL}]
    },
}


def path(wire: str, *, stream: bool = False) -> str:
    if wire == "gemini" and stream:
        return "/v1beta/models/g-1:streamGenerateContent?alt=sse"
    return _PATHS[wire]


def body(wire: str, *, stream: bool = False, **fields: Any) -> dict[str, Any]:
    """A small request with a shell tool; `fields` replace what is there."""
    said: dict[str, dict[str, Any]] = {
        "anthropic": {"messages": [{"role": "user", "content": "hi"}]},
        "responses": {"input": "hi"},
        "chat": {"messages": [{"role": "user", "content": "hi"}]},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    }
    named = {} if wire == "gemini" else {"model": "m-1", "stream": stream}
    return {**named, **said[wire], "tools": [_TOOLS[wire]], **fields}


def ask(
    model: ScriptedModel,
    wire: str,
    *,
    stream: bool = False,
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> httpx.Response:
    url = model.url + path(wire, stream=stream)
    sent = body(wire, stream=stream, **fields)
    return httpx.post(url, json=sent, headers=headers, timeout=30)


def events(response: httpx.Response) -> list[dict[str, Any]]:
    """The data of each server-sent event, without the closing marker of the chat wire."""
    assert response.headers["content-type"] == "text/event-stream"
    return parse_events(response.text)


def parse_events(text: str) -> list[dict[str, Any]]:
    lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def said(wire: str, whole: dict[str, Any]) -> str:
    """The text in an answer that was not streamed."""
    if wire == "anthropic":
        return "".join(block.get("text", "") for block in whole["content"])
    if wire == "responses":
        messages = [item for item in whole["output"] if item["type"] == "message"]
        return "".join(item["content"][0]["text"] for item in messages)
    if wire == "chat":
        return whole["choices"][0]["message"]["content"] or ""
    parts = whole["candidates"][0]["content"]["parts"]
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))
