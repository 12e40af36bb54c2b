"""Which user is at the other end of a loopback connection, asked once, when it is made.

The kernel's socket table tells the owner of both ends; where there is none, nobody is known.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PEER_UID = "peer_uid"
_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}


def peer_uid(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The user who owns the client's end of a connection between these two addresses."""
    try:
        here, there = _written(*client), _written(*server)
        version = ipaddress.ip_address(client[0]).version
        lines = _TABLES[version].read_text("ascii").splitlines()[1:]
    except (OSError, ValueError):
        return None
    for line in lines:
        fields = line.split()
        if len(fields) > 7 and fields[1] == here and fields[2] == there:
            return int(fields[7])
    return None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _written(host: str, port: int) -> str:
    """An address as the kernel writes it: words of four bytes in the machine's order."""
    packed = ipaddress.ip_address(host).packed
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return f"{b''.join(words).hex().upper()}:{port:04X}"


class PeerProtocol(HttpToolsProtocol):
    """HTTP that notes the peer's user in the state of every request of a connection."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        uid = None
        if self.client and self.server and connection is not None:
            server = (str(self.server[0]), int(self.server[1] or 0))
            if is_loopback(self.client[0]) and connection.family != socket.AF_UNIX:
                uid = peer_uid(self.client, server)
        self.app_state = {**self.app_state, PEER_UID: uid}
