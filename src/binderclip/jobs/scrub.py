"""Looking for secrets in what is about to leave the machine, and masking them.

What the supervisor knew is masked in the logs already; this finds what it could not know.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from binderclip.sdk.env import is_secret_name

MASK = "***"
SHORTEST_VALUE = 8
# Not `\b`: a long run of such words is then looked at once, not once for each of them.
_APART = r"(?<![\w-])"
_TOKEN = r"(?=[^\s\"']{0,200}(?-i:\d|[a-z][A-Z]))[\w.~+/=-]"
_FORMS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("an Anthropic key", ("sk-ant-",), _APART + r"sk-ant-[\w-]{16,}"),
    (
        "an OpenAI key",
        ("sk-",),
        _APART + r"sk-(?!ant-)(?:proj-|svcacct-|or-v1-)?(?=[\w-]{0,200}\d)[\w-]{20,}",
    ),
    (
        "an AWS key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _APART + r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    ),
    (
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _APART + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    ),
    (
        "a GitLab token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"),
        _APART + r"gl(?:pat|dt|rt|cbt|ptt)-[\w-]{20,}",
    ),
    ("a Google key", ("AIza",), _APART + r"AIza[\w-]{35}"),
    ("a Google token", ("ya29.",), _APART + r"ya29\.[\w-]{20,}"),
    ("a Slack token", ("xox",), _APART + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Stripe key", ("k_live_",), _APART + r"[rs]k_live_[A-Za-z0-9]{16,}"),
    ("an npm token", ("npm_",), _APART + r"npm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", ("pypi-",), _APART + r"pypi-[\w-]{50,}"),
    ("a Hugging Face token", ("hf_",), _APART + r"hf_[A-Za-z0-9]{30,}"),
    (
        "a model vendor's key",
        ("gsk_", "xai-", "r8_", "pplx-"),
        _APART + r"(?:gsk_|xai-|r8_|pplx-)[A-Za-z0-9]{30,}",
    ),
    ("a SendGrid key", ("SG.",), _APART + r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("a JSON Web Token", ("eyJ",), _APART + r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    (
        "an Authorization header",
        ("uthorization", "UTHORIZATION"),
        r"(?i)\bauthorization\b[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token|apikey)\s+"
        rf"(?P<secret>{_TOKEN}{{8,}})",
    ),
    (
        "an API key header",
        ("-key", "-Key", "-KEY"),
        r"(?i)\bx-(?:api|goog-api)-key\b[\"']?\s*[:=]\s*[\"']?"
        rf"(?P<secret>{_TOKEN}{{12,}})",
    ),
    (
        "a password in an address",
        ("://",),
        r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,80}:"
        r"(?P<secret>(?!pass(?:word|wd|phrase)?@|secret@|[${%\[])[^\s/@\"'<>*]{6,200})@",
    ),
)
"""What it is, what a text must hold to be worth a closer look, and its form."""
_PATTERNS = tuple((what, hints, re.compile(form)) for what, hints, form in _FORMS)
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=\s:,.*\\-]*")
_HOSTS_OWN = frozenset({"ts", "id", "kind", "type", "stream", "status", "jobId", "runId"})
_READ_ON = frozenset({"text", "content"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret, by its place; never its value."""

    what: str
    place: str
    offset: int

    def __str__(self) -> str:
        return f"{self.what} in {self.place} at character {self.offset}"


class Scrubber:
    """Scans the values of one export in their order; a private key may span several of them."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.findings: list[Finding] = []
        self._values = _secret_values(env)
        self._inside_key = False

    def masked(self, value: Any, place: str, key: str = "") -> Any:
        """The value with every secret masked; what was found is added to `findings`."""
        if isinstance(value, str):
            return value if key in _HOSTS_OWN else self._text(value, _named(place, key), key)
        if isinstance(value, dict):
            return {
                self._text(name, place, ""): self.masked(item, place, name)
                for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.masked(item, place, key) for item in value]
        return value

    def _text(self, text: str, place: str, key: str) -> str:
        spans = [
            *(self._key_spans(text) if key in _READ_ON or "PRIVATE KEY" in text else ()),
            *_matches(text),
            *self._known(text),
        ]
        if not spans:
            return text
        out, at = [], 0
        for begin, end, what in sorted(spans):
            if end <= at:
                continue
            begin = max(begin, at)
            self.findings.append(Finding(what, place, begin))
            out += [text[at:begin], MASK]
            at = end
        return "".join([*out, text[at:]])

    def _key_spans(self, text: str) -> list[tuple[int, int, str]]:
        """Private keys, also one that began in an earlier text or goes on in the next."""
        spans, at, endless = [], 0, False
        while at <= len(text):
            if not self._inside_key:
                begin = _KEY_BEGINS.search(text, at)
                if begin is None:
                    break
                start, at = begin.start(), begin.end()
            else:
                start = at
            end = None if endless else _KEY_ENDS.search(text, at)
            endless = end is None
            body = _KEY_BODY.match(text, at)
            reach = end.end() if end else (body.end() if body else at)
            if reach > start and text[start:reach].strip():
                spans.append((start, reach, "a private key"))
            self._inside_key = end is None and reach == len(text)
            at = reach + 1 if reach == at else reach
            if self._inside_key:
                break
        return spans

    def _known(self, text: str) -> list[tuple[int, int, str]]:
        found = []
        for name, value in self._values:
            at = text.find(value)
            while at >= 0:
                found.append((at, at + len(value), f"the value of {name}"))
                at = text.find(value, at + len(value))
        return found


def _matches(text: str) -> list[tuple[int, int, str]]:
    found = []
    for what, hints, pattern in _PATTERNS:
        if not any(hint in text for hint in hints):
            continue
        for match in pattern.finditer(text):
            group = "secret" if "secret" in pattern.groupindex else 0
            found.append((*match.span(group), what))
    return found


def _named(place: str, key: str) -> str:
    return f"{place}, {key}" if key else place


def _secret_values(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Values of variables that say they are secret, as they are and as they get encoded."""
    found: dict[str, str] = {}
    for name, value in env.items():
        value = value.strip()
        if is_secret_name(name) and len(value) >= SHORTEST_VALUE and not _is_harmless(value):
            for form in _forms(value):
                found.setdefault(form, name)
    longest_first = sorted(found.items(), key=lambda pair: -len(pair[0]))
    return tuple((name, form) for form, name in longest_first)


def _is_harmless(value: str) -> bool:
    """Names of files are often kept in variables that are called keys."""
    if not value.startswith(("/", "~", "./")):
        return False
    try:
        return Path(value).expanduser().exists()
    except (OSError, RuntimeError):
        return False


def _forms(value: str) -> set[str]:
    data = value.encode("utf-8", "surrogateescape")
    return {
        value,
        json.dumps(value)[1:-1],
        quote(data, safe=""),
        base64.b64encode(data).decode().rstrip("="),
    }
