"""The live part of an environment test: one tiny real call by the way every run goes (E2)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from binderclip.contract.check import Check
from binderclip.contract.entry import Stream
from binderclip.contract.errors import BinderclipError
from binderclip.contract.run import AgentRef, ExecutionRequest, ExecutionResult, RuntimeSession
from binderclip.sdk.adapter import CliAdapter, Host, Plan
from binderclip.sdk.checks import CheckCall
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.outcome import EndReason, Outcome, ProcessEnd
from binderclip.sdk.transcript import TranscriptBuilder

LIVE_SECONDS = 90
LIVE_PROMPT = "This is a connection test. Answer with the single word: ok"
_TAIL = 8 * 1024


def live_check(adapter: CliAdapter, call: CheckCall, seconds: float = LIVE_SECONDS) -> Check:
    """Ask the runtime for one word in an empty directory, and say what came back."""
    with tempfile.TemporaryDirectory(prefix="binderclip-live-") as folder:
        root = Path(folder)
        for name in ("cwd", "scratch"):
            (root / name).mkdir()
        try:
            result = _ask(adapter, call, root, seconds)
        except BinderclipError as problem:
            return Check(
                code="live_failed", level="error", message=problem.message, hint=problem.hint
            )
    if result.error_code is None:
        said = (result.summary or "").strip()[:200]
        return Check(
            code="live_ok", level="info", message="A real call succeeded.", detail=said or None
        )
    return Check(
        code=f"live_{result.error_code}",
        level="error",
        message=f"A real call failed: {result.error_message}",
    )


def _ask(adapter: CliAdapter, call: CheckCall, root: Path, seconds: float) -> ExecutionResult:
    request = _request(adapter, call, root / "cwd")
    plan = adapter.plan(request, Host(env=call.env, scratch=root / "scratch"))
    end = _run(plan, root, seconds)
    builder = TranscriptBuilder(adapter.create_parser())
    stdout, stderr = (root / "stdout").read_bytes(), (root / "stderr").read_bytes()
    streams: tuple[tuple[Stream, bytes], ...] = (("stdout", stdout), ("stderr", stderr))
    for stream, data in streams:
        splitter = LineSplitter()
        for line in (*splitter.push(data), *splitter.finish()):
            builder.feed(stream, line, "")
    builder.finish(len(stdout))
    return adapter.conclude(
        Outcome(
            request=request,
            end=end,
            parser=builder.parser,
            stdout_tail=stdout[-_TAIL:].decode("utf-8", "replace"),
            stderr_tail=stderr[-_TAIL:].decode("utf-8", "replace"),
            cwd=plan.cwd,
            scratch=root / "scratch",
            limits={"timeoutSec": seconds},
        )
    )


def _request(adapter: CliAdapter, call: CheckCall, cwd: Path) -> ExecutionRequest:
    agent = AgentRef(
        id="live", company_id=call.request.company_id, name="live", adapter_type=adapter.type
    )
    return ExecutionRequest(
        run_id="live",
        agent=agent,
        runtime=RuntimeSession(),
        config={**call.request.config, "cwd": str(cwd)},
        context={"promptText": LIVE_PROMPT},
    )


def _run(plan: Plan, root: Path, seconds: float) -> ProcessEnd:
    given = root / "stdin"
    given.write_bytes(plan.stdin or b"")
    with (
        given.open("rb") as stdin,
        (root / "stdout").open("wb") as stdout,
        (root / "stderr").open("wb") as stderr,
        subprocess.Popen(
            plan.argv,
            cwd=plan.cwd,
            env=plan.env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        ) as child,
    ):
        return _waited(child, seconds)


def _waited(child: subprocess.Popen[bytes], seconds: float) -> ProcessEnd:
    reason: EndReason = "exited"
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        reason = "timeout"
        code = None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    if code is None:
        code = child.wait()
    if code < 0:
        return ProcessEnd(None, signal.Signals(-code).name, reason)
    return ProcessEnd(code, None, reason)
