"""Filling a person's templates with values of the run and of an answer.

A value never becomes part of a template's structure: JSON is built as values, URLs are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from binderclip.sdk import render_template

LONGEST_PART = 1000

_PLACEHOLDER = re.compile(r"\{\{\s*([\w.$-]+)\s*\}\}")


class UnfilledUrl(ValueError):
    """A URL template names a value that is missing or cannot stand in a URL."""


def fill(template: Any, data: Mapping[str, Any]) -> Any:
    """The template with its strings rendered; a string of one placeholder becomes the value."""
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template.strip())
        value = value_at(data, whole[1]) if whole else None
        return render_template(template, data) if value is None else value
    if isinstance(template, Mapping):
        return {key: fill(item, data) for key, item in template.items()}
    return [fill(item, data) for item in template] if isinstance(template, list) else template


def fill_url(template: str, data: Mapping[str, Any]) -> str:
    """The URL with each value escaped, so that it stays inside its own part."""
    return _PLACEHOLDER.sub(lambda match: _url_part(match[1], value_at(data, match[1])), template)


def value_at(data: Any, path: str) -> Any:
    """The value at a dotted path of names and positions, or None."""
    for part in path.split("."):
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list) and part.isdecimal() and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def shown_url(url: str) -> str:
    """The address as logs may show it: queries often carry keys."""
    parts = urlsplit(url)
    query = "?…" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{query}"


def _url_part(path: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UnfilledUrl(f"there is no text or number at {path}")
    text = str(value)
    if not text.strip(".") or len(text) > LONGEST_PART:
        raise UnfilledUrl(f"the value at {path} cannot stand in a URL")
    return quote(text, safe="")
