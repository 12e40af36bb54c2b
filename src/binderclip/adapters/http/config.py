"""What a person sets for an endpoint; every address we call is written here, never in a reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

from binderclip.sdk import AdapterConfig, Field, Secret, dangerous

DEFAULT_PAYLOAD: dict[str, Any] = {
    "agentId": "{{agentId}}",
    "runId": "{{runId}}",
    "prompt": "{{prompt}}",
    "context": "{{context}}",
}


class HttpConfig(AdapterConfig):
    url: str = Field(
        description="Address to call, http or https; placeholders may stand in path and query."
    )
    method: Literal["POST", "PUT", "PATCH", "GET"] = Field(
        "POST", description="HTTP method; GET sends no payload."
    )
    payload_template: dict[str, Any] = Field(
        default_factory=lambda: dict(DEFAULT_PAYLOAD),
        description="JSON to send; {{placeholders}} in its strings are filled. A string that is "
        "one placeholder becomes the value itself.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict,
        description="Request headers; placeholders are filled. Credentials go to authToken.",
    )
    auth_token: Secret | None = Field(None, description="Credential sent in authHeader.")
    auth_header: str = Field(
        "Authorization",
        pattern=r"^[A-Za-z0-9-]+$",
        description="Header for authToken: in Authorization a token without a space is sent as "
        "Bearer, in any other header as it is.",
    )
    response_format: Literal["auto", "json", "text"] = Field(
        "auto", description="What the answer must be: json refuses anything else, text reads none."
    )
    result_path: str | None = Field(
        None, description="Dotted path of the final text in the JSON answer, such as output.text."
    )
    poll_url: str | None = Field(
        None,
        description="Address of a long task's status on the same host, such as "
        "https://host/tasks/{{response.id}}; values are URL-escaped.",
    )
    poll_interval_sec: float = Field(5, gt=0, description="Seconds between two looks at pollUrl.")
    poll_status_path: str = Field(
        "status", description="Dotted path of the status in the answer of pollUrl."
    )
    poll_done_values: list[str] = Field(
        default=["done", "completed", "succeeded", "success"],
        description="Statuses that mean success.",
    )
    poll_failed_values: list[str] = Field(
        default=["failed", "error", "cancelled", "canceled", "expired"],
        description="Statuses that mean failure.",
    )
    cancel_url: str | None = Field(
        None, description="Address on the same host that is called when the run is stopped."
    )
    cancel_method: Literal["POST", "DELETE"] = Field("POST", description="Method for cancelUrl.")
    connect_timeout_sec: float = Field(
        10, gt=0, description="Seconds until a connection must stand."
    )
    read_timeout_sec: float = Field(
        300, gt=0, description="Seconds to wait for the answer and between two pieces of it."
    )
    dangerously_skip_tls_verify: bool = dangerous(
        default=False, description="Accept any certificate: whoever is in between can read it all."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        addresses = {"url": self.url, "pollUrl": self.poll_url, "cancelUrl": self.cancel_url}
        usable = True
        for name, value in addresses.items():
            problem = None if value is None else url_problem(value)
            if problem:
                usable = False
                yield name, problem
        if any(not text.isprintable() for pair in self.headers.items() for text in pair):
            yield "headers", "a header holds a line break or another control character"
        elif not all(name and name.isascii() for name in self.headers):
            yield "headers", "a header's name must be plain ASCII"
        if usable:
            yield from self._other_hosts()

    def _other_hosts(self) -> Iterator[tuple[str, str]]:
        host = urlsplit(self.url).hostname
        for name, value in (("pollUrl", self.poll_url), ("cancelUrl", self.cancel_url)):
            if value and urlsplit(value).hostname != host:
                yield name, f"must be on the host of url, {host}"


def url_problem(value: str) -> str | None:
    """What is wrong with an address; it must be http(s) with a fixed host and no credentials."""
    authority = value.partition("://")[2].partition("/")[0].partition("?")[0]
    if "{" in authority or "}" in authority:
        return "the host must be fixed; placeholders stand in path and query only"
    if not value.isprintable() or " " in value.split("{{")[0]:
        return "an address holds no spaces and no control characters"
    try:
        parts = urlsplit(value)
        port = 80 if parts.port is None else parts.port
    except ValueError:
        return "the port must be between 1 and 65535, the host a name or an address"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "write it in full, beginning with http:// or https:// and a host"
    if "@" in parts.netloc:
        return "a URL must not hold credentials; use authToken"
    return None if port else "the port must be between 1 and 65535"
