"""A real HTTP server on loopback whose answers a test writes, and a run of the adapter against it.

The run is the real one: the adapter host as a process, its streams, its documents.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from binderclip.adapters.http import create_adapter
from binderclip.sdk import (
    AgentRef,
    ExecutionRequest,
    ExecutionResult,
    Host,
    Outcome,
    Plan,
    ProcessEnd,
    RuntimeSession,
)

Answer = Callable[["Handler"], None]


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Endpoint:
    """What the server answers, by method and path, and what it was asked."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def on(self, place: str, answer: Answer) -> None:
        self.answers[place] = answer

    @property
    def asked(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.seen]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.endpoint.seen.append(Seen(self.command, self.path, headers, body))
        place = f"{self.command} {self.path}"
        self.endpoint.answers.get(place, reply(404, b"nothing here\n", "text/plain"))(self)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer

    def log_message(self, format: str, *args: Any) -> None:
        """The test's own output stays clean."""

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of what is tested."""


def reply(
    status: int = 200, body: bytes = b"", kind: str = "application/json", **headers: str
) -> Answer:
    """A whole answer; header names are written with underscores."""

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    return answer


def stream(*chunks: bytes, kind: str = "text/event-stream", end: bool = True) -> Answer:
    """A chunked answer; without its end it breaks off as a dying server does."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for chunk in chunks:
            handler.chunk(chunk)
        if end:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Each call gets the next answer; the last one stays."""
    left = list(answers)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)


@contextmanager
def serving(tls: tuple[Path, Path] | None = None) -> Iterator[Endpoint]:
    endpoint = Endpoint()
    kind = type("Bound", (Handler,), {"endpoint": endpoint})
    server = Server(("127.0.0.1", 0), kind)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https" if tls else "http"
    endpoint.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Ran:
    stdout: bytes
    stderr: str
    result: ExecutionResult
    directory: Path

    @property
    def cause(self) -> Any:
        return (self.result.result_json or {}).get("cause")


class Attempt:
    """One run of the adapter in its host process."""

    def __init__(self, folder: Path, config: dict[str, Any], prompt: str = "do it") -> None:
        self.directory = folder / "attempt-1"
        self.directory.mkdir()
        self.request = ExecutionRequest(
            run_id="r1",
            agent=AgentRef(id="a1", company_id="c1", name="Ann", adapter_type="http"),
            runtime=RuntimeSession(),
            config={"cwd": str(folder), **config},
            context={"promptText": prompt, "issueIds": ["i1", "i2"]},
        )
        self.adapter = create_adapter()

    def plan(self) -> Plan:
        host = Host({"PATH": "/usr/bin:/bin"}, self.directory, attempt_dir=self.directory)
        return self.adapter.plan(self.request, host)

    def start(self) -> subprocess.Popen[bytes]:
        plan = self.plan()
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            plan.argv, env=plan.env, cwd=plan.cwd, stdin=pipe, stdout=pipe, stderr=pipe
        )
        assert child.stdin is not None
        child.stdin.write(plan.stdin or b"")
        child.stdin.close()
        child.stdin = None
        return child

    def finish(self, child: subprocess.Popen[bytes]) -> Ran:
        with child:
            stdout, stderr = child.communicate(timeout=60)
        outcome = Outcome(
            request=self.request,
            end=ProcessEnd(exit_code=child.returncode),
            parser=self.adapter.create_parser(),
            attempt_dir=self.directory,
        )
        return Ran(stdout, stderr.decode(), self.adapter.conclude(outcome), self.directory)


def run(folder: Path, prompt: str = "do it", **config: Any) -> Ran:
    attempt = Attempt(folder, config, prompt)
    return attempt.finish(attempt.start())
