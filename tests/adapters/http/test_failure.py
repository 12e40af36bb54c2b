"""Every way in which a call can fail has its own words, code and cause (A9)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from binderclip.adapters.http.failure import retry_time, unreached
from tests.adapters.http.endpoint import Answer, Endpoint, Handler, reply, run, serving, stream

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for loopback that nobody trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken, so that nobody else gets it, and that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("status", "code", "family"),
    [
        (400, "process_failed", None),
        (401, "auth", "auth"),
        (402, "quota", "provider_quota"),
        (403, "auth", "auth"),
        (404, "process_failed", None),
        (408, "upstream", "transient_upstream"),
        (429, "rate_limit", "transient_upstream"),
        (500, "upstream", "transient_upstream"),
        (503, "upstream", "transient_upstream"),
    ],
)
def test_a_status_is_told_and_its_body_kept(
    tmp_path: Path, endpoint: Endpoint, status: int, code: str, family: str | None
) -> None:
    endpoint.on("POST /", reply(status, b'{"error":"because"}\n'))
    ran = run(tmp_path, url=f"{endpoint.url}/")
    result = ran.result
    assert (result.error_code, result.error_family, result.exit_code) == (code, family, 1)
    assert str(status) in (result.error_message or "")
    assert ran.stdout == b'{"error":"because"}\n'
    assert (result.result_json or {})["httpStatus"] == status
    assert (result.result_json or {})["stdoutTail"] == '{"error":"because"}\n'


def test_a_rate_limit_says_when_to_come_back(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /", reply(429, Retry_After="120"))
    before = datetime.now(UTC)
    result = run(tmp_path, url=f"{endpoint.url}/").result
    assert result.retry_not_before is not None
    wait = datetime.fromisoformat(result.retry_not_before) - before
    assert timedelta(seconds=119) < wait < timedelta(seconds=200)


@pytest.mark.parametrize(
    ("header", "time"),
    [
        ("90", "2026-05-04T12:01:30.000Z"),
        ("0", "2026-05-04T12:00:00.000Z"),
        ("Mon, 04 May 2026 13:00:00 GMT", "2026-05-04T13:00:00.000Z"),
        ("Mon, 04 May 2026 11:00:00 GMT", None),
        ("99999999999999999999", None),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str | None, time: str | None) -> None:
    assert retry_time(header, NOW) == time


def test_a_refused_connection_is_told(tmp_path: Path, closed_port: int) -> None:
    ran = run(tmp_path, url=f"http://127.0.0.1:{closed_port}/x?key=hidden")
    result = ran.result
    assert (result.error_code, ran.cause) == ("upstream", "refused")
    assert result.error_family == "transient_upstream"
    assert "nothing listens there" in (result.error_message or "")
    assert "hidden" not in repr(result) + ran.stderr


@pytest.mark.parametrize(
    ("number", "family"), [(socket.EAI_NONAME, None), (socket.EAI_AGAIN, "transient_upstream")]
)
def test_an_unknown_name_is_told_from_a_resolver_that_is_away(
    number: int, family: str | None
) -> None:
    """Made by hand: asking a resolver for a name would leave the machine."""
    problem = httpx.ConnectError("All connection attempts failed")
    problem.__cause__ = ExceptionGroup("attempts", [socket.gaierror(number, "no such name")])
    broken = unreached(problem, "http://agent.example/")
    assert (broken.cause, broken.failure.code, broken.failure.family) == ("dns", "upstream", family)
    assert "agent.example" in str(broken)


def test_an_untrusted_certificate_is_refused(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    with serving(certificate) as endpoint:
        ran = run(tmp_path, url=f"{endpoint.url}/", authToken="abcdefgh")
    assert (ran.result.error_code, ran.cause) == ("upstream", "tls")
    assert (ran.result.error_family, endpoint.seen) == (None, [])


def test_the_dangerous_flag_accepts_any_certificate(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    """A12: off by default, on only by name."""
    with serving(certificate) as endpoint:
        endpoint.on("POST /", reply(body=b'{"text":"hi"}'))
        ran = run(tmp_path, url=f"{endpoint.url}/", dangerouslySkipTlsVerify=True)
    assert ran.result.summary == "hi"


def silent(endpoint: Endpoint, *chunks: bytes) -> Answer:
    """Says this much and then nothing."""

    def answer(handler: Handler) -> None:
        handler.close_connection = True
        if chunks:
            stream(*chunks, end=False)(handler)
        endpoint.released.wait(60)

    return answer


@pytest.mark.parametrize("begun", [(), (b"begun\n",)])
def test_silence_is_a_timeout(tmp_path: Path, endpoint: Endpoint, begun: Any) -> None:
    endpoint.on("POST /", silent(endpoint, *begun))
    ran = run(tmp_path, url=f"{endpoint.url}/", readTimeoutSec=0.3)
    assert (ran.result.error_code, ran.result.timed_out, ran.cause) == (
        "timeout",
        True,
        "read_timeout",
    )
    assert ran.stdout == b"".join(begun)


def test_a_body_that_breaks_off_is_told(tmp_path: Path, endpoint: Endpoint) -> None:
    """What came is kept."""
    endpoint.on("POST /", stream(b'data: {"delta":"half"}\n\n', end=False))
    ran = run(tmp_path, url=f"{endpoint.url}/")
    assert (ran.result.error_code, ran.cause) == ("cut_output", "cut_off")
    assert (ran.stdout, ran.result.summary) == (b'data: {"delta":"half"}\n\n', "half")


def test_a_connection_lost_before_the_answer_is_told(tmp_path: Path, endpoint: Endpoint) -> None:
    def hang_up(handler: Handler) -> None:
        handler.close_connection = True

    endpoint.on("POST /", hang_up)
    ran = run(tmp_path, url=f"{endpoint.url}/")
    assert (ran.result.error_code, ran.cause) == ("upstream", "connection")


def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path, endpoint: Endpoint) -> None:
    """A8: the token never travels to an address that an answer names."""
    with serving() as other:
        endpoint.on("POST /", reply(307, Location=f"{other.url}/stolen"))
        ran = run(tmp_path, url=f"{endpoint.url}/", authToken="abcdefgh")
        assert other.seen == []
    assert (ran.result.error_code, ran.cause) == ("process_failed", "redirect")


def test_a_redirect_on_the_same_address_is_followed(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /old", reply(308, Location="/new"))
    endpoint.on("POST /new", reply(body=b'{"text":"moved"}'))
    ran = run(tmp_path, url=f"{endpoint.url}/old")
    assert (ran.result.summary, endpoint.seen[1].json["runId"]) == ("moved", "r1")


def test_redirects_in_a_circle_end(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /", reply(307, Location="/"))
    ran = run(tmp_path, url=f"{endpoint.url}/")
    assert (ran.cause, len(endpoint.seen)) == ("redirect", 5)


@pytest.mark.parametrize(
    ("answer", "config", "cause"),
    [
        (reply(body=b"<html>"), {}, "no_json"),
        (reply(body=b"<html>", kind="text/html"), {"responseFormat": "json"}, "no_json"),
        (reply(body=b"", kind="text/html"), {"responseFormat": "json"}, "no_json"),
        (reply(body=b'{"a":1}'), {"resultPath": "b.c"}, "result_path"),
        (reply(body=b"text", kind="text/plain"), {"resultPath": "b"}, "result_path"),
        (reply(body=b'{"id":1'), {"pollUrl": "/x"}, "no_json"),
    ],
)
def test_json_that_was_promised_and_did_not_come_is_told(
    tmp_path: Path, endpoint: Endpoint, answer: Answer, config: dict[str, Any], cause: str
) -> None:
    """A9: the raw tail is in the result."""
    endpoint.on("POST /", answer)
    if "pollUrl" in config:
        config = {"pollUrl": endpoint.url + config["pollUrl"]}
    ran = run(tmp_path, url=f"{endpoint.url}/", **config)
    assert (ran.result.error_code, ran.cause) == ("parse_failed", cause)
    assert (ran.result.result_json or {})["stdoutTail"] == ran.stdout.decode()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-ndjson", "text/event-stream"])
def test_other_content_promises_no_json(tmp_path: Path, endpoint: Endpoint, kind: str) -> None:
    endpoint.on("POST /", reply(body=b"plain words", kind=kind))
    assert run(tmp_path, url=f"{endpoint.url}/").result.summary == "plain words"


def test_an_empty_answer_is_a_success(tmp_path: Path, endpoint: Endpoint) -> None:
    """A webhook that only says yes."""
    endpoint.on("POST /", reply(204))
    result = run(tmp_path, url=f"{endpoint.url}/").result
    assert (result.error_code, result.summary) == (None, "")


def test_a_token_that_cannot_be_sent_is_not_quoted(tmp_path: Path, endpoint: Endpoint) -> None:
    ran = run(tmp_path, url=f"{endpoint.url}/", authToken="first line\nsecond line")
    assert ran.result.error_code == "bad_config"
    assert "second line" not in repr(ran.result) + ran.stderr
