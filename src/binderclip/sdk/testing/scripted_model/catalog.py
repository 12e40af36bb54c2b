"""The lists of models that clients ask for before they start."""

from __future__ import annotations

import re

from .script import Json


def model_list(path: str, names: tuple[str, ...]) -> Json | None:
    """The answer to a GET of a model list or of one model, None for any other path."""
    found = re.search(r"/models(?:/(?P<one>[^/]+))?/?$", path)
    if found is None:
        return None
    entry = _gemini if "/v1beta" in path else _openai
    if found["one"] is not None:
        return entry(found["one"])
    entries = [entry(name) for name in names]
    return {"models": entries} if entry is _gemini else _page(entries)


def _page(entries: list[Json]) -> Json:
    ends = {"first_id": entries[0]["id"], "last_id": entries[-1]["id"]} if entries else {}
    return {"object": "list", "data": entries, "has_more": False, **ends}


def _openai(name: str) -> Json:
    """One shape that satisfies both OpenAI's and Anthropic's clients."""
    dates = {"created": 1735689600, "created_at": "2025-01-01T00:00:00Z"}
    named = {"id": name, "display_name": name, "owned_by": "scripted"}
    return {"object": "model", "type": "model", **named, **dates}


def _gemini(name: str) -> Json:
    methods = ["generateContent", "countTokens"]
    limits = {"inputTokenLimit": 1_000_000, "outputTokenLimit": 65_536}
    return {
        "name": f"models/{name}",
        "displayName": name,
        "supportedGenerationMethods": methods,
        **limits,
    }
