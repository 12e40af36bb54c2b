"""The supervisor process: takes the attempt's lock, starts or adopts its child, sees it to the end.

Everything it needs comes in a request whose descriptor it was given; nothing is inherited.
"""

from __future__ import annotations

import json
import os
import time

from binderclip.supervisor import documents, kernel, locks, processes
from binderclip.supervisor.cgroup import Cgroup
from binderclip.supervisor.masking import mask_text, needles_of
from binderclip.supervisor.processes import Process
from binderclip.supervisor.spawn import Program, SpawnError, spawn
from binderclip.supervisor.supervise import Supervision
from binderclip.supervisor.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def main(arguments: list[str]) -> NoReturn:
    """Entry of a fresh interpreter: `launch|adopt|nursery|spare` and the numbers of descriptors."""
    mode, *numbers = arguments
    fds = [int(number) for number in numbers]
    # The one who started us waits for this process; the work is done by its orphan.
    if os.fork():
        os._exit(0)
    if mode == "nursery":
        from binderclip.supervisor import nursery

        nursery.serve(*fds)
    elif mode == "spare":
        from binderclip.supervisor import spare

        spare.serve(*fds)
    else:
        serve(mode, *fds)
    os._exit(0)


def serve(mode: str, request_fd: int, input_fd: int, reply_fd: int) -> None:
    """Be the supervisor of one attempt; returns when exit.json is in place or nothing was begun."""
    detach({request_fd, input_fd, reply_fd}, "binderclip-sup")
    request = json.loads(documents.read_all(request_fd))
    os.close(request_fd)
    attempt_dir = request["attemptDir"]
    reply = Reply(reply_fd)
    try:
        refusal = _claim(attempt_dir, mode)
        if refusal is not None:
            reply.refuse(*refusal)
        elif mode == "adopt":
            _adopted(attempt_dir, request, reply)
        else:
            _launched(attempt_dir, request, input_fd, reply)
    except Exception:
        documents.complain(attempt_dir)
        raise


def detach(kept: set[int], name: str) -> None:
    """Leave session, directory, terminal and every descriptor of whoever started us."""
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for fd in _open_descriptors():
        if fd > 2 and fd not in kept:
            _close_if_open(fd)
    for fd in kept:
        os.set_inheritable(fd, False)
    kernel.set_command_name(name)


def _open_descriptors() -> list[int]:
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    return [int(name) for name in os.listdir(folder)]


def _close_if_open(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return


class Reply:
    """The one line that the driver waits for."""

    def __init__(self, fd: int) -> None:
        self.sent = False
        self._fd = fd

    def refuse(self, reason: str, error: dict[str, Any]) -> None:
        self._send({"ok": False, "reason": reason, "error": error})

    def accept(self, child: Process | None, started_at: str | None) -> None:
        pid = None if child is None else child.pid
        answer = {"supervisorPid": os.getpid(), "childPid": pid, "startedAt": started_at}
        self._send({"ok": True, **answer})

    def _send(self, answer: dict[str, Any]) -> None:
        try:
            documents.write_all(self._fd, json.dumps(answer).encode() + b"\n")
        except BrokenPipeError:
            # The driver died meanwhile; the attempt does not depend on it.
            return
        finally:
            self.sent = True
            os.close(self._fd)


def _claim(attempt_dir: str, mode: str) -> tuple[str, dict[str, Any]] | None:
    """Take the lock for the life of this process, or say why the attempt is not ours."""
    try:
        taken = locks.take(os.path.join(attempt_dir, documents.LOCK))
    except OSError as error:
        message = "The attempt's directory %s cannot be used: %s." % (attempt_dir, error.strerror)
        return "spawn_failed", {"errno": error.errno, "where": "lock", "message": message}
    if taken is None:
        return "locked", {"message": "Another supervisor is in charge of %s." % attempt_dir}
    if os.path.exists(os.path.join(attempt_dir, documents.EXIT)):
        return "finished", {"message": "%s has ended: exit.json is there." % attempt_dir}
    if mode == "launch" and os.path.exists(os.path.join(attempt_dir, documents.META)):
        message = "%s was begun by a supervisor that is gone; adopt it." % attempt_dir
        return "started", {"message": message}
    return None


def _launched(attempt_dir: str, request: dict[str, Any], input_fd: int, reply: Reply) -> None:
    needles = needles_of(_secrets_of(request))
    cgroup = Cgroup.make("binderclip-%s-%s" % (request["runId"], request["attempt"]))
    meta = _first_meta(request, needles, cgroup)
    kernel.become_subreaper()
    tree = Tree(request["marker"], cgroup, request["driver"])
    try:
        attempt = Supervision(attempt_dir, meta, needles, tree)
    except OSError as error:
        if cgroup is not None:
            cgroup.remove()
        reply.refuse("spawn_failed", _unprepared(attempt_dir, error))
        return
    try:
        attempt.save_meta()
        _spawn(attempt, request, input_fd)
        reply.accept(tree.main, meta["startedAt"])
        attempt.follow()
        attempt.finish()
    except SpawnError as error:
        attempt.reason, attempt.error = "spawn_failed", error.to_json()
        attempt.finish()
        reply.refuse("spawn_failed", error.to_json())
    except Exception as error:
        _abort(attempt, error, reply)


def _spawn(attempt: Supervision, request: dict[str, Any], input_fd: int) -> None:
    cgroup = attempt.tree.cgroup
    program = Program(request["argv"], request["env"], request["cwd"])
    program.umask = request["umask"]
    program.cgroup = None if cgroup is None else cgroup.path
    out, err = (capture.child_fd for capture in attempt.captures)
    pid = spawn(program, (input_fd, out, err))
    started = time.time()
    os.close(input_fd)
    attempt.tree.own(pid)
    _check_cgroup(attempt, pid)
    attempt.begin_clock(started)
    attempt.meta["child"] = _identity(pid)
    attempt.save_meta()


def _unprepared(attempt_dir: str, error: OSError) -> dict[str, Any]:
    """The logs cannot even be opened; leave an end if there is room for one."""
    message = "The logs in %s cannot be made: %s. See to space and permissions there."
    cause = SpawnError("prepare", error.errno, message % (attempt_dir, error)).to_json()
    try:
        documents.write_document(attempt_dir, documents.EXIT, documents.end_before_start(cause))
    except OSError:
        # Then the answer to the driver is all there is.
        return cause
    return cause


def _check_cgroup(attempt: Supervision, pid: int) -> None:
    cgroup = attempt.tree.cgroup
    if cgroup is not None and pid not in cgroup.members() and cgroup.remove():
        attempt.tree.cgroup = None
        attempt.meta.pop("cgroup")


def _secrets_of(request: dict[str, Any]) -> list[str]:
    named = [request["env"].get(name, "") for name in request["secretEnv"]]
    return [*request["secrets"], *named]


def _first_meta(
    request: dict[str, Any], needles: list[bytes], cgroup: Cgroup | None
) -> dict[str, Any]:
    meta = dict(request["meta"])
    for key in ("runId", "attempt", "cwd", "limits", "capture", "marker", "secretEnv"):
        meta[key] = request[key]
    meta["argv"] = [mask_text(word, needles) for word in request["argv"]]
    meta["createdAt"] = documents.iso(time.time())
    meta["supervisor"] = _identity(os.getpid())
    meta["bootId"] = processes.boot_id()
    if cgroup is not None:
        meta["cgroup"] = cgroup.path
    return meta


def _identity(pid: int) -> dict[str, int]:
    process = processes.look(pid)
    # A child that ended within a millisecond has no start time to be known by any more.
    start = 0 if process is None else process.start
    return {"pid": pid, "startTime": start, "pgid": pid}


def _adopted(attempt_dir: str, request: dict[str, Any], reply: Reply) -> None:
    meta = _readable_meta(attempt_dir)
    spawned = _has_output(attempt_dir) if meta is None else "child" in meta
    meta = meta or {"limits": {}, "capture": {"stdout": "file", "stderr": "file"}}
    kernel.become_subreaper()
    cgroup = Cgroup(meta["cgroup"]) if "cgroup" in meta else None
    tree = Tree(meta.get("marker", ""), cgroup, request["driver"])
    living = _find_child(tree, meta)
    secrets = [*request["secrets"], *_secrets_in(living, meta.get("secretEnv", []))]
    meta["supervisor"] = _identity(os.getpid())
    attempt = Supervision(attempt_dir, meta, needles_of(secrets), tree)
    attempt.adopted = True
    try:
        _continue(attempt, reply, spawned or bool(living))
    except Exception as error:
        _abort(attempt, error, reply)


def _readable_meta(attempt_dir: str) -> dict[str, Any] | None:
    try:
        return documents.read_document(attempt_dir, documents.META)
    except ValueError:
        # Without it nothing of the attempt can be found; it must still come to an end.
        documents.complain(attempt_dir)
        return None


def _has_output(attempt_dir: str) -> bool:
    paths = [documents.log_path(attempt_dir, letter) for letter in documents.STREAMS]
    return any(os.path.exists(path) and os.path.getsize(path) for path in paths)


def _continue(attempt: Supervision, reply: Reply, spawned: bool) -> None:
    tree, meta = attempt.tree, attempt.meta
    started_at = meta.get("startedAt") or meta.get("createdAt")
    if spawned and started_at:
        attempt.begin_clock(documents.seconds_of(started_at))
    attempt.save_meta()
    if not spawned:
        attempt.reason = "aborted"
        message = "The supervisor ended before the program was started. Start the attempt again."
        attempt.error = {"where": "supervisor", "message": message}
    if tree.main is None:
        attempt.finish()
        reply.accept(None, meta.get("startedAt"))
        return
    reply.accept(tree.main, meta.get("startedAt"))
    attempt.watch_main()
    attempt.follow()
    attempt.finish()


def _find_child(tree: Tree, meta: dict[str, Any]) -> list[Process]:
    """Make the recorded child, if it lives, the tree's main child; everybody alive of the tree."""
    if meta.get("bootId") != processes.boot_id():
        return []
    child = meta.get("child")
    if child is not None:
        process = processes.look(child["pid"])
        if process is not None and process.start == child["startTime"]:
            tree.main = process
    living = tree.members()
    if child is None and living:
        # Spawned, but not yet recorded: the first one is the child, later ones came from it.
        tree.main = min(living, key=lambda process: process.start)
        meta["child"] = _identity(tree.main.pid)
    return living


def _secrets_in(living: list[Process], names: list[str]) -> list[str]:
    wanted = tuple(os.fsencode(name) + b"=" for name in names)
    values = set()
    for process in living:
        for variable in processes.environment(process.pid):
            if wanted and variable.startswith(wanted):
                values.add(os.fsdecode(variable.partition(b"=")[2]))
    return sorted(values)


def _abort(attempt: Supervision, error: Exception, reply: Reply) -> None:
    documents.complain(attempt.dir)
    message = "The supervisor failed: %r. See supervisor.log beside the logs." % error
    cause = {"where": "supervisor", "message": message}
    attempt.abort(cause)
    if not reply.sent:
        reply.refuse("aborted", cause)
