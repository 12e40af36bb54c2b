"""One HTTP connection of the scripted model: reads a request, records it, sends the answer."""

from __future__ import annotations

import gzip
import json
import re
import select
import socket
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from .catalog import model_list
from .exchange import Action, Asked, Event, Wire
from .playback import prepare
from .recording import RecordedRequest, masked_headers, masked_target
from .script import Failure, Json, Turn
from .tools import NoSuchTool
from .wires import route

if TYPE_CHECKING:
    from .server import ScriptedServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "ScriptedModel"
    server: ScriptedServer

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are recorded, not printed."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self._record(None)
        listing = model_list(path, self.server.script.models)
        if "upgrade" in self.headers.get("connection", "").lower():
            self._send_json({"error": {"message": "no websockets here"}}, 426)
        elif listing is None:
            self._send_json(_unknown(path), 404)
        else:
            self._send_json(listing)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self._read_json()
        path = urlsplit(self.path).path
        routed = route(path)
        if routed is None:
            self._record(body)
            self._send_json(_unknown(path), 404)
        else:
            self._answer(*routed, body)

    def _answer(self, wire: Wire, action: Action, body: Any) -> None:
        asked = self._asked(wire, body)
        if isinstance(asked, Failure):
            self._record(body, wire)
            self._fail(wire, asked)
        elif action == "count":
            self._record(body, wire)
            self._send_json(wire.count(max(1, len(json.dumps(body)) // 4)))
        else:
            turn, index = self.server.playback.take(asked, body)
            self._record(body, wire, index)
            self._play(wire, asked, turn, aside=index is None)

    def _asked(self, wire: Wire, body: Any) -> Asked | Failure:
        if self.server.key is not None and self.server.key not in self._keys():
            return Failure(401, "invalid x-api-key")
        if not isinstance(body, dict):
            return Failure(400, "the body is not a JSON object")
        try:
            return wire.read(self.path, body)
        except (AttributeError, KeyError, TypeError) as error:
            return Failure(400, f"not a request on the {wire.name} wire: {error!r}")

    def _keys(self) -> set[str]:
        sent = [self.headers.get(name, "") for name in ("x-api-key", "x-goog-api-key", "api-key")]
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return {*sent, bearer, *parse_qs(urlsplit(self.path).query).get("key", ())}

    def _play(self, wire: Wire, asked: Asked, turn: Turn, *, aside: bool) -> None:
        self.server.closing.wait(turn.wait)
        if turn.failure is not None and turn.fail_after is None:
            return self._fail(wire, turn.failure)
        try:
            reply = prepare(turn, asked, aside=aside)
        except NoSuchTool as error:
            return self._fail(wire, Failure(400, str(error)))
        if not asked.stream:
            return self._send_json(wire.whole(asked, reply))
        events = list(wire.events(asked, reply))
        return self._stream(wire, asked, turn, events)

    def _stream(self, wire: Wire, asked: Asked, turn: Turn, events: list[Event]) -> None:
        self._open_stream("text/event-stream" if asked.sse else "application/json")
        kept = events if turn.breaks_after is None else _first_pieces(events, turn.breaks_after)
        for position, event in enumerate(kept):
            if event.piece and turn.drip and self.server.closing.wait(turn.drip):
                return self._drop()
            self._send_event(event, asked, position)
        if turn.cut_after is not None:
            return self._drop()
        if turn.hold_after is not None:
            return self._hold()
        if turn.failure is not None:
            self._send_event(wire.failed(asked, turn.failure), asked, len(kept))
        return self._chunk(b"" if asked.sse else b"]", last=True)

    def _open_stream(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("cache-control", "no-cache")
        self.send_header("request-id", f"req_{uuid.uuid4().hex[:24]}")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send_event(self, event: Event, asked: Asked, position: int) -> None:
        data = event.data if isinstance(event.data, str) else _dump(event.data)
        if asked.sse:
            name = f"event: {event.name}\n" if event.name else ""
            self._chunk(f"{name}data: {data}\n\n".encode())
        else:
            self._chunk(("," if position else "[").encode() + data.encode())

    def _chunk(self, data: bytes, *, last: bool = False) -> None:
        framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self.wfile.write(framed + (b"0\r\n\r\n" if last else b""))

    def _hold(self) -> None:
        """Say nothing more until the client hangs up or the server closes."""
        while not self.server.closing.wait(0.05):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                break
        self._drop()

    def _drop(self) -> None:
        self.close_connection = True
        hang_up(self.connection)

    def _fail(self, wire: Wire, failure: Failure) -> None:
        body = wire.error(failure) if failure.body is None else failure.body
        if isinstance(body, dict):
            self._send_json(body, failure.status, failure.headers)
        else:
            self._send(body.encode(), "text/plain; charset=utf-8", failure.status, failure.headers)

    def _send_json(
        self, body: Json, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self._send(_dump(body).encode(), "application/json", status, headers or {})

    def _send(self, data: bytes, content_type: str, status: int, extra: Mapping[str, str]) -> None:
        headers = {
            "content-type": content_type,
            "content-length": str(len(data)),
            "request-id": f"req_{uuid.uuid4().hex[:24]}",
            **{name.lower(): value for name, value in extra.items()},
        }
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _record(self, body: Any, wire: Wire | None = None, turn: int | None = None) -> None:
        self.server.recording.add(
            RecordedRequest(
                method=self.command,
                path=masked_target(self.path),
                headers=masked_headers(self.headers.items()),
                body=body,
                wire=wire.name if wire else None,
                turn=turn,
            )
        )

    def _read_json(self) -> Any:
        data = self._read_body()
        if self.headers.get("content-encoding", "").lower() == "gzip":
            data = gzip.decompress(data)
        try:
            return json.loads(data)
        except ValueError:
            return data.decode(errors="replace")

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data


def _first_pieces(events: list[Event], count: int) -> list[Event]:
    """The events up to the `count`th piece, or to the last one where there are fewer."""
    ends = [position for position, event in enumerate(events, 1) if event.piece]
    return events[: ends[min(count, len(ends)) - 1]] if count and ends else []


def hang_up(connection: socket.socket) -> None:
    """End a connection at once, whether or not the other side has left already."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _dump(data: Json) -> str:
    """Raw Unicode as vendors send it, but for what some clients take for newlines."""
    text = json.dumps(data, ensure_ascii=False)
    return re.sub("[\u0085\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _unknown(path: str) -> Json:
    known = "/v1/messages, /v1/responses, /v1/chat/completions, /v1beta/models/NAME:generateContent"
    return {"error": {"message": f"the scripted model has no {path}; it has {known}"}}
