"""The addresses and headers that a configuration may hold, and what the environment test says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.adapters.http import create_adapter
from binderclip.adapters.http.config import HttpConfig
from binderclip.sdk import CheckRequest, ConfigError
from binderclip.sdk.config import read_config, shown_config
from tests.adapters.http.endpoint import Endpoint, reply


@pytest.mark.parametrize(
    ("values", "field", "problem"),
    [
        ({}, "url", "Field required"),
        ({"url": "ftp://h/"}, "url", "http:// or https://"),
        ({"url": "file:///etc/passwd"}, "url", "http:// or https://"),
        ({"url": "/relative"}, "url", "http:// or https://"),
        ({"url": "http://"}, "url", "http:// or https://"),
        ({"url": "http://me:pw@h/"}, "url", "use authToken"),
        ({"url": "http://{{context.host}}/x"}, "url", "host must be fixed"),
        ({"url": "http://h{{x}}?y"}, "url", "host must be fixed"),
        ({"url": "http://h/a\nb"}, "url", "no control characters"),
        ({"url": "http://h:99999/"}, "url", "ort"),
        ({"url": "http://h/", "method": "TRACE"}, "method", "'POST', 'PUT'"),
        ({"url": "http://h/", "headers": {"A": "b\r\nC: d"}}, "headers", "line break"),
        ({"url": "http://h/", "headers": {"Ä": "b"}}, "headers", "plain ASCII"),
        ({"url": "http://h/", "authHeader": "A: b"}, "authHeader", "pattern"),
        ({"url": "http://h/", "pollIntervalSec": 0}, "pollIntervalSec", "greater than 0"),
        ({"url": "http://h/", "pollUrl": "http://other/"}, "pollUrl", "must be on the host of url"),
        (
            {"url": "http://h/", "cancelUrl": "https://other/x"},
            "cancelUrl",
            "must be on the host of url",
        ),
    ],
)
def test_a_bad_value_is_named(values: dict[str, Any], field: str, problem: str) -> None:
    """F1: field and problem."""
    with pytest.raises(ConfigError) as caught:
        read_config(HttpConfig, values)
    assert problem in caught.value.fields[field]


def test_a_good_configuration_is_kept_as_it_was_written() -> None:
    values = {
        "url": "https://h:8443/a?b={{runId}}",
        "pollUrl": "https://h/{{response.id}}",
        "authToken": "very-secret",
    }
    config = read_config(HttpConfig, values)
    assert (config.url, config.poll_url) == (values["url"], values["pollUrl"])
    assert "very-secret" not in repr(config) + repr(shown_config(config))


def report(folder: Path, depth: Any = "quick", **config: Any) -> tuple[str, dict[str, str]]:
    request = CheckRequest(
        company_id="c1", adapter_type="http", config={"cwd": str(folder), **config}, depth=depth
    )
    found = create_adapter().test_environment(request, {}, "t")
    return found.status, {check.code: check.message for check in found.checks}


@pytest.mark.parametrize(
    ("config", "code", "status"),
    [
        ({"url": "https://h.example/"}, "endpoint", "pass"),
        ({"url": "http://127.0.0.1:1/"}, "endpoint", "pass"),
        ({"url": "http://h.example/"}, "url_not_encrypted", "warn"),
        ({"url": "nonsense"}, "config_invalid", "fail"),
        (
            {"url": "https://h.example/", "dangerouslySkipTlsVerify": True},
            "dangerous_flag",
            "warn",
        ),
        (
            {"url": "https://h.example/", "headers": {"X-Api-Key": "abc"}},
            "credential_in_headers",
            "warn",
        ),
    ],
)
def test_the_quick_test_calls_nobody(
    tmp_path: Path, config: dict[str, Any], code: str, status: str
) -> None:
    """E1, E2: an invalid URL is an error, what matters is a warning."""
    told, found = report(tmp_path, **config)
    assert (told, code in found) == (status, True)


def test_the_live_test_makes_one_harmless_call(tmp_path: Path, endpoint: Endpoint) -> None:
    """E2: any answer but a refused login means that somebody is there."""
    config = {"url": f"{endpoint.url}/wake", "authToken": "abcdefgh"}
    endpoint.on("HEAD /wake", reply(405))
    assert "endpoint_ok" in report(tmp_path, "live", **config)[1]
    endpoint.on("HEAD /wake", reply(401))
    status, found = report(tmp_path, "live", **config)
    assert (status, "endpoint_auth" in found) == ("fail", True)
    assert endpoint.asked == ["HEAD /wake", "HEAD /wake"]
    assert endpoint.seen[0].headers["authorization"] == "Bearer abcdefgh"


def test_the_live_test_tells_an_endpoint_that_is_not_there(tmp_path: Path) -> None:
    status, found = report(tmp_path, "live", url="http://127.0.0.1:1/")
    assert (status, "endpoint_refused" in found) == ("fail", True)


def test_an_address_with_placeholders_is_not_tried(tmp_path: Path) -> None:
    found = report(tmp_path, "live", url="http://127.0.0.1:1/{{runId}}")[1]
    assert "endpoint_not_tried" in found
