"""The control plane: wake to spawn, wake to succeeded, no-op runs a minute, a page of a long list.

Each is measured against the bare thing: `subprocess.run` of the same no-op, a page of a short list.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from _measure import finish, report, scratch
from sqlalchemy import text

from binderclip.contract.agent import Agent
from binderclip.contract.run import TERMINAL_STATES, RunView
from binderclip.plugins.registry import load_adapter
from binderclip.runs.roster import Roster
from binderclip.runs.waking import Ask
from binderclip.runs.worker import Worker
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.runs import RunStore

NOOP = "/bin/true"
ROUNDS = 20
RATE_SECONDS = 6.0
SHORT, LONG = 1_000, 1_000_000
FILL = """
WITH RECURSIVE n(i) AS (SELECT {start} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {end})
INSERT INTO runs (id, status, adapter_type, agent_id, agent_name, company_id, task_key, cwd,
  wake_reasons, actor, resumed, created_at, attempts, finalized, scheduled, retries)
SELECT printf('%08x-%04x-7000-8000-%012x', i / 65536, i % 65536, i), 'succeeded', 'process',
  'agent' || (i % 10), 'Ada', 'local', 'heartbeat', '/tmp', '["manual"]', 'person', 0,
  '2026-01-01T00:00:00.000Z', 1, 1, 1, 0 FROM n
"""


class Bench:
    """A worker with agents that do nothing."""

    def __init__(self, db: Database, worker: Worker) -> None:
        self.store = RunStore(db)
        self.roster = Roster(db, load_adapter, clock=time.time, nudge=worker.nudge)

    def agent(self, name: str) -> Agent:
        config = {"command": NOOP, "cwd": "/tmp"}
        agent = Agent(
            id="", company_id="local", name=name, adapter_type="process", adapter_config=config
        )
        return self.roster.create_agent(agent, "person")

    def run(self, agent: Agent) -> tuple[float, float]:
        """Seconds from wake to the child's start, and to `succeeded`."""
        begin = time.time()
        view = self._ended(self.roster.wake(Ask(agent.id)).run_id)
        ended = time.time()
        assert view.status == "succeeded" and view.started_at
        return datetime.fromisoformat(view.started_at).timestamp() - begin, ended - begin

    def _ended(self, run_id: str) -> RunView:
        while True:
            view = self.store.get(run_id)
            if view.status in TERMINAL_STATES:
                return view
            time.sleep(0.001)

    def rate(self, agents: list[Agent]) -> float:
        """Runs a minute while each agent always has one run waiting."""
        done = 0
        open_runs = {agent.id: self.roster.wake(Ask(agent.id)).run_id for agent in agents}
        begin = time.perf_counter()
        while time.perf_counter() - begin < RATE_SECONDS:
            working = set(self.store.unfinished())
            for agent_id, run_id in list(open_runs.items()):
                if run_id not in working:
                    done += 1
                    open_runs[agent_id] = self.roster.wake(Ask(agent_id)).run_id
            time.sleep(0.001)
        seconds = time.perf_counter() - begin
        for run_id in open_runs.values():
            self._ended(run_id)
        return done / seconds * 60


@contextmanager
def working(directory: Path) -> Iterator[Bench]:
    with Database.open(Home(directory / "home")) as database:
        worker = Worker(database, load_adapter)
        worker.start()
        try:
            yield Bench(database, worker)
        finally:
            worker.stop(drain=True)


def bare() -> float:
    begin = time.perf_counter()
    subprocess.run([NOOP], check=True)
    return time.perf_counter() - begin


def latency(bench: Bench) -> None:
    agent = bench.agent("latency")
    for _ in range(3):
        bench.run(agent)
    taken = [(*bench.run(agent), bare()) for _ in range(ROUNDS)]
    spawn, ended, alone = (statistics.median(column) for column in zip(*taken, strict=True))
    against = f"against {alone * 1000:.1f} ms for subprocess.run"
    report("wake to spawn", spawn / 0.030, f"{spawn * 1000:.0f} ms of 30, {against}", 1)
    report("wake to succeeded", ended / 0.060, f"{ended * 1000:.0f} ms of 60, {against}", 1)


def rates(bench: Bench) -> None:
    for count, aim in ((1, 1000), (4, 2000), (16, 3000)):
        agents = [bench.agent(f"rate {count} {n}") for n in range(count)]
        rate = bench.rate(agents)
        detail = f"{rate:.0f} runs a minute with {count} agents, aim {aim}"
        report(f"no-op runs, {count} agents", aim / rate, detail, 1)


def listing(directory: Path) -> None:
    with Database.open(Home(directory / "list")) as database:
        store = RunStore(database)
        cases: dict[str, Callable[[], object]] = {
            "newest": lambda: store.list(limit=50),
            "of an agent": lambda: store.list(limit=50, agent_id="agent7"),
            "that failed": lambda: store.list(limit=50, status="failed"),
        }
        _fill(database, 0, SHORT)
        before = {name: _median(case) for name, case in cases.items()}
        _fill(database, SHORT, LONG)
        for name, case in cases.items():
            after = _median(case)
            detail = (
                f"{after * 1000:.2f} ms of {LONG} rows, {before[name] * 1000:.2f} ms of {SHORT}"
            )
            report(f"a page of runs, {name}", after / before[name], detail, 3)


def _fill(database: Database, start: int, end: int) -> None:
    with database.writing() as connection:
        connection.execute(text(FILL.format(start=start, end=end)))


def _median(case: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        case()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def main() -> None:
    with scratch() as directory:
        with working(directory) as bench:
            latency(bench)
            rates(bench)
        listing(directory)
    finish()


main()
