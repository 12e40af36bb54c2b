"""Starting an attempt under a supervisor, or finding one that runs already (D1, D4)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.check import Check, CheckRequest
from binderclip.contract.errors import RunError
from binderclip.contract.ids import short
from binderclip.contract.run import ExecutionRequest, RuntimeSession
from binderclip.runs.driver import Drive
from binderclip.sdk.adapter import SHORTEST_SECRET, Host, Plan
from binderclip.sdk.env import REDACTED
from binderclip.supervisor import launch as supervisor

SCRATCH = "scratch"


class Attempt(msgspec.Struct, frozen=True):
    """One supervised process of a run, seen by its driver."""

    number: int
    directory: Path

    @property
    def exit(self) -> supervisor.ExitRecord | None:
        return supervisor.read_exit(str(self.directory))


def blocking_checks(drive: Drive) -> list[Check]:
    """The errors of the checks that start no process; any of them blocks the run (E3)."""
    assert drive.request is not None
    if drive.place is not None:
        elsewhere = drive.place.checks(_command(drive))
        if elsewhere is not None:
            return elsewhere
    request = CheckRequest(
        company_id=drive.order.agent.company_id,
        adapter_type=drive.adapter.type,
        config=drive.request.config,
        depth="preflight",
    )
    report = drive.adapter.test_environment(request, drive.host_env, drive.now())
    return [check for check in report.checks if check.level == "error"]


def _command(drive: Drive) -> str:
    """The program that an agent's config names, else its adapter's."""
    named = drive.request.config.get("command") if drive.request else None
    command = str(named or drive.adapter.manifest.command)
    # One that is given relative to the working directory cannot be looked up elsewhere.
    return command if command.startswith("/") or "/" not in command else ""


@contextmanager
def started(drive: Drive, number: int, *, fresh: bool = False) -> Iterator[Attempt]:
    """Start the attempt's process; while the block lasts, its FIFOs are held open (D1)."""
    assert drive.request is not None
    request = _without_session(drive.request) if fresh else drive.request
    directory = drive.home.make_attempt_dir(drive.run_id, number)
    scratch = directory / SCRATCH
    scratch.mkdir(mode=0o700)
    host = Host(
        env=drive.host_env,
        scratch=scratch,
        api_url=drive.api_url,
        skills=drive.skills,
        attempt_dir=directory,
    )
    plan = drive.adapter.plan(request, host)
    if drive.place is not None:
        plan = drive.place.plan(plan, number, scratch, drive.host_env)
    order = _supervisor_request(drive, plan, directory, number, request)
    with _fifos(directory, order.capture):
        try:
            supervisor.launch(order, plan.stdin, nursery=drive.nursery)
        except supervisor.SpawnFailed as problem:
            # exit.json tells it as well, and the run ends by the usual path.
            drive.listener.notice(str(problem))
        except supervisor.LaunchRefused as problem:
            # The supervisor died on its way. What it began is found by whoever adopts.
            if problem.reason not in ("no_answer", "started"):
                message = f"Run {short(drive.run_id)} could not be started: {problem}"
                raise RunError(message) from None
        yield Attempt(number, directory)


@contextmanager
def found(drive: Drive, number: int) -> Iterator[Attempt]:
    """An attempt that another driver started; its FIFOs are held open from now on."""
    directory = drive.home.attempt_dir(drive.run_id, number)
    meta = supervisor.read_meta(str(directory)) or {}
    capture = supervisor.Capture(**meta.get("capture", {}))
    with _fifos(directory, capture):
        yield Attempt(number, directory)


def keep_supervised(attempt: Attempt) -> bool:
    """Put a new supervisor in charge if the old one died; tells whether that was needed."""
    directory = str(attempt.directory)
    if supervisor.attempt_state(directory) != "unattended":
        return False
    try:
        supervisor.adopt(directory)
    except supervisor.LaunchRefused:
        return False
    return True


def cancel(attempt_dir: Path, by: str, reason: str, kill: bool = False) -> None:
    """Ask the supervisor to end the attempt."""
    supervisor.request_cancel(str(attempt_dir), by, reason, kill)


def clear_scratch(directory: Path) -> None:
    """Remove what was lent to the agent for this attempt only."""
    shutil.rmtree(directory / SCRATCH, ignore_errors=True)


@contextmanager
def _fifos(directory: Path, capture: supervisor.Capture) -> Iterator[None]:
    held = supervisor.make_fifos(str(directory), capture)
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def _without_session(request: ExecutionRequest) -> ExecutionRequest:
    runtime = RuntimeSession(task_key=request.runtime.task_key)
    return msgspec.structs.replace(request, runtime=runtime)


def _supervisor_request(
    drive: Drive, plan: Plan, directory: Path, number: int, request: ExecutionRequest
) -> supervisor.Request:
    limits = plan.limits
    return supervisor.Request(
        attempt_dir=str(directory),
        run_id=drive.run_id,
        attempt=number,
        argv=plan.argv,
        env=plan.env,
        cwd=plan.cwd,
        capture=supervisor.Capture(plan.capture.stdout, plan.capture.stderr),
        limits=supervisor.Limits(
            timeout_sec=limits["timeoutSec"],
            idle_timeout_sec=limits["idleTimeoutSec"],
            grace_sec=limits["graceSec"],
            max_log_bytes=limits["maxLogBytes"],
        ),
        secrets=(*plan.secrets, *long_enough(drive.secrets)),
        secret_env=(*plan.secret_env, *_holding(plan.env, drive.secrets, plan.secret_env)),
        meta={
            "adapterType": drive.adapter.type,
            "adapterVersion": drive.adapter.manifest.version,
            "runtime": drive.adapter.manifest.runtime or drive.adapter.type,
            "parserVersion": drive.adapter.parser_version,
            "agentId": drive.order.agent.id,
            "taskKey": drive.order.task_key,
            "wakeReasons": list(drive.order.wake_reasons),
            "session": msgspec.to_builtins(request.runtime),
            "sessionReason": drive.order.session_reason,
            "invocation": without(msgspec.to_builtins(plan.meta), drive.secrets),
        },
    )


def without(value: Any, secrets: Iterable[str]) -> Any:
    """A value for people's eyes: no string in it holds a secret."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED) if secret else value
        return value
    if isinstance(value, dict):
        return {key: without(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(item, secrets) for item in value]
    return value


def long_enough(secrets: Iterable[str]) -> tuple[str, ...]:
    """Those that can be masked in output without masking half of it (D8)."""
    return tuple(secret for secret in secrets if len(secret.encode()) >= SHORTEST_SECRET)


def _holding(env: dict[str, str], secrets: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    values = set(secrets)
    return tuple(name for name, value in env.items() if value in values and name not in set(known))
