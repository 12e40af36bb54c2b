"""No secret is visible, no length changes, and JSON stays JSON."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binderclip.supervisor.masking import Masker, mask_text, needles_of

SECRET = "tok-4f9a/Xy+Z==&<é>"
# Characters that are special to JSON, base64 and URLs, but not the one that masks.
LETTERS = st.sampled_from('ab01uUnfe\\"/+=&<> \n\té😀')
SECRETS = st.lists(st.text(LETTERS, min_size=8, max_size=16), min_size=1, max_size=3)
TEXT = st.text(LETTERS, max_size=12)


def released(needles: list[bytes], data: bytes, cuts: list[int]) -> bytes:
    """The stream as a reader sees it when it arrives cut at `cuts`."""
    masker = Masker(needles)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges)]
    return b"".join(masker.feed(p).data for p in pieces) + masker.feed(b"", final=True).data


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(SECRET).replace("/", "\\/"),
        json.dumps(json.dumps({"token": SECRET})),
        json.dumps(json.dumps(SECRET, ensure_ascii=False), ensure_ascii=False),
        quote(SECRET, safe=""),
        quote(SECRET),
        quote_plus(SECRET),
        *(base64.b64encode(b"u" * n + b":" + SECRET.encode() + b"!").decode() for n in range(3)),
        *(base64.urlsafe_b64encode(b"u" * n + SECRET.encode()).decode() for n in range(3)),
    ],
)
def test_every_form_of_a_value_is_masked(shown: str) -> None:
    """D8: raw, escaped once and twice, base64 at all alignments, URL-encoded."""
    line = f"before {shown} after"
    masked = mask_text(line, needles_of([SECRET]))
    assert shown not in masked
    assert "**********" in masked
    assert masked.startswith("before ") and masked.endswith(" after")
    assert len(masked.encode()) == len(line.encode())


def test_short_values_are_left_alone() -> None:
    """D8: values under 8 bytes would mask half the log."""
    assert needles_of(["1234567", ""]) == []
    assert mask_text("1234567", needles_of(["1234567"])) == "1234567"


def test_the_longest_form_is_masked_whole() -> None:
    """D8: a raw match inside an escaped one must not leave a dangling backslash."""
    line = json.dumps({"token": "password\\"})
    assert json.loads(mask_text(line, needles_of(["password\\"]))) == {"token": "*" * 10}


def test_a_match_after_a_backslash_keeps_the_escape() -> None:
    """D8: masked from its second character."""
    assert mask_text('"\\nabcdefgh"', needles_of(["nabcdefgh"])) == '"\\n********"'


def test_a_match_that_begins_inside_a_unicode_escape_keeps_it() -> None:
    """D8: the escape is left whole."""
    assert mask_text('"\\u00e9secret"', needles_of(["00e9secret"])) == '"\\u00e9******"'


def test_a_match_that_ends_in_a_backslash_keeps_it() -> None:
    """D8: what it escapes stays escaped."""
    assert mask_text('"password\\"', needles_of(["password\\"])) == '"********\\"'


def test_a_tail_that_may_become_a_secret_waits() -> None:
    """D8: held back from four bytes on, released when it turns out otherwise."""
    masker = Masker(needles_of(["secret-value"]))
    assert masker.feed(b"a secr").data == b"a "
    assert masker.feed(b"etary").data == b"secretary"
    assert masker.feed(b"sec").data == b"sec"
    assert masker.feed(b"ret-value.").data == b"*********."
    assert masker.feed(b"secret-valu").data == b""
    assert masker.feed(b"", final=True).data == b"secret-valu"
    assert masker.masked == 1


def test_two_overlapping_secrets_are_both_masked() -> None:
    """D8: a mask covers every match, also of values that share characters."""
    needles = needles_of(["aaaabbbb", "bbbbcccc"])
    assert mask_text("-aaaabbbbcccc-", needles) == "-************-"


def test_ranges_say_what_changed() -> None:
    """D8: masking in place needs to know where."""
    release = Masker(needles_of(["secret-value"])).feed(b"a secret-value b")
    assert release.ranges == [(2, 14)]


@given(SECRETS, st.lists(TEXT, max_size=4), st.lists(st.integers(0, 1 << 16), max_size=8))
@example(["aaaaaaaa"], ["aaaaaaaaaaa"], [9, 10, 11])
@example(["\\\\\\\\\\\\\\\\"], ["\\"], [3])
def test_no_secret_is_visible_however_the_stream_is_cut(
    secrets: list[str], texts: list[str], cuts: list[int]
) -> None:
    """D8: no reader ever sees one; lengths are kept."""
    data = "".join(a + b for a, b in zip([*texts, ""], secrets * 5, strict=False)).encode()
    seen = released(needles_of(secrets), data, cuts)
    assert len(seen) == len(data)
    for secret in secrets:
        assert secret.encode() not in seen


@given(
    SECRETS,
    TEXT,
    TEXT,
    st.booleans(),
    st.integers(1, 2),
    st.lists(st.integers(0, 1 << 16), max_size=8),
)
@example(["\\aaaaaaa"], "", "", True, 1, [2])
@example(['/0000"0\\'], '/0000"0\\', "0000000\\\\", False, 1, [28])
@example(['0😀00000"'], "0", "0", False, 2, [18])
@example(['0😀00000"'], "0", "0", False, 2, [19])
def test_json_stays_valid_however_the_stream_is_cut(
    secrets: list[str], before: str, after: str, ascii_only: bool, depth: int, cuts: list[int]
) -> None:
    """D8: offsets and JSON stay valid, also for JSON inside JSON."""
    document: object = {"text": [before + secret + after for secret in secrets], before: after}
    line = json.dumps(document, ensure_ascii=ascii_only)
    for _ in range(depth - 1):
        line = json.dumps(line, ensure_ascii=ascii_only)
    data = line.encode()
    seen = released(needles_of(secrets), data, cuts)
    assert len(seen) == len(data)
    json.loads(seen)
    inside = json.dumps(secrets[0], ensure_ascii=ascii_only)[1:-1]
    if depth == 1:
        assert inside.encode() not in seen
