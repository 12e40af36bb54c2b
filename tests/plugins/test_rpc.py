"""Calls to a plugin's process: deadlines, crashes and floods end that call only (P4)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterError
from binderclip.plugins.host_loop import IDLE_SECONDS
from binderclip.plugins.rpc import PluginProcess

HEAD = """
import os, sys, time
from binderclip.plugins.host_loop import serve

def answer(method, params):
    if method == "hang":
        time.sleep(600)
    if method == "die":
        print("last words", flush=True)
        os._exit(3)
    if method == "raise":
        raise ValueError("no luck\\nsecond line")
    if method == "flood":
        os.write(1, b"x" * 5_000_000)
    if method == "garbage":
        os.write(3, b"not json\\n")
        time.sleep(600)
    if method == "env":
        return dict(os.environ)
    return {"method": method, "params": params, "pid": os.getpid()}

serve(answer, float(sys.argv[1]))
"""
Make = Callable[..., PluginProcess]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[PluginProcess] = []

    def start(idle: float = IDLE_SECONDS) -> PluginProcess:
        (tmp_path / "host.py").write_text(HEAD)
        argv = [sys.executable, str(tmp_path / "host.py"), str(idle)]
        made.append(PluginProcess("sample", argv, {"PATH": os.environ["PATH"]}))
        return made[-1]

    yield start
    for process in made:
        process.close()


def test_calls_are_answered_by_one_process(make: Make) -> None:
    """D6: one process per plugin."""
    process = make()
    first, second = (process.call("echo", {"n": n}) for n in (1, 2))
    assert (first["params"], second["params"]) == ({"n": 1}, {"n": 2})
    assert first["pid"] == second["pid"] == process.pid


def test_a_hang_ends_that_call_only(make: Make) -> None:
    process = make()
    with pytest.raises(AdapterError, match="did not answer hang in time"):
        process.call("hang", seconds=0.5)
    assert process.call("echo")["method"] == "echo"


def test_nobody_waits_for_the_call_of_another_beyond_his_own_deadline(make: Make) -> None:
    process = make()
    process.call("echo")
    process._lock.acquire()
    with pytest.raises(AdapterError, match="is busy with another call"):
        process.call("echo", seconds=0.05)
    process._lock.release()
    assert process.call("echo")["method"] == "echo"


def test_a_crash_ends_that_call_only_and_tells_the_last_words(make: Make) -> None:
    process = make()
    with pytest.raises(AdapterError, match="ended during die") as caught:
        process.call("die")
    assert "last words" in (caught.value.hint or "")
    assert process.call("echo")["method"] == "echo"


def test_an_exception_keeps_the_process(make: Make) -> None:
    process = make()
    pid = process.call("echo")["pid"]
    with pytest.raises(AdapterError, match=r"sample failed in raise: no luck$"):
        process.call("raise")
    assert process.call("echo")["pid"] == pid


def test_what_a_plugin_prints_is_kept_apart_and_bounded(make: Make) -> None:
    process = make()
    assert process.call("flood")["method"] == "flood"
    process.call("echo")
    assert 0 < len(process.log) <= 64 * 1024


def test_an_answer_that_is_no_json_rpc_is_refused(make: Make) -> None:
    process = make()
    with pytest.raises(AdapterError, match="no JSON-RPC"):
        process.call("garbage", seconds=5)


def test_a_process_that_idled_out_is_started_again(make: Make) -> None:
    process = make(0.05)
    first = process.call("echo")["pid"]
    if process._drain is not None:
        process._drain.join(30)
    assert process.pid is None
    assert process.call("echo")["pid"] != first


def test_the_process_gets_the_given_environment_only(make: Make) -> None:
    """H5: the server's own variables never reach a plugin."""
    os.environ["BINDERCLIP_TEST_SECRET"] = "x"
    try:
        assert "BINDERCLIP_TEST_SECRET" not in make().call("env")
    finally:
        del os.environ["BINDERCLIP_TEST_SECRET"]


def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    process = PluginProcess("sample", [str(tmp_path / "gone")], {})
    with pytest.raises(AdapterError, match="cannot be started"):
        process.call("echo")
