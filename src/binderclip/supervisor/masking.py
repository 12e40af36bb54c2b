"""Hides known secret values in a byte stream without changing its length.

What `Masker` has released never holds a whole needle, however the stream was cut into pieces, and
a valid JSON line stays valid: escape sequences are left whole at both edges of a masked range.
"""

from __future__ import annotations

import binascii
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator

SHORTEST_SECRET = 8
_SHORTEST_PREFIX = 4
_LOOK_BEHIND = 64
_HEX = b"0123456789abcdefABCDEF"
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"


def needles_of(secrets: Iterable[str]) -> list[bytes]:
    """Every form in which a secret value may appear in output, each once, longest first."""
    found: set[bytes] = set()
    for secret in secrets:
        if len(_raw(secret)) >= SHORTEST_SECRET:
            found.update(_forms(secret))
    return sorted(found, key=lambda needle: (-len(needle), needle))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _forms(secret: str) -> Iterator[bytes]:
    raw = _raw(secret)
    yield raw
    for once in _json_forms(secret):
        yield _raw(once)
        for twice in _json_forms(once):
            yield _raw(twice)
    yield from _base64_forms(raw)
    yield from _url_forms(raw)


def _json_forms(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        inside = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield inside
        yield inside.replace("/", "\\/")
        # Go's encoder escapes these for HTML.
        yield inside.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    for shift in range(3):
        encoded = binascii.b2a_base64(b"\0" * shift + raw, newline=False)
        # Characters that also depend on the neighbours' bits are left out at both ends.
        own = encoded[(0, 2, 3)[shift] : (shift + len(raw)) * 4 // 3]
        yield own
        yield own.replace(b"+", b"-").replace(b"/", b"_")


def _url_forms(raw: bytes) -> Iterator[bytes]:
    for safe in (b"", b"/", b"!'()*"):
        kept = _UNRESERVED + safe
        yield b"".join(bytes((c,)) if c in kept else b"%%%02X" % c for c in raw)
    spaced = b"".join(b"+" if c == 0x20 else bytes((c,)) for c in raw)
    yield b"".join(bytes((c,)) if c in _UNRESERVED + b"+" else b"%%%02X" % c for c in spaced)


class Release:
    """Bytes that readers may see, and the ranges in them that were masked."""

    __slots__ = ("data", "ranges")

    def __init__(self, data: bytes, ranges: list[tuple[int, int]]) -> None:
        self.data = data
        self.ranges = ranges


class Masker:
    """Takes a stream piece by piece and releases it masked; a possible beginning of a needle waits.

    Fewer than four bytes do not wait, or every prompt that ends like a common prefix would hang:
    of a needle cut there those bytes stay visible and the rest is masked.
    """

    def __init__(self, needles: list[bytes]) -> None:
        self.masked = 0
        self.held = b""
        self._needles = needles
        self._longest = max(map(len, needles), default=0)
        self._by_prefix: dict[bytes, list[bytes]] = {}
        for needle in needles:
            self._by_prefix.setdefault(needle[:_SHORTEST_PREFIX], []).append(needle)
        self._before = b""
        self._mid_mask = False

    def feed(self, data: bytes, final: bool = False) -> Release:
        """Add `data`; release what can no longer become part of a needle, all of it if `final`."""
        if not self._needles:
            return Release(data, [])
        buffer = self._before + self.held + data
        base = len(self._before)
        end = len(buffer) if final else len(buffer) - min(self._hold(buffer), len(buffer) - base)
        ranges = self._masked_ranges(buffer, base, end)
        if end > base:
            self._mid_mask = bool(ranges) and ranges[-1][1] == end - base
        self.held = buffer[end:]
        self._before = buffer[max(0, end - self._longest - _LOOK_BEHIND) : end]
        return Release(_starred(buffer[base:end], ranges), ranges)

    def restart(self, before: bytes = b"") -> None:
        """Forget the stream so far; `before` is what precedes the next byte."""
        self.held = b""
        self._before = before
        self._mid_mask = False

    def _hold(self, buffer: bytes) -> int:
        tail = buffer[-(self._longest - 1) :]
        longest = 0
        for prefix, needles in self._by_prefix.items():
            at = tail.find(prefix)
            while at >= 0 and len(tail) - at > longest:
                rest = tail[at:]
                if any(len(n) > len(rest) and n.startswith(rest) for n in needles):
                    longest = len(rest)
                at = tail.find(prefix, at + 1)
        return longest

    def _masked_ranges(self, buffer: bytes, base: int, end: int) -> list[tuple[int, int]]:
        ranges = []
        for start, stop in _union(self._matches(buffer, base)):
            if base < stop <= end:
                self.masked += 1
            if stop <= end and _odd_backslashes(buffer, stop):
                stop -= 1
            if start >= base:
                start = _after_escape(buffer, start)
            elif self._mid_mask:
                start = base
            else:
                start = _after_escape(buffer, _at_character(buffer, base))
            stop = min(stop, end)
            if start < stop:
                ranges.append((start - base, stop - base))
        return ranges

    def _matches(self, buffer: bytes, base: int) -> Iterator[tuple[int, int]]:
        for needle in self._needles:
            size = len(needle)
            at = buffer.find(needle, max(0, base - size + 1))
            while at >= 0:
                yield at, at + size
                at = buffer.find(needle, at + 1)


def mask_text(text: str, needles: list[bytes]) -> str:
    """One whole string, masked."""
    release = Masker(needles).feed(_raw(text), final=True)
    return release.data.decode("utf-8", "surrogateescape")


def _union(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _starred(data: bytes, ranges: list[tuple[int, int]]) -> bytes:
    if not ranges:
        return data
    masked = bytearray(data)
    for start, stop in ranges:
        masked[start:stop] = b"*" * (stop - start)
    return bytes(masked)


def _odd_backslashes(buffer: bytes, stop: int) -> bool:
    before = buffer[:stop] if stop < _LOOK_BEHIND else buffer[stop - _LOOK_BEHIND : stop]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _at_character(buffer: bytes, start: int) -> int:
    """`start`, or where the next character begins if one of UTF-8 was cut there."""
    while start < len(buffer) and buffer[start] & 0xC0 == 0x80:
        start += 1
    return start


def _after_escape(buffer: bytes, start: int) -> int:
    """`start`, or the first position after the escape sequence that `start` lies in."""
    opening = buffer.rfind(b"\\", max(0, start - 5), start)
    if opening < 0 or not _odd_backslashes(buffer, opening + 1):
        return start
    digits = buffer[opening + 2 : opening + 6]
    if buffer[opening + 1] == 0x75 and len(digits) == 4 and all(c in _HEX for c in digits):
        return max(start, opening + 6)
    return max(start, opening + 2)
