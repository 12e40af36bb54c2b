"""Secrets are found by their form or their value, named by place, masked on demand (D8)."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from binderclip.jobs.scrub import MASK, Scrubber

# In pieces, so that no scanner takes this file for a leak.
SECRETS = {
    "an Anthropic key": "sk-" + "ant-api03-" + "a1B2" * 10,
    "an OpenAI key": "sk-" + "proj-" + "a1B2" * 8,
    "an AWS key": "AKIA" + "IOSFODNN7EXAMPLE",
    "a GitHub token": "ghp_" + "a1B2" * 9,
    "a GitLab token": "glpat-" + "a1B2" * 5,
    "a Google key": "AIza" + "a1B2c" * 7,
    "a Slack token": "xoxb-" + "1234567890-abcdef",
    "a Stripe key": "sk_" + "live_" + "a1B2" * 6,
    "an npm token": "npm_" + "a1B2" * 9,
    "a Hugging Face token": "hf_" + "a1B2" * 9,
    "a JSON Web Token": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0In0." + "s1gn4tur3",
}
KEY = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE" + " KEY-----"


@pytest.mark.parametrize(("what", "secret"), SECRETS.items(), ids=SECRETS)
def test_a_key_is_found_and_masked_wherever_it_stands(what: str, secret: str) -> None:
    scrubber = Scrubber({})
    masked = scrubber.masked({"input": {"deep": [f'x="{secret}" y']}}, "entry 1o7.0")
    assert masked == {"input": {"deep": [f'x="{MASK}" y']}}
    (finding,) = scrubber.findings
    assert (finding.what, finding.place, finding.offset) == (what, "entry 1o7.0, deep", 3)
    assert secret not in str(finding)


def test_what_was_masked_is_not_found_again() -> None:
    scrubber = Scrubber({})
    masked = scrubber.masked({"text": " ".join(SECRETS.values()) + KEY}, "entry")
    again = Scrubber({})
    assert again.masked(masked, "entry") == masked
    assert again.findings == []


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc.def-123456",
        '"authorization": "Basic dXNlcjpwYXNzMTIz"',
        "curl -H 'X-Api-Key: 0123456789abcdef'",
        "postgres://me:hunter2hunter2@db.example/x",
    ],
)
def test_headers_and_addresses_lose_only_their_secret(text: str) -> None:
    scrubber = Scrubber({})
    masked = scrubber.masked(text, "prompt")
    assert len(scrubber.findings) == 1
    assert MASK in masked and masked[:6] == text[:6]


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer ****************",
        "Authorization: Bearer <token>",
        "the Authorization header is required",
        "sk-learn and sk-something-without-numbers-at-all",
        "http://user:password@host:8080 is how a proxy is written",
        "postgres://me:${PASSWORD}@db",
        "eyJ is how tokens begin",
        "AKIA is a prefix",
        "-----BEGIN PUBLIC KEY-----",
        "the task key is 019ca945-0a00-7219-9783-db07fb147174",
    ],
)
def test_ordinary_words_and_masked_runs_are_left_alone(text: str) -> None:
    scrubber = Scrubber({"PATH": "/usr/bin"})
    assert scrubber.masked(text, "x") == text
    assert scrubber.findings == []


def test_a_private_key_is_masked_whole() -> None:
    assert Scrubber({}).masked(f"a {KEY} b", "x") == f"a {MASK} b"


def test_a_private_key_that_spans_entries_is_masked_to_its_end() -> None:
    """A runtime without structure gives every line an entry of its own."""
    scrubber = Scrubber({})
    lines = ["before", *KEY.split("\n"), "after, in words"]
    entries = [{"text": line, "id": f"1o{at}.0"} for at, line in enumerate(lines)]
    masked = [scrubber.masked(entry, entry["id"])["text"] for entry in entries]
    assert masked == ["before", MASK, MASK, MASK, MASK, "after, in words"]


def test_a_key_that_never_ends_does_not_swallow_what_follows() -> None:
    scrubber = Scrubber({})
    begin = KEY.split("\n")[0]
    assert scrubber.masked({"text": f"grep found {begin}"}, "x")["text"] == f"grep found {MASK}"
    assert scrubber.masked({"text": "Nothing (else) to see!"}, "x")["text"].endswith("to see!")


def test_values_of_secret_variables_are_found_also_encoded() -> None:
    value = 'hunter2/"quoted" value'
    env = {"DB_PASSWORD": value, "HOME": "/home/me", "API_TOKEN": "short"}
    forms = [
        value,
        value.replace('"', '\\"'),
        quote(value, safe=""),
        base64.b64encode(value.encode()).decode().rstrip("="),
    ]
    for form in forms:
        scrubber = Scrubber(env)
        assert scrubber.masked(f"<{form}>", "x") == f"<{MASK}>"
        assert [finding.what for finding in scrubber.findings] == ["the value of DB_PASSWORD"]
    assert Scrubber(env).masked("short /home/me", "x") == "short /home/me"


def test_a_variable_that_names_a_file_is_no_secret() -> None:
    scrubber = Scrubber({"SSL_KEY": __file__})
    assert scrubber.masked(__file__, "x") == __file__


def test_names_in_an_object_are_masked_as_well() -> None:
    secret = SECRETS["a GitHub token"]
    assert Scrubber({}).masked({secret: 1}, "x") == {MASK: 1}


@pytest.mark.parametrize("piece", ["sk-", "eyJ-", "x-api-key:", "://a:", KEY[:31] + "(", "SG."])
def test_a_long_text_of_beginnings_is_scanned_in_one_go(piece: str) -> None:
    """What a hostile agent prints must not make an export hang: the test's time limit decides."""
    text = piece * (1_500_000 // len(piece))
    assert len(Scrubber({}).masked({"text": text}, "x")["text"]) <= len(text)
