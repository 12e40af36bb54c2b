"""`jobs/<job id>/` in the data directory: `job.json`, `checkpoints/`, `runs/<run id>/`.

Everything in it is a function of the runs' own files: written when a run is over, made again by
`rebuild` with the same bytes. Each file is put in place by rename, a run's `run.json` after its
events and checkpoints, `job.json` last; so whatever a crash leaves behind can be read.
"""

from __future__ import annotations

import builtins
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec

from binderclip.contract.checkpoint import Checkpoint
from binderclip.contract.errors import BinderclipError, NotFound
from binderclip.contract.ids import FULL_ID
from binderclip.contract.job import Job, JobNode, JobRun
from binderclip.contract.run import RunOrder
from binderclip.jobs.adding import added_up, tree_of
from binderclip.jobs.grouping import job_of
from binderclip.jobs.history import RunHistory
from binderclip.store.home import SHORTEST_SUFFIX, Home
from binderclip.store.jsonfile import encode, encode_lines, read_json, write_atomic
from binderclip.store.runfile import OUTCOME, read_order

JOB = "job.json"
RUN = "run.json"
EVENTS = "events.jsonl"
_EVENTS_AT_ONCE = 2000
_CHECKPOINT = re.compile(r"(.+)-(\d+)")
_HINT = "`binderclip jobs` lists them; the last 8 characters of an id are enough."
_Jobs: TypeAlias = builtins.list[Job]
_Report: TypeAlias = Callable[[str, Exception], None]
_DAMAGE = (BinderclipError, OSError, ValueError)


class JobStore:
    """The jobs of a data directory; `retell` makes a lost transcript again before it is read."""

    def __init__(self, home: Home, retell: Callable[[str], object] | None = None) -> None:
        self.home = home
        self._retell = retell
        self.path = home.path / "jobs"

    def list(self, limit: int | None = None) -> _Jobs:
        """Jobs, the one that began last first."""
        found = (self._load(id) for id in sorted(self._ids(), reverse=True))
        jobs = [job for job in found if job is not None]
        return sorted(jobs, key=lambda job: (job.started_at, job.id), reverse=True)[:limit]

    def get(self, job_id: str) -> Job:
        job = self._load(job_id) if FULL_ID.fullmatch(job_id) else None
        if job is None:
            raise NotFound(f"There is no job {job_id} in {self.path}.", hint=_HINT)
        return job

    def runs(self, job_id: str) -> builtins.list[JobRun]:
        """The finished runs of a job, oldest first."""
        folder = self.get_dir(job_id) / "runs"
        kept = (path / RUN for path in sorted(folder.glob("*")))
        return [read_json(path, JobRun) for path in kept if path.is_file()]

    def tree(self, job_id: str) -> tuple[JobNode, ...]:
        """The runs of a job, each with the runs that went on from it."""
        self.get(job_id)
        return tree_of(self.runs(job_id))

    def checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """One checkpoint by its id."""
        named = _CHECKPOINT.fullmatch(checkpoint_id)
        if named and FULL_ID.fullmatch(named[1]):
            path = self._run_job(named[1]) / "checkpoints" / f"{checkpoint_id}.json"
            if path.is_file():
                return read_json(path, Checkpoint)
        raise NotFound(
            f"There is no checkpoint {checkpoint_id}.", hint="`binderclip jobs show` lists them."
        )

    def checkpoints(self, run_id: str) -> builtins.list[Checkpoint]:
        """The checkpoints of a run, one for each attempt."""
        summary = self._run_job(run_id) / "runs" / run_id / RUN
        if not summary.is_file():
            return []
        return [self.checkpoint(id) for id in read_json(summary, JobRun).checkpoints]

    def job_of(self, run_id: str) -> str:
        """The id of the job that a run belongs to, also before it is over and kept there."""
        return job_of(self.home, read_order(self.home, run_id))

    def events(self, run_id: str) -> Iterator[bytes]:
        """The events of a run as JSON, one after the other."""
        path = self._run_job(run_id) / "runs" / run_id / EVENTS
        if path.is_file():
            with path.open("rb") as lines:
                yield from (line.removesuffix(b"\n") for line in lines)

    def find(self, text: str) -> str:
        """The id of the job that a person named by its full id or its last characters."""
        wanted = text.strip().lower()
        found = [id for id in self._ids() if id.endswith(wanted)]
        if len(wanted) < SHORTEST_SUFFIX or not found:
            raise NotFound(f"There is no job {text} in {self.path}.", hint=_HINT)
        if len(found) > 1:
            raise NotFound(
                f"{len(found)} jobs end in {wanted}.", hint="Give more of its last letters."
            )
        return found[0]

    def find_checkpoint(self, text: str) -> Checkpoint:
        """The checkpoint that a person named: a run's id, whole or its end, and `-<attempt>`."""
        named = _CHECKPOINT.fullmatch(text.strip().lower())
        if named is None:
            raise NotFound(f"{text!r} names no checkpoint.", hint="It looks like 1a2b3c4d-1.")
        return self.checkpoint(f"{self.home.find_run(named[1])}-{named[2]}")

    def record(self, run_id: str) -> Job:
        """Keep a finished run in its job; doing it again writes the same."""
        if self._retell is not None:
            self._retell(run_id)
        history = RunHistory(self.home, run_id)
        directory = self.get_dir(history.job_id)
        runs = directory / "runs"
        # One by one from the top, since mkdir's mode does not hold for parents.
        for folder in (self.path, directory, runs, runs / run_id, directory / "checkpoints"):
            folder.mkdir(mode=0o700, exist_ok=True)
        with _locked(directory):
            _sweep(directory)
            _write_events(runs / run_id / EVENTS, history)
            for checkpoint in history.checkpoints:
                write_atomic(
                    directory / "checkpoints" / f"{checkpoint.id}.json", encode(checkpoint)
                )
            write_atomic(runs / run_id / RUN, encode(history.summary()))
            job = self._added_up(history.job_id)
            assert job is not None
            write_atomic(directory / JOB, encode(job))
        return job

    def catch_up(self, report: _Report) -> int:
        """Record the finished runs that are not kept yet; the number of them."""
        kept = {path.parent.name for path in self.path.glob(f"*/runs/*/{RUN}")}
        return self._record_all((id for id in self.home.run_ids() if id not in kept), report)

    def rebuild(self, report: _Report) -> int:
        """Make everything again from the runs' files; jobs whose runs are gone stay."""
        return self._record_all(self.home.run_ids(), report)

    def get_dir(self, job_id: str) -> Path:
        if not FULL_ID.fullmatch(job_id):
            raise NotFound(f"{job_id!r} is not the id of a job.", hint=_HINT)
        return self.path / job_id

    def _record_all(self, run_ids: Iterator[str], report: _Report) -> int:
        done = 0
        for run_id in sorted(run_ids):
            if not (self.home.run_dir(run_id) / OUTCOME).exists():
                continue
            try:
                self.record(run_id)
                done += 1
            except _DAMAGE as problem:
                report(run_id, problem)
        return done

    def _ids(self) -> builtins.list[str]:
        if not self.path.is_dir():
            return []
        return [path.name for path in self.path.iterdir() if FULL_ID.fullmatch(path.name)]

    def _load(self, job_id: str) -> Job | None:
        """The job as it was written, or added up again where a crash came in between."""
        directory = self.get_dir(job_id)
        there = sorted(path.parent.name for path in directory.glob(f"runs/*/{RUN}"))
        try:
            job = msgspec.json.decode((directory / JOB).read_bytes(), type=Job)
        except (FileNotFoundError, msgspec.DecodeError):
            job = None
        return job if job and builtins.list(job.runs) == there else self._added_up(job_id)

    def _added_up(self, job_id: str) -> Job | None:
        runs = self.runs(job_id)
        return added_up(runs, self._first_order(runs[0])) if runs else None

    def _first_order(self, run: JobRun) -> RunOrder | None:
        try:
            return read_order(self.home, run.id)
        except BinderclipError:
            return None

    def _run_job(self, run_id: str) -> Path:
        return self.get_dir(self.job_of(run_id))


def _write_events(path: Path, history: RunHistory) -> None:
    """Events may be many: they go to disk in batches, and in place when all are there."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    events = history.events()
    with os.fdopen(os.open(scratch, flags, 0o600), "wb") as file:
        while batch := builtins.list(islice(events, _EVENTS_AT_ONCE)):
            file.write(encode_lines(batch))
    scratch.rename(path)


def _sweep(directory: Path) -> None:
    """Remove what a writer that died left half done; nobody else writes while we hold the lock."""
    for pattern in ("*.tmp", "checkpoints/*.tmp", "runs/*/*.tmp"):
        for scratch in directory.glob(pattern):
            scratch.unlink(missing_ok=True)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One writer a job: the lock is on the directory itself, so that no file is needed for it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
