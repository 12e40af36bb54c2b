"""Asking the outpost on another machine: one question, one answer, a body with either."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from binderclip.contract.errors import WorkspaceError

_SENT_ALONG = ("supervisor",)
MODULES = ("git", "disk", "snapshot", "changing", "bundles", "outpost", "remote_runs")
_MAIN = b"from binderclip.workspaces.outpost import main\n\nmain()\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Unreachable(WorkspaceError):
    """The other machine did not answer; nothing is known of what it did."""


class Refusal(WorkspaceError):
    """The other machine answered that it will not or cannot."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class Far:
    """An outpost that a command starts; `start` may lead to another machine."""

    def __init__(self, start: Sequence[str], name: str = "the other machine") -> None:
        self._start = list(start)
        self.name = name
        self.sent = 0
        """Bytes of bodies that went there, for those who measure."""
        self.received = 0

    def ask(
        self, verb: str, body: Path | None = None, into: Path | None = None, **asked: Any
    ) -> dict[str, Any]:
        """Ask one thing; a body of the answer is written to `into`."""
        size = body.stat().st_size if body is not None else 0
        head = json.dumps({"verb": verb, **asked, "bytes": size}).encode() + b"\n"
        with subprocess.Popen(
            self._start,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdin and process.stdout and process.stderr
            try:
                self._say(process.stdin, head, body)
                told = self._hear(process.stdout, into)
                said = process.stderr.read().decode("utf-8", "replace").strip()
            except BaseException:
                process.kill()
                raise
        self.sent += size
        if told is None:
            raise Unreachable(f"{self.name} did not answer: {said or 'the connection was cut'}.")
        if not told.pop("ok"):
            raise Refusal(f"{self.name}: {told['message']}", told["kind"])
        return told

    def _say(self, sink: IO[bytes], head: bytes, body: Path | None) -> None:
        try:
            sink.write(head)
            if body is not None:
                with body.open("rb") as file:
                    shutil.copyfileobj(file, sink, 1 << 20)
            sink.close()
        except BrokenPipeError:
            # Its answer, or the lack of one, says why it stopped listening.
            return

    def _hear(self, source: IO[bytes], into: Path | None) -> dict[str, Any] | None:
        line = source.readline()
        if not line.endswith(b"\n"):
            return None
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError:
            return None
        left = int(told.pop("bytes"))
        self.received += left
        if into is not None and left:
            with into.open("wb") as file:
                while part := source.read(min(left, 1 << 20)):
                    left -= len(part)
                    file.write(part)
        return told if into is None or not left else None


@lru_cache(maxsize=1)
def outpost_file() -> tuple[bytes, str]:
    """The one file that is sent, and the digest that names it."""
    package = Path(__file__).resolve().parents[1]
    names = [package / "__init__.py", package / "workspaces" / "__init__.py"]
    for folder in _SENT_ALONG:
        names += sorted((package / folder).glob("*.py"))
    names += [package / "workspaces" / f"{name}.py" for name in MODULES]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), _MAIN)
        for path in names:
            inside = zipfile.ZipInfo(str(path.relative_to(package.parent)), _EPOCH)
            archive.writestr(inside, path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = buffer.getvalue()
    return data, hashlib.sha256(data).hexdigest()


def start_locally(python: str, folder: Path) -> list[str]:
    """The command of an outpost on this machine, for a directory that is no other machine's."""
    data, digest = outpost_file()
    path = folder / f"outpost-{digest[:16]}.zip"
    if not path.exists():
        scratch = path.with_suffix(".new")
        scratch.write_bytes(data)
        scratch.replace(path)
    return [python, "-I", "-S", str(path)]
