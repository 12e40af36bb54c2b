"""Telling apart what can go wrong between a request and the end of its answer (A9)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx

from binderclip.sdk import Failure

LONGEST_WAIT = timedelta(days=7)


class Broken(Exception):
    """A call that failed: in which way, why, and with which status if there was an answer."""

    def __init__(self, cause: str, failure: Failure, status: int | None = None) -> None:
        super().__init__(failure.message)
        self.cause = cause
        self.failure = failure
        self.status = status

    @property
    def passing(self) -> bool:
        """Whether the same look at a status may work a moment later."""
        transient = self.failure.family == "transient_upstream"
        return transient or self.cause in ("read_timeout", "cut_off")


def unreached(problem: httpx.HTTPError, where: str) -> Broken:
    """No answer came: name, connection, certificate or time."""
    if isinstance(problem, httpx.LocalProtocolError):
        # Its own words may quote the header that holds the token.
        text = f"The request to {where} cannot be sent: a header holds illegal characters."
        return Broken("header", Failure("bad_config", text))
    chain = list(_causes(problem))
    for one in chain:
        if isinstance(one, socket.gaierror):
            again = one.errno == socket.EAI_AGAIN
            return _upstream("dns", f"The name of {where} cannot be resolved: {one}.", again)
        if isinstance(one, ssl.SSLError):
            text = f"No trusted connection to {where}: {one}."
            return _upstream("tls", text, passing=False)
    if isinstance(problem, httpx.ConnectTimeout):
        return _upstream("connect_timeout", f"{where} did not accept a connection in time.")
    if isinstance(problem, httpx.TimeoutException):
        return read_timeout(where)
    if any(isinstance(one, ConnectionRefusedError) for one in chain):
        return _upstream("refused", f"{where} refused the connection: nothing listens there.")
    return _upstream("connection", f"The connection to {where} failed: {_words(problem)}.")


def read_timeout(where: str) -> Broken:
    text = f"{where} sent nothing for longer than readTimeoutSec."
    return Broken("read_timeout", Failure("timeout", text))


def cut(problem: httpx.HTTPError, where: str) -> Broken:
    """The answer began and did not end."""
    if isinstance(problem, httpx.TimeoutException):
        return read_timeout(where)
    if isinstance(problem, httpx.DecodingError):
        return Broken("encoding", Failure("parse_failed", f"The body of {where} is damaged."))
    text = f"The answer of {where} broke off before its end: {_words(problem)}."
    return Broken("cut_off", Failure("cut_output", text))


def refused(response: httpx.Response, where: str, now: datetime) -> Broken:
    """The endpoint answered, and the answer is no."""
    status = response.status_code
    told = f"{where} answered {status} {response.reason_phrase}".rstrip()
    after = retry_time(response.headers.get("retry-after"), now)
    if status in (401, 403):
        failure = Failure("auth", f"{told}: check authToken and authHeader.", "auth")
    elif status == 402:
        failure = Failure("quota", f"{told}: the account has no credit left.", "provider_quota")
    elif status == 429:
        failure = Failure("rate_limit", f"{told}.", "transient_upstream", after)
    elif status >= 500 or status == 408:
        failure = Failure("upstream", f"{told}.", "transient_upstream", after)
    else:
        failure = Failure("process_failed", f"{told}.")
    return Broken("status", failure, status)


def redirected(response: httpx.Response, where: str) -> Broken:
    target = httpx.URL(response.headers.get("location", "")).host or "an unusable address"
    text = f"{where} redirects to {target}, which is not followed; set url to the final address."
    return Broken("redirect", Failure("process_failed", text), response.status_code)


def no_json(what: str, status: int | None) -> Broken:
    return Broken("no_json", Failure("parse_failed", f"JSON was promised, but {what}."), status)


def retry_time(header: str | None, now: datetime) -> str | None:
    """`Retry-After` in seconds or as a date, as the time before which a retry is useless."""
    text = (header or "").strip()
    try:
        seconds = text.isascii() and text.isdecimal()
        moment = now + timedelta(seconds=int(text)) if seconds else parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if not now <= moment <= now + LONGEST_WAIT:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _upstream(cause: str, text: str, passing: bool = True) -> Broken:
    return Broken(cause, Failure("upstream", text, "transient_upstream" if passing else None))


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """The exception and everything it came from; connection attempts come in groups."""
    while problem is not None:
        yield problem
        if isinstance(problem, BaseExceptionGroup):
            for one in problem.exceptions:
                yield from _causes(one)
        problem = problem.__cause__ or problem.__context__


def _words(problem: BaseException) -> str:
    return str(problem).rstrip(".") or type(problem).__name__
