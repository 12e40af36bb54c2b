"""Running a plan without a supervisor: the agent is a child of the process that asks.

Limits and reaping are those of `run_child_process`; for plugins' tests and adapter hosts.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from binderclip.contract.entry import Stream
from binderclip.contract.run import ExecutionRequest, ExecutionResult
from binderclip.contract.wire import iso_time
from binderclip.sdk.child import ChildOptions, ChildResult, run_child_process
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.outcome import Outcome, ProcessEnd
from binderclip.sdk.transcript import TranscriptBuilder

if TYPE_CHECKING:
    from binderclip.sdk.adapter import CliAdapter, ExecutionContext, Plan

RUNTIME_SKILLS = "paperclipRuntimeSkills"
"""Where a run's context lists the skills that its agent is lent, each with its folder."""
FRESH_RETRY = "[binderclip] The runtime does not know this session; trying once with a fresh one.\n"


async def execute_directly(adapter: CliAdapter, ctx: ExecutionContext) -> ExecutionResult:
    """One attempt, and a second, fresh one if the runtime did not know the session (S4)."""
    first = await _attempt(adapter, ctx, ctx.request)
    if not first.clear_session or first.timed_out or not ctx.request.runtime.session_params:
        return first
    await ctx.on_log("stdout", FRESH_RETRY)
    fresh = msgspec.structs.replace(
        ctx.request.runtime, session_id=None, session_params=None, session_display_id=None
    )
    second = await _attempt(adapter, ctx, msgspec.structs.replace(ctx.request, runtime=fresh))
    return msgspec.structs.replace(second, clear_session=True)


async def _attempt(
    adapter: CliAdapter, ctx: ExecutionContext, request: ExecutionRequest
) -> ExecutionResult:
    from binderclip.sdk.adapter import Host

    api_url = ctx.env.get("PAPERCLIP_API_URL")
    with TemporaryDirectory(prefix="binderclip-") as scratch:
        host = Host(ctx.env, Path(scratch), api_url=api_url, skills=_skills(request))
        plan = adapter.plan(request, host)
        await ctx.on_meta(plan.meta)
        reader = _Reader(ctx, TranscriptBuilder(adapter.create_parser()))
        done = await _run(request.run_id, plan, reader)
        reader.finish()
        outcome = Outcome(
            request=request,
            end=ProcessEnd(done.exit_code, done.signal, done.reason),
            parser=reader.transcript.parser,
            stdout_tail=done.stdout_tail.decode("utf-8", "replace"),
            stderr_tail=done.stderr_tail.decode("utf-8", "replace"),
            cwd=plan.cwd,
            scratch=Path(scratch),
            limits=plan.limits,
        )
        return adapter.conclude(outcome)


def _skills(request: ExecutionRequest) -> tuple[Path, ...]:
    listed = request.context.get(RUNTIME_SKILLS)
    found = [each.get("source") for each in listed or () if isinstance(each, dict)]
    return tuple(Path(source) for source in found if isinstance(source, str))


async def _run(run_id: str, plan: Plan, reader: _Reader) -> ChildResult:
    options = ChildOptions(
        cwd=plan.cwd,
        env=plan.env,
        stdin=plan.stdin,
        timeout_sec=plan.limits["timeoutSec"],
        idle_timeout_sec=plan.limits["idleTimeoutSec"],
        grace_sec=plan.limits["graceSec"],
        on_stdout=reader.on_stdout,
        on_stderr=reader.on_stderr,
        on_spawn=reader.ctx.on_spawn,
    )
    return await run_child_process(run_id, plan.argv[0], plan.argv[1:], options)


class _Reader:
    """Hands the bytes to the host's log and their lines to the parser."""

    def __init__(self, ctx: ExecutionContext, transcript: TranscriptBuilder) -> None:
        self.ctx = ctx
        self.transcript = transcript
        self._splitters: dict[Stream, LineSplitter] = {
            "stdout": LineSplitter(),
            "stderr": LineSplitter(),
        }
        self._read = 0

    async def on_stdout(self, chunk: bytes) -> None:
        self._read += len(chunk)
        await self._take("stdout", chunk)

    async def on_stderr(self, chunk: bytes) -> None:
        await self._take("stderr", chunk)

    def finish(self) -> None:
        """Parse last lines without a newline, then what the parser still holds."""
        for stream, splitter in self._splitters.items():
            for line in splitter.finish():
                self.transcript.feed(stream, line, iso_time(time.time()))
        self.transcript.finish(self._read)

    async def _take(self, stream: Stream, chunk: bytes) -> None:
        # The log first: a parser that hangs must not keep the bytes from it.
        await self.ctx.on_log(stream, chunk)
        for line in self._splitters[stream].push(chunk):
            self.transcript.feed(stream, line, iso_time(time.time()))
