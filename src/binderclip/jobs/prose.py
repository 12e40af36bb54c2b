"""Agents' Markdown as HTML that can do nothing: no raw HTML, no images, links to the web only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

LONGEST = 50_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SCHEMES = frozenset({"http", "https", "mailto"})


def prose(text: str) -> str:
    """The text as HTML; one that is too long to lay out is shown as it is."""
    if len(text) > LONGEST:
        return plain(text)
    return str(_markdown().render(printable(text)))


def plain(text: str) -> str:
    """Text as it is, in a block that keeps its lines."""
    return f'<p class="pre">{escape(printable(text))}</p>'


def printable(text: str) -> str:
    """The text without characters that no page may hold."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r", ""))


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True})
    markdown.enable(["table", "strikethrough"])
    markdown.validateLink = _is_harmless  # type: ignore[method-assign]
    markdown.add_render_rule("image", _image)
    markdown.add_render_rule("link_open", _link)
    return markdown


def _is_harmless(url: str) -> bool:
    try:
        return urlsplit(url.strip()).scheme.lower() in _SCHEMES
    except ValueError:
        return False


def _link(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noopener noreferrer nofollow")
    tokens[at].attrSet("target", "_blank")
    return renderer.renderToken(tokens, at, options, env)


def _image(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """A picture is named, not fetched: the page opens without a network."""
    token = tokens[at]
    alt = renderer.renderInlineAsText(token.children, options, env) if token.children else ""
    return f'<span class="picture">{escape(alt or str(token.attrGet("src") or "picture"))}</span>'
