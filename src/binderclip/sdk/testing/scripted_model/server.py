"""The loopback HTTP server: routes a request to its wire and plays the turn it takes.

Closing it ends every open answer, so that no thread or socket outlives the `with` block.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from .handler import Handler, hang_up
from .playback import Playback
from .recording import RecordedRequest, Recording
from .script import Script, Source, fill, parse_script


class ScriptedServer(ThreadingHTTPServer):
    """Carries what the handlers share; its threads are joined when it closes."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, port: int, script: Script, recording: Recording, key: str | None) -> None:
        self.script = script
        self.playback = Playback(script)
        self.recording = recording
        self.key = key
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        # HTTPServer would look up the host's name, which can take seconds without a resolver.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent about clients that leave; everything else is a fault of ours and is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        self.closing.set()
        self.shutdown()
        with self._lock:
            for connection in self._open:
                hang_up(connection)
        self.server_close()


class ScriptedModel:
    """A model vendor on loopback that answers from a script.

    with ScriptedModel([Turn(text="42")]) as model:
        run_the_agent(base_url=model.url)
        assert model.requests[0].wire == "anthropic"
    """

    def __init__(
        self,
        script: Source,
        *,
        values: Mapping[str, str] | None = None,
        require_key: str | None = None,
        port: int = 0,
        log: Path | None = None,
    ) -> None:
        """`values` fill `{name}` in the script; any key but `require_key` is answered by 401."""
        self._script = fill(parse_script(script), values or {})
        self._recording = Recording(log)
        self._key = require_key
        self._port = port
        self._server: ScriptedServer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> ScriptedModel:
        self._server = ScriptedServer(self._port, self._script, self._recording, self._key)
        self._port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.stop()
            self._thread.join()
            self._server = None

    def __enter__(self) -> ScriptedModel:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """The base address without a path; clients append `/v1` or `/v1beta` as they do."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """All requests so far, side requests and model lists included, keys masked."""
        return self._recording.all()

    def wait_for_turns(self, count: int, timeout: float = 60) -> tuple[RecordedRequest, ...]:
        """Blocks until `count` turns were asked for and gives those requests."""
        return self._recording.wait_for_turns(count, timeout)
