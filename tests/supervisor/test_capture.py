"""Every byte the child printed is in its log, and the index says when it was there."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from binderclip.supervisor.capture import FileCapture
from binderclip.supervisor.index import IndexWriter, read_index
from binderclip.supervisor.launch import Capture
from tests.supervisor.attempts import BOTH_FILE, BOTH_PIPE, Attempt, python

BOTH_WAYS = pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE], ids=["file", "pipe"])


def check_index(attempt: Attempt) -> None:
    """D2: times never go back, offsets grow, one record per millisecond and stream at most."""
    records = attempt.index()
    assert [r[0] for r in records] == sorted(r[0] for r in records)
    for letter in "oe":
        ends = [end for _, stream, end in records if stream == letter]
        milliseconds = [micros // 1000 for micros, stream, _ in records if stream == letter]
        assert ends == sorted(set(ends))
        assert len(milliseconds) == len(set(milliseconds))


@BOTH_WAYS
def test_binary_output_is_kept_exactly(attempt: Attempt, capture: Capture) -> None:
    """D2: bytes are the truth, NUL and broken UTF-8 included."""
    code = (
        "import os\n"
        "os.write(1, bytes(range(256)) * 40)\n"
        "os.write(2, b'\\xe2\\x82'); os.write(2, b'\\xac\\n\\0\\xff')\n"
    )
    end = attempt.run(python(code), capture=capture)
    assert attempt.stdout == bytes(range(256)) * 40
    assert attempt.stderr == b"\xe2\x82\xac\n\0\xff"
    assert (end.stdout_bytes, end.stderr_bytes) == (256 * 40, 6)
    assert attempt.visible("o") == attempt.stdout and attempt.visible("e") == attempt.stderr
    check_index(attempt)


@BOTH_WAYS
def test_a_flood_of_fifty_megabytes_is_kept_exactly(attempt: Attempt, capture: Capture) -> None:
    """H4: exact bytes whatever the child prints; the masked value is the only difference."""
    code = (
        "import os\n"
        "block = b''.join(b'%015d\\n' % n for n in range(4096))\n"
        "for n in range(800): os.write(1, block)\n"
        "os.write(1, b'the-end-token')\n"
    )
    end = attempt.run(python(code), capture=capture, secrets=["the-end-token"])
    block = b"".join(b"%015d\n" % n for n in range(4096))
    expected = hashlib.sha256(block * 800 + b"*" * 13).hexdigest()
    assert hashlib.sha256(attempt.stdout).hexdigest() == expected
    assert end.stdout_bytes == len(block) * 800 + 13
    assert end.masked == 1
    check_index(attempt)


@BOTH_WAYS
def test_a_child_that_closes_its_output_early_is_followed_to_its_end(
    attempt: Attempt, capture: Capture
) -> None:
    """D1: the end of the run is the end of the child, not of its output."""
    code = "import os; os.write(1, b'bye'); os.close(1); os.close(2); os._exit(4)"
    end = attempt.run(python(code), capture=capture)
    assert end.exit_code == 4
    assert attempt.stdout == b"bye"


@BOTH_WAYS
def test_output_of_a_grandchild_is_kept_until_it_is_ended(
    attempt: Attempt, capture: Capture
) -> None:
    """D1: main child gone, leftovers ended, drain: also when a leftover holds the pipe."""
    code = (
        "import os, signal, time\n"
        "r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    def last(*_): os.write(1, b'last words'); os._exit(0)\n"
        "    signal.signal(signal.SIGTERM, last)\n"
        "    os.write(w, b'.')\n"
        "    while True: time.sleep(60)\n"
        "os.read(r, 1); os.write(1, b'parent, ')\n"
    )
    end = attempt.run(python(code), capture=capture)
    assert end.exit_code == 0 and not end.killed
    assert attempt.stdout == b"parent, last words"
    assert len(end.leftovers) == 1 and "-S -c" in end.leftovers[0].command


@BOTH_WAYS
def test_an_unfinished_line_is_visible_at_once(attempt: Attempt, capture: Capture) -> None:
    """D2: live readers wait for no newline."""
    attempt.start(
        python("import os, time; os.write(1, b'sure? '); time.sleep(60)"), capture=capture
    )
    attempt.wait_until_visible(b"sure? ")


def test_mixed_capture_keeps_each_stream_in_its_own_way(attempt: Attempt) -> None:
    """D1: capture is per stream."""
    end = attempt.run(
        ["sh", "-c", "echo out; echo err > /dev/stderr; echo more > /dev/stderr"],
        capture=Capture("file", "pipe"),
    )
    assert attempt.stdout == b"out\n"
    assert attempt.stderr == b"err\nmore\n"
    assert end.truncated == ()


@BOTH_WAYS
def test_a_reader_bound_to_the_index_never_sees_a_secret(
    attempt: Attempt, capture: Capture
) -> None:
    """D8: masked before the index record is written, also when it is written in parts."""
    secret = 'pa"ss/w\\ord-with-quotes'
    code = (
        "import json, os, sys\n"
        "secret = os.environ['TOKEN']\n"
        "for n in range(4000):\n"
        "    line = json.dumps({'n': n, 'text': secret if n % 7 == 0 else 'x' * (n % 90)})\n"
        "    line = line.encode() + b'\\n'\n"
        "    cut = n % len(line) if n % 5 == 0 else len(line)\n"
        "    os.write(1, line[:cut])\n"
        "    if cut < len(line): os.write(1, line[cut:])\n"
    )
    attempt.start(python(code), capture=capture, env={"TOKEN": secret}, secret_env=["TOKEN"])
    shown = json.dumps(secret)[1:-1].encode()
    reads = 0
    while attempt.path("exit.json").exists() is False:
        assert shown not in attempt.visible()
        reads += 1
    end = attempt.end()
    lines = attempt.stdout.splitlines()
    assert reads and end.masked == 572
    assert [json.loads(line)["n"] for line in lines] == list(range(4000))
    assert shown not in attempt.stdout and secret.encode() not in attempt.stdout
    assert attempt.meta()["masked"] == 572


def test_a_held_back_tail_is_released_at_the_end(attempt: Attempt) -> None:
    """D8: what might have become a secret and did not is kept."""
    end = attempt.run(python("print('secret-val', end='')"), secrets=["secret-value"])
    assert attempt.visible() == b"secret-val"
    assert end.masked == 0


def test_a_truncated_log_is_noticed_and_offsets_keep_growing(attempt: Attempt) -> None:
    """D1: truncation is detected by guard bytes and reported; the index stays monotonic."""
    truncate, finish = attempt.path("truncate"), attempt.path("finish")
    os.mkfifo(truncate)
    os.mkfifo(finish)
    script = (
        f"echo the first line >&2; read go < {truncate}; "
        f"echo second > /dev/stderr; echo third >&2; read go < {finish}"
    )
    attempt.start(["sh", "-c", script])
    attempt.wait_until_visible(b"the first line\n", "e")
    truncate.write_text("go\n")
    attempt.wait_until_visible(b"second\n", "e")
    attempt.wait_until_visible(b"third\n", "e")
    finish.write_text("go\n")
    end = attempt.end()
    assert (end.truncated[0].stream, end.truncated[0].at) == ("stderr", len(b"the first line\n"))
    # The shell does not append what it redirects, so the two lines may change places.
    assert sorted(attempt.stderr.split()) == [b"second", b"third"]
    assert attempt.stderr.startswith(b"\n" * len(b"the first line\n"))
    assert end.stderr_bytes == len(attempt.stderr)
    check_index(attempt)


def test_truncation_is_noticed_even_when_the_log_outgrew_its_old_size(tmp_path: Path) -> None:
    """D1: guard bytes, not only the size."""
    index = IndexWriter(str(tmp_path / "index"))
    capture = FileCapture(str(tmp_path), "o", [], index)
    os.write(capture.child_fd, b"one\ntwo\n")
    capture.pump()
    os.truncate(capture.path, 0)
    os.write(capture.child_fd, b"THREE\nFOUR\n")
    capture.pump()
    os.write(capture.child_fd, b"FIVE\n")
    capture.pump()
    capture.finish()
    index.flush(final=True)
    capture.close()
    index.close()
    assert capture.truncated == [{"stream": "stdout", "at": 8}]
    log = (tmp_path / "stdout.log").read_bytes()
    assert log == b"\n" * 11 + b"THREE\nFOUR\nFIVE\n"
    assert read_index(str(tmp_path / "index"))[0][-1][2] == len(log)


def test_a_torn_index_line_is_no_record_and_is_not_continued(tmp_path: Path) -> None:
    """D2: a byte that no whole record covers does not exist."""
    path = tmp_path / "index"
    path.write_bytes(b"1000 o 5\n2000 o 9\n3000 o 1")
    index = IndexWriter(str(path))
    assert index.covered == {"o": 9, "e": 0}
    index.note("o", 12)
    index.close()
    records, _ = read_index(str(path))
    assert [(letter, end) for _, letter, end in records] == [("o", 5), ("o", 9), ("o", 12)]


def test_the_index_is_read_on_from_where_a_reader_stopped(tmp_path: Path) -> None:
    """D2: readers follow by offset."""
    path = tmp_path / "index"
    path.write_bytes(b"1000 o 5\n2000 e 9\n30")
    first, position = read_index(str(path))
    assert first == [(1000, "o", 5), (2000, "e", 9)]
    with open(path, "ab") as file:
        file.write(b"00 o 7\n")
    assert read_index(str(path), position) == ([(3000, "o", 7)], position + 9)
