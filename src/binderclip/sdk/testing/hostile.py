"""A fake agent CLI that does everything wrong on purpose; behaviours run in the order given.

    python hostile.py say=hello ignore-term daemon=600 flood=1000000 result exit=3

  words     say=TEXT  err=TEXT  partial=TEXT  result  failure  lines=N  interleave=N
  bytes     flood=BYTES  flood-err=BYTES  line=BYTES  split-utf8=SECONDS
            nul  ansi  osc  invalid-utf8  crlf
  asked     env  cwd  pid  stdin  leak=NAME
  time      sleep=SECONDS  hang  stop  touch=PATH  wait=PATH
  signals   ignore-term  die=SIGNAL  exit=CODE
  streams   close-stdout  close-stderr  close-stdin  reopen-stderr=TEXT
  children  child=SECONDS  stubborn-child=SECONDS  daemon=SECONDS  stubborn-daemon=SECONDS
            chain=DEPTH

A child keeps the streams; a daemon forks twice into a session of its own; a chain is DEPTH
programs, each started by the one before and waiting for it. Each prints "NAME PID".
Started by its path it needs the standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

FOR_EVER = 3600.0
BLOCK = 65536
MIXED_TEXT = "Grüße, 世界, 🦆 and e\u0301\u2028 end\n"


def write(descriptor: int, data: bytes) -> None:
    """All of the data, in as many writes as it takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def say(text: str) -> None:
    write(1, text.encode("utf-8", "surrogateescape") + b"\n")


def err(text: str) -> None:
    write(2, text.encode("utf-8", "surrogateescape") + b"\n")


def partial(text: str) -> None:
    write(1, text.encode("utf-8", "surrogateescape"))


def flood(size: str, descriptor: int = 1) -> None:
    """Lines of 80 bytes, as fast as they are read."""
    block = (b"0123456789" * 8)[:-1] + b"\n"
    data = block * (BLOCK // len(block))
    left = int(size)
    while left > 0:
        write(descriptor, data[:left])
        left -= len(data)


def huge_line(size: str) -> None:
    left = int(size)
    while left > 0:
        write(1, b"x" * min(left, BLOCK))
        left -= BLOCK
    write(1, b"\n")


def split_utf8(delay: str) -> None:
    for byte in MIXED_TEXT.encode():
        write(1, bytes((byte,)))
        time.sleep(float(delay or 0))


def lines(number: str) -> None:
    for at in range(int(number)):
        say(f"line {at}")


def interleave(number: str) -> None:
    for at in range(int(number)):
        say(f"out {at}")
        err(f"err {at}")


def show_env(_: str) -> None:
    import json

    say(json.dumps(dict(sorted(os.environ.items()))))


def echo_stdin(_: str) -> None:
    while block := os.read(0, BLOCK):
        write(1, block)


def leak(name: str) -> None:
    """A secret of the environment in every form that logs have been seen to show it."""
    import base64
    import json
    import urllib.parse

    value = os.environ[name]
    raw = value.encode("utf-8", "surrogateescape")
    once = json.dumps({"said": value})
    say(f"raw {value}")
    say(once)
    say(json.dumps({"said": value}, ensure_ascii=False))
    say(json.dumps({"text": once}))
    for before in (b"", b"a", b"ab"):
        say("base64 " + base64.b64encode(before + raw).decode())
        say("base64url " + base64.urlsafe_b64encode(before + raw).decode())
    say("url " + urllib.parse.quote(value, safe=""))
    for part in (value[:3], value[3:]):
        partial(part)
        time.sleep(0.05)
    say("")


def wait_for(path: str) -> None:
    while not os.path.exists(path):  # noqa: PTH110 - pathlib would double the start-up time
        time.sleep(0.01)


def touch(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def hang(_: str = "") -> None:
    while True:
        time.sleep(FOR_EVER)


def ignore_term(_: str = "") -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def die(name: str) -> None:
    number = getattr(signal, name or "SIGKILL")
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    hang()


def reopen_stderr(text: str) -> None:
    """What a shell does for `echo TEXT > /dev/stderr`: it truncates a regular file there."""
    again = os.open("/dev/stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    write(again, text.encode() + b"\n")
    os.close(again)


def child(seconds: str) -> None:
    """A child in the same group and session that holds the streams open."""
    pid = os.fork()
    if pid == 0:
        linger(seconds)
    say(f"child {pid}")


def daemon(seconds: str) -> None:
    """Twice forked, in a session of its own: neither the group nor the parent finds it."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            write(writing, str(os.getpid()).encode())
            os.close(writing)
            linger(seconds)
        os._exit(0)
    os.close(writing)
    os.waitpid(middle, 0)
    say(f"daemon {os.read(reading, 32).decode()}")
    os.close(reading)


def linger(seconds: str) -> None:
    time.sleep(float(seconds or FOR_EVER))
    os._exit(0)


def stubborn(kind: Callable[[str], None]) -> Callable[[str], None]:
    """The same child, deaf to SIGTERM; the parent stays as it was."""

    def start(seconds: str) -> None:
        usual = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kind(seconds)
        signal.signal(signal.SIGTERM, usual)

    return start


def chain(depth: str) -> None:
    """Each link starts the next as a new program and waits for it; the last one hangs."""
    pid = os.fork()
    if pid == 0:
        deeper = int(depth) - 1
        after = [f"chain={deeper}", "reap"] if deeper > 0 else ["hang"]
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, *after])
    say(f"chain {pid}")


def reap(_: str) -> None:
    os.wait()


BEHAVIOURS: dict[str, Callable[[str], None]] = {
    "say": say,
    "err": err,
    "partial": partial,
    "result": lambda _: say('{"type":"result","subtype":"success","is_error":false}'),
    "failure": lambda _: say('{"type":"result","subtype":"error","is_error":true}'),
    "lines": lines,
    "interleave": interleave,
    "flood": flood,
    "flood-err": lambda size: flood(size, 2),
    "line": huge_line,
    "split-utf8": split_utf8,
    "nul": lambda _: write(1, b"before\x00after\n\x00\n"),
    "ansi": lambda _: write(1, b"\x1b[31mred\x1b[0m \x1b[2J\x1b[H\x1b[?1049h\x9b31m\n"),
    "osc": lambda _: write(1, b"\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b]8;;http://x/\x1b\\l\n"),
    "invalid-utf8": lambda _: write(1, b"\xff\xfe \xc3( \xed\xa0\x80 \xf0\x9f cut\n"),
    "crlf": lambda _: write(1, b"one\r\ntwo\rstill two\r\n\r\n"),
    "env": show_env,
    "cwd": lambda _: say(os.getcwd()),  # noqa: PTH109 - as above
    "pid": lambda _: say(f"pid {os.getpid()}"),
    "stdin": echo_stdin,
    "leak": leak,
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "hang": hang,
    "stop": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "touch": touch,
    "wait": wait_for,
    "ignore-term": ignore_term,
    "die": die,
    "exit": lambda code: os._exit(int(code or 0)),
    "close-stdin": lambda _: os.close(0),
    "close-stdout": lambda _: os.close(1),
    "close-stderr": lambda _: os.close(2),
    "reopen-stderr": reopen_stderr,
    "child": child,
    "stubborn-child": stubborn(child),
    "daemon": daemon,
    "stubborn-daemon": stubborn(daemon),
    "chain": chain,
    "reap": reap,
}


def main(words: list[str]) -> int:
    """Do what the words say; an unknown word is a usage error, as a real CLI has it."""
    unknown = [word for word in words if word.partition("=")[0] not in BEHAVIOURS]
    if unknown or not words:
        err(f"hostile: no such behaviour: {' '.join(unknown)}\n{__doc__}")
        return 2
    for word in words:
        name, _, value = word.partition("=")
        BEHAVIOURS[name](value)
    return 0


if __name__ == "__main__":
    # Without the interpreter's shutdown, a closed stdout does not turn into exit code 120.
    os._exit(main(sys.argv[1:]))
