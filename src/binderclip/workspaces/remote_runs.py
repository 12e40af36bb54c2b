"""Runs on the other machine: a supervisor as at home, a lease that the run lives by, its output.

A run whose lease is not renewed is cancelled, so nothing of it outlives a connection that stays
cut; a short loss does it no harm. Python 3.9, standard library.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from binderclip.supervisor import launch as supervisor

SCRATCH = "scratch"
LEASE = "lease"
BEAT_SEC = 5.0
_LOOK_SEC = 0.1
_GUARD_SEC = 1.0
_MARK = "BINDERCLIP_REMOTE_RUN"
_CHUNK = 1 << 18
_OWN = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")


def launch(asked: dict[str, Any], body: Path | None) -> dict[str, Any]:
    """Start an attempt and its guard; one that was started before is left as it is."""
    directory = Path(asked["attemptDir"]).expanduser()
    if (directory / "meta.json").exists() or (directory / "exit.json").exists():
        return {"started": False}
    cwd = Path(asked["cwd"]).expanduser()
    if (cwd / ".git" / "binderclip-receiving").exists():
        return {"started": False, "problem": "the workspace is not complete on this machine"}
    scratch = _unpack(directory, body)
    moved = {**asked["replace"], **{"@scratch": str(scratch), "@cwd": str(cwd)}}
    request = _request(asked, directory, str(cwd), moved)
    held = supervisor.make_fifos(directory, request.capture)
    (directory / LEASE).touch()
    stdin = asked["stdin"]
    data = None if stdin is None else _moved(base64.b64decode(stdin), moved)
    try:
        supervisor.launch(request, data)
    except supervisor.SpawnFailed:
        # exit.json says why, and whoever follows will read it.
        return {"started": True}
    finally:
        for fd in held:
            os.close(fd)
    _guard(str(directory), float(asked["leaseSec"]))
    return {"started": True}


def cancel(asked: dict[str, Any], _body: Path | None) -> dict[str, Any]:
    """Ask an attempt to end."""
    directory = Path(asked["attemptDir"]).expanduser()
    if directory.is_dir() and supervisor.read_exit(directory) is None:
        supervisor.request_cancel(directory, asked["by"], asked["reason"], asked["kill"])
    return {}


def finish(asked: dict[str, Any], _body: Path | None) -> dict[str, Any]:
    """See to it that nothing of an attempt is alive, and remove what was lent to it."""
    directory = Path(asked["attemptDir"]).expanduser()
    if not (directory / "meta.json").exists():
        return {"ended": True}
    deadline = time.monotonic() + float(asked.get("patienceSec", 30.0))
    while supervisor.read_exit(directory) is None and time.monotonic() < deadline:
        supervisor.request_cancel(directory, "binderclip", "the run is over", True)
        _keep_supervised(str(directory))
        time.sleep(_LOOK_SEC)
    ended = supervisor.read_exit(directory) is not None
    shutil.rmtree(directory / SCRATCH, ignore_errors=True)
    if ended and asked.get("remove"):
        shutil.rmtree(directory, ignore_errors=True)
    return {"ended": ended}


def follow(asked: dict[str, Any]) -> None:
    """Print what an attempt prints, from given offsets, until it ends or nobody listens.

    Each frame is a JSON line, with bytes behind it where it says so.
    """
    directory = Path(asked["attemptDir"]).expanduser()
    offsets = {"o": int(asked["stdout"]), "e": int(asked["stderr"])}
    index = _Index(directory / "index")
    beat = 0.0
    while True:
        ended = (directory / "exit.json").exists()
        sent = _send_new(directory, index, offsets)
        if ended:
            exit = json.loads((directory / "exit.json").read_text())
            _frame({"exit": exit})
            return
        if time.monotonic() - beat > BEAT_SEC:
            beat = time.monotonic()
            _frame({"beat": True})
            _keep_supervised(str(directory))
        if not sent and not _listened(directory):
            return


class _Index:
    """How far each log may be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.covered = {"o": 0, "e": 0}

    def look(self) -> dict[str, int]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return self.covered
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.splitlines():
            _, letter, end = line.split()
            self.covered[letter.decode()] = int(end)
        return self.covered


def _send_new(directory: Path, index: _Index, offsets: dict[str, int]) -> bool:
    sent = False
    for letter, end in index.look().items():
        name = "stdout.log" if letter == "o" else "stderr.log"
        while offsets[letter] < end:
            with (directory / name).open("rb") as file:
                file.seek(offsets[letter])
                part = file.read(min(_CHUNK, end - offsets[letter]))
            if not part:
                break
            offsets[letter] += len(part)
            _frame({"stream": letter, "bytes": len(part)}, part)
            sent = True
    return sent


def _frame(head: dict[str, Any], body: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + body)
    sys.stdout.buffer.flush()


def _listened(directory: Path) -> bool:
    """Renew the lease if the other side said that it is there; False when it has gone."""
    ready, _, _ = select.select([sys.stdin], [], [], _LOOK_SEC)
    if not ready:
        return True
    if not os.read(sys.stdin.fileno(), 1 << 16):
        return False
    (directory / LEASE).touch()
    return True


def _unpack(directory: Path, body: Path | None) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = directory / SCRATCH
    scratch.mkdir(mode=0o700, exist_ok=True)
    if body is not None:
        with tarfile.open(body) as archive:
            for member in archive:
                # Made by us from plain files; anything else is not taken.
                if (member.isfile() or member.isdir()) and ".." not in Path(member.name).parts:
                    archive.extract(member, scratch)
    return scratch


def _request(
    asked: dict[str, Any], directory: Path, cwd: str, moved: dict[str, str]
) -> supervisor.Request:
    env = {name: os.environ[name] for name in _OWN if name in os.environ}
    env.update({n: v for n, v in os.environ.items() if n.startswith(("LC_", "XDG_"))})
    env.update({name: _moved(v.encode(), moved).decode() for name, v in asked["env"].items()})
    if asked["path"]:
        env["PATH"] = os.pathsep.join([*asked["path"], env.get("PATH", os.defpath)])
    # A mark of its own: whoever asked for the run may stand on the same machine.
    mark = f"{asked['runId']}-{asked['attempt']}"
    env[_MARK] = mark
    return supervisor.Request(
        marker=f"{_MARK}={mark}",
        attempt_dir=str(directory),
        run_id=asked["runId"],
        attempt=asked["attempt"],
        argv=[_moved(word.encode(), moved).decode() for word in asked["argv"]],
        env=env,
        cwd=cwd,
        capture=supervisor.Capture(**asked["capture"]),
        limits=supervisor.Limits(**asked["limits"]),
        secrets=asked["secrets"],
        secret_env=asked["secretEnv"],
    )


def _moved(text: bytes, moved: dict[str, str]) -> bytes:
    """Paths of the other machine become those of this one."""
    for theirs, name in moved.items():
        if not theirs.startswith("@"):
            text = text.replace(theirs.encode(), moved[name].encode())
    return text


def _keep_supervised(directory: str) -> None:
    if supervisor.attempt_state(directory) == "unattended":
        try:
            supervisor.adopt(directory)
        except supervisor.LaunchRefused:
            return


def _guard(directory: str, lease_sec: float) -> None:
    """Leave a process behind that ends the attempt when its lease runs out."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    try:
        _watch(directory, lease_sec)
    finally:
        os._exit(0)


def _watch(directory: str, lease_sec: float) -> None:
    lease = Path(directory) / LEASE
    while supervisor.read_exit(directory) is None:
        try:
            age = time.time() - lease.stat().st_mtime
        except FileNotFoundError:
            return
        if age > lease_sec:
            reason = "the machine that asked for this run has not been heard of"
            supervisor.request_cancel(directory, "lease", reason)
        _keep_supervised(directory)
        time.sleep(_GUARD_SEC)
