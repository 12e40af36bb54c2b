"""Where a run works: prepared before it, brought back after it, each step a row (W1-W6).

Finalizing is idempotent: a crash anywhere leaves rows and refs from which it is done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.check import Check
from binderclip.contract.company import Environment
from binderclip.contract.errors import BinderclipError, RestoreConflict, WorkspaceError
from binderclip.contract.operation import OperationKind, WorkspaceOperation
from binderclip.contract.run import ExecutionResult
from binderclip.contract.target import ExecutionTarget
from binderclip.runs.control import Control
from binderclip.sdk.adapter import Plan
from binderclip.sdk.env import PASSED, PASSED_PREFIXES
from binderclip.store.database import Database
from binderclip.store.operations import FINALIZE, Operations
from binderclip.workspaces import relay
from binderclip.workspaces.environment import check_environment
from binderclip.workspaces.far import Unreachable
from binderclip.workspaces.git import Git
from binderclip.workspaces.merging import Choice
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.ssh import Ssh
from binderclip.workspaces.trip import Trip

_API = ("PAPERCLIP_API_URL", "PAPERCLIP_API_KEY")
_LIMIT_SLACK_SEC = 60.0
NO_API = "The agent cannot reach the API from there: no server of this home is up to answer."
_PAUSES_SEC = (1.0, 3.0, 10.0)


def all_workspaces(db: Database) -> Workspaces:
    """The workspaces of a home."""
    return Workspaces(db.home.path / "worktrees")


@dataclass
class Workplace:
    """The workspace of one run, and the machine that its agent works on."""

    control: Control
    run_id: str
    task_id: str | None
    workspace: Workspace | None
    ssh: Ssh | None = None
    api_port: int | None = None
    """The listener that an agent on another machine may reach; None if there is none."""

    @property
    def cwd(self) -> str | None:
        """Where the run works on this machine; None where that is no matter of a workspace."""
        return self.workspace.cwd if self.workspace else None

    @property
    def target(self) -> ExecutionTarget:
        if self.ssh is None:
            return ExecutionTarget()
        return ExecutionTarget(
            kind="ssh",
            host=self.ssh.host,
            port=self.ssh.port,
            user=self.ssh.user,
            remote_cwd=self._remote_cwd(),
        )

    @property
    def session_target(self) -> str:
        """The machine that sessions of the agent live on: `local`, or a name of its own (S3)."""
        if self.ssh is None:
            return "local"
        return f"ssh:{self.ssh.name}:{self.ssh.port}" if self.ssh.port else f"ssh:{self.ssh.name}"

    def checks(self, command: str) -> list[Check] | None:
        """What stands in the way over there; None if the agent works on this machine (E4)."""
        if self.ssh is None:
            return None
        found = check_environment(self.ssh, [command] if command else [])
        return [check for check in found if check.level == "error"]

    def carry(self) -> None:
        """Bring the workspace to the machine that the agent works on."""
        trip = self.trip()
        if trip is None or self.workspace is None:
            return
        with self._alone("taking it to another machine"):
            workspaces = all_workspaces(self.control.db)
            place = self._remote_dir()
            self.workspace = workspaces.change(self.workspace, remote_dir=place, away=True)
            trip.out()

    def remove_copy(self) -> Workspace | None:
        """Delete the copy on the other machine, once all of it is here."""
        trip = self.trip()
        if self.workspace is None:
            return None
        with self._alone("removing its copy"):
            if trip is not None:
                trip.remove_copy()
            workspaces = all_workspaces(self.control.db)
            self.workspace = workspaces.change(self.workspace, remote_dir=None)
        return self.workspace

    def plan(self, plan: Plan, attempt: int, scratch: Path, host: Mapping[str, str]) -> Plan:
        """The plan of an attempt as this machine carries it out."""
        if self.ssh is None:
            return plan
        run = relay.RemoteRun(
            ssh=self.ssh,
            attempt_dir=self._attempt_dir(attempt),
            launch=self._launch(plan, attempt, scratch, host),
            scratch=str(scratch),
            api_port=self.api_port,
        )
        kept = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "SSH_AUTH_SOCK")
        env = {name: host[name] for name in kept if name in host}
        limits = {**plan.limits, "graceSec": plan.limits["graceSec"] + relay.GRACE_SEC}
        return msgspec.structs.replace(
            plan,
            argv=relay.command(),
            env={**env, "PAPERCLIP_RUN_ID": self.run_id},
            stdin=run.to_json(),
            limits=limits,
            secret_env=(),
        )

    def finalize(self, result: ExecutionResult) -> ExecutionResult:
        """Bring the work back and note how that went; a failure fails the run."""
        self._close("execute", result)
        try:
            if not self._is_back():
                self.bring_back()
        except BinderclipError as problem:
            if self._last(FINALIZE) is None:
                # Somebody else had the workspace all the time; that is a failure as well (W2).
                begun = self._begin(FINALIZE)
                self.control.end_finalize(begun.id, succeeded=False, error=_told(problem))
            return _failed(result, problem)
        return result

    def bring_back(self, choice: Choice | None = None) -> WorkspaceOperation:
        """Finalize the workspace under a row of its own; the error is raised and in the row."""
        with self._alone("bringing its work back"):
            last = self._last(FINALIZE)
            if choice is not None and last is not None and last.status == "succeeded":
                # Somebody settled it while this one waited.
                return last
            return self._bring_back(choice)

    def _bring_back(self, choice: Choice | None) -> WorkspaceOperation:
        self._close(FINALIZE, None)
        begun = self._begin(FINALIZE)
        try:
            _patiently(self._end_remote)
            _patiently(lambda: self._restore(choice))
        except BinderclipError as problem:
            self.control.end_finalize(begun.id, succeeded=False, error=_told(problem))
            raise
        return self.control.end_finalize(begun.id, succeeded=True)

    def _is_back(self) -> bool:
        last = self._last(FINALIZE)
        return last is not None and last.status in ("succeeded", "waived")

    @contextmanager
    def _alone(self, doing: str) -> Iterator[None]:
        """Have the workspace to ourselves, as it is when nobody else changes it."""
        if self.workspace is None:
            yield
            return
        workspaces = all_workspaces(self.control.db)
        with workspaces.held(self.workspace.id, doing):
            self.workspace = workspaces.get(self.workspace.id)
            yield

    def note_prepared(self, begun: WorkspaceOperation) -> None:
        """The workspace is there, and the agent's turn begins."""
        detail: dict[str, Any] = {"environmentId": None}
        if self.workspace is not None:
            one = self.workspace
            detail = {
                "workspaceId": one.id,
                "branch": one.branch,
                "cwd": one.cwd,
                "environmentId": one.environment_id,
                "notes": list(one.notes),
            }
        if self.ssh is not None:
            notes = [*detail.get("notes", []), *([] if self.api_port else [NO_API])]
            detail |= {"host": self.ssh.name, "remoteDir": self._remote_dir(), "notes": notes}
        with self.control.db.writing() as connection:
            Operations(connection).end(begun.id, "succeeded", self.control.now(), **detail)
        self._begin("execute")

    def _restore(self, choice: Choice | None) -> None:
        if self.workspace is None:
            return
        workspaces = all_workspaces(self.control.db)
        trip = self.trip()
        if trip is None:
            if Git(self.workspace.tree).resolve("HEAD") is None:
                raise WorkspaceError(f"The worktree {self.workspace.tree} is gone or damaged.")
            return
        try:
            if choice is None:
                trip.back()
            else:
                trip.resolve(choice)
        except RestoreConflict:
            self.workspace = workspaces.change(self.workspace, state="conflict")
            raise
        self.workspace = workspaces.change(self.workspace, state="active", away=False)

    def _end_remote(self) -> None:
        """The remote process tree dies with the run."""
        if self.ssh is None:
            return
        attempts = self.control.db.home.attempts(self.run_id)
        far = self.ssh.far() if attempts else None
        for number in attempts:
            assert far is not None
            told = far.ask("finish", attemptDir=self._attempt_dir(number), remove=True)
            if not told["ended"]:
                message = f"Processes of the run are still alive on {self.ssh.name}."
                raise WorkspaceError(message, hint="End them there, then try again.")

    def trip(self) -> Trip | None:
        """The way to the copy on another machine; None if nothing travels."""
        if self.ssh is None or self.ssh.in_place or self.workspace is None:
            return None
        journal = all_workspaces(self.control.db).journal(self.workspace.id)
        return Trip(
            Git(self.workspace.tree),
            self.workspace.id,
            self.ssh.far(),
            self._remote_dir(),
            journal,
            paths=self.ssh.paths,
        )

    def _launch(
        self, plan: Plan, attempt: int, scratch: Path, host: Mapping[str, str]
    ) -> dict[str, Any]:
        limits = plan.limits
        wall, idle = limits["timeoutSec"], limits["idleTimeoutSec"]
        return {
            "runId": self.run_id,
            "attempt": attempt,
            "argv": list(plan.argv),
            "env": self._remote_env(plan.env, host),
            "cwd": self._remote_cwd(),
            "capture": {"stdout": plan.capture.stdout, "stderr": plan.capture.stderr},
            # The limits of this machine come first; those over there hold when it is gone.
            "limits": {
                "timeout_sec": wall + _LIMIT_SLACK_SEC if wall else 0,
                "idle_timeout_sec": idle + _LIMIT_SLACK_SEC if idle else 0,
                "grace_sec": limits["graceSec"],
                "max_log_bytes": limits["maxLogBytes"],
            },
            "secrets": list(plan.secrets),
            "secretEnv": list(plan.secret_env),
            "path": list(self.ssh.path) if self.ssh else [],
            "replace": {str(scratch): "@scratch", plan.cwd: "@cwd"},
            "stdin": relay.encoded(plan.stdin),
            "leaseSec": self.ssh.lease_sec if self.ssh else 0,
        }

    def _remote_env(self, env: Mapping[str, str], host: Mapping[str, str]) -> dict[str, str]:
        """The agent's variables without those that tell of this machine."""
        unreachable = _API if self.api_port is None else ()
        return {
            name: value
            for name, value in env.items()
            if name not in unreachable
            and not (
                (name in PASSED or name.startswith(PASSED_PREFIXES)) and host.get(name) == value
            )
        }

    def _remote_dir(self) -> str:
        assert self.ssh is not None
        if self.ssh.in_place:
            return self.ssh.in_place
        assert self.workspace is not None
        name = Path(self.workspace.tree).name
        return f"{self.ssh.root.rstrip('/')}/copies/{self.workspace.id}/{name}"

    def _remote_cwd(self) -> str:
        if self.workspace is None or (self.ssh and self.ssh.in_place):
            return self._remote_dir()
        inside = Path(self.workspace.cwd).relative_to(self.workspace.tree)
        return str(Path(self._remote_dir()) / inside)

    def _attempt_dir(self, number: int) -> str:
        assert self.ssh is not None
        return f"{self.ssh.root.rstrip('/')}/runs/{self.run_id}/attempt-{number}"

    def _begin(self, kind: OperationKind) -> WorkspaceOperation:
        with self.control.db.writing() as connection:
            now = self.control.now()
            return Operations(connection).begin(self.run_id, self.task_id, kind, now)

    def _last(self, kind: OperationKind) -> WorkspaceOperation | None:
        with self.control.db.reading() as connection:
            found = Operations(connection).of_run(self.run_id)
        return next((one for one in reversed(found) if one.kind == kind), None)

    def _close(self, kind: OperationKind, result: ExecutionResult | None) -> None:
        """End a row that is still open: with the result, or because a crash left it so."""
        last = self._last(kind)
        if last is None or last.status != "running":
            return
        error = "It was interrupted." if result is None else result.error_message
        good = result is not None and result.error_code is None
        with self.control.db.writing() as connection:
            status: Any = "succeeded" if good else "failed"
            Operations(connection).end(last.id, status, self.control.now(), error)


def _patiently(call: Callable[[], None]) -> None:
    """Try again for a while when the other machine does not answer."""
    for pause in _PAUSES_SEC:
        try:
            return call()
        except Unreachable:
            time.sleep(pause)
    return call()


def environment_target(environment: Environment | None) -> Ssh | None:
    """How to reach an environment; None if it is this machine."""
    if environment is None or environment.kind == "local":
        return None
    return Ssh.from_config(environment.config)


def _told(problem: BinderclipError) -> str:
    return f"{problem.message} {problem.hint or ''}".strip()


def _failed(result: ExecutionResult, problem: BinderclipError) -> ExecutionResult:
    """The run's result when its workspace could not be finalized; an earlier failure stays told."""
    if result.error_code is not None:
        told = f"{result.error_message} Also: {_told(problem)}"
        return msgspec.structs.replace(result, error_message=told)
    code: Any = "restore_conflict" if isinstance(problem, RestoreConflict) else "workspace_failed"
    return msgspec.structs.replace(result, error_code=code, error_message=_told(problem))
