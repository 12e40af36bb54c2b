"""The plugin's side of the protocol in Python: read a call, answer it, leave when idle."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable
from typing import Any

IDLE_SECONDS = 120
DESCRIPTOR = 3


def serve(answer: Callable[[str, dict[str, Any]], Any], idle: float = IDLE_SECONDS) -> None:
    """Answer calls one after the other until the other side closes or nothing comes."""
    with socket.socket(fileno=DESCRIPTOR) as channel:
        pieces: list[bytes] = []
        while select.select([channel], [], [], idle)[0]:
            piece = channel.recv(256 * 1024)
            if not piece:
                return
            pieces.append(piece)
            # A call may have many megabytes: it is put together once, when it is complete.
            if b"\n" in piece:
                *lines, rest = b"".join(pieces).split(b"\n")
                pieces = [rest]
                for line in lines:
                    channel.sendall(_answered(line, answer) + b"\n")


def _answered(line: bytes, answer: Callable[[str, dict[str, Any]], Any]) -> bytes:
    call = json.loads(line)
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": call.get("id")}
    try:
        reply["result"] = answer(str(call.get("method")), call.get("params") or {})
        return json.dumps(reply).encode()
    except Exception as problem:
        reply.pop("result", None)
        reply["error"] = {"code": -32000, "message": str(problem) or type(problem).__name__}
        return json.dumps(reply).encode()
