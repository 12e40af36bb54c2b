"""Events and checkpoints of a long run against parsing that run: linear, and at most as long.

Parsing is reading the log by its index, building entries and writing the transcript, as the driver
does; the other side reads that transcript and writes the job.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from _measure import finish, report, scratch

from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, ExecutionResult, RunOrder
from binderclip.contract.wire import iso_time
from binderclip.jobs.store import JobStore
from binderclip.plugins.registry import load_adapter
from binderclip.runs.transcript import Transcriber
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.testing.fixtures import cases_of
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, write_order, write_outcome
from binderclip.supervisor.records import ExitRecord

ENTRIES = 100_000
ROUNDS = 3
RECORDING = {"claude_local": "tools", "codex_local": "tools"}


def main() -> None:
    for type, name in RECORDING.items():
        adapter = load_adapter(type)
        found = [case for case in cases_of(adapter) if case.name == name] or cases_of(adapter)
        small = _best(adapter, found[0].stdout, ENTRIES // 10)
        large = _best(adapter, found[0].stdout, ENTRIES)
        detail = f"{large[1]:.2f} s for {ENTRIES:,} entries, parsed in {large[0]:.2f} s"
        report(f"jobs {type}: record / parse", large[1] / large[0], detail, limit=1.0)
        times = (large[1] / small[1]) / 10
        report(f"jobs {type}: time of ten times as much / 10", times, "1 is linear", limit=1.5)
        sizes = (large[2] / small[2]) / 10
        detail = f"{large[2] / ENTRIES:.0f} bytes an entry"
        report(f"jobs {type}: bytes of ten times as much / 10", sizes, detail, limit=1.1)
    finish()


def _best(adapter: Adapter, recorded: bytes, entries: int) -> tuple[float, float, int]:
    """The shortest of some rounds: seconds to parse, seconds to record, bytes written."""
    runs = [_measured(adapter, recorded, entries) for _ in range(ROUNDS)]
    return min(run[0] for run in runs), min(run[1] for run in runs), runs[0][2]


def _measured(adapter: Adapter, recorded: bytes, entries: int) -> tuple[float, float, int]:
    with scratch() as directory:
        home = Home(directory / "home").ensure()
        run_id = _written(home, adapter, recorded, entries)
        begin = time.process_time()
        _parse(home, adapter, run_id)
        parsed = time.process_time() - begin
        begin = time.process_time()
        JobStore(home).record(run_id)
        taken = time.process_time() - begin
        files = (path for path in (home.path / "jobs").rglob("*") if path.is_file())
        return parsed, taken, sum(path.stat().st_size for path in files)


def _written(home: Home, adapter: Adapter, recorded: bytes, entries: int) -> str:
    """A run whose middle repeats a recording until it has so many entries."""
    now = time.time()
    agent = AgentRef(id="cli", company_id="local", name="cli", adapter_type=adapter.type)
    order = RunOrder(
        id=new_id(now),
        adapter_type=adapter.type,
        agent=agent,
        cwd="/tmp",
        created_at=iso_time(now),
        prompt="go",
    )
    write_order(home, order)
    directory = home.make_attempt_dir(order.id, 1)
    first, *middle, last = [line for line in recorded.split(b"\n") if line]
    times = entries // max(1, _entries_of(adapter, middle)) + 1
    (directory / "stdout.log").write_bytes(b"\n".join([first, *middle * times, last]) + b"\n")
    _write_documents(directory, now)
    result = ExecutionResult(exit_code=0, signal=None, timed_out=False, summary="done")
    outcome = RunOutcome(state="succeeded", ended_at=iso_time(now), result=result)
    write_outcome(home, order.id, outcome)
    return order.id


def _write_documents(directory: Path, now: float) -> None:
    size = (directory / "stdout.log").stat().st_size
    # A record for each page or so, as a supervisor leaves them.
    ends = [*range(4096, size, 4096), size]
    lines = (f"{int((now + at / 1000) * 1e6)} o {end}\n" for at, end in enumerate(ends))
    (directory / "index").write_text("".join(lines))
    (directory / "meta.json").write_text(json.dumps({"startedAt": iso_time(now)}))
    document = {
        **{"reason": "exited", "exitCode": 0, "signal": None, "startedAt": iso_time(now)},
        **{"endedAt": iso_time(now), "stdoutBytes": size, "stderrBytes": 0, "masked": 0},
        **{"leftovers": [], "truncated": [], "adopted": False, "cancel": None},
        **{"error": None, "killed": False},
    }
    (directory / "exit.json").write_text(json.dumps(document))


def _entries_of(adapter: Adapter, lines: list[bytes]) -> int:
    parser = adapter.create_parser()
    return sum(len(parser.parse_line(line.decode(), "") or ()) for line in lines)


def _parse(home: Home, adapter: Adapter, run_id: str) -> None:
    directory = home.attempt_dir(run_id, 1)
    transcriber = Transcriber(adapter, directory, 1)
    exit = ExitRecord.from_json(json.loads((directory / "exit.json").read_text()))
    for _ in transcriber.finish(exit):
        continue
    transcriber.close()


main()
