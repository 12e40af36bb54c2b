"""The adapter host: one process that runs one `execute`, owned by a supervisor like any agent CLI.

Only `on_log` reaches the host's stdout; the result stands in `result.json` before the host ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import msgspec

from binderclip.contract.entry import Stream
from binderclip.contract.errors import BinderclipError, ContractError
from binderclip.contract.run import (
    ErrorCode,
    ExecutionRequest,
    ExecutionResult,
    InvocationMeta,
    SpawnInfo,
)
from binderclip.sdk.adapter import ATTEMPT_DIR, SHORTEST_SECRET, Adapter, ExecutionContext
from binderclip.sdk.config import read_config, secret_values
from binderclip.sdk.env import is_secret_name, redact_env_for_logs
from binderclip.sdk.loading import load_adapter_from

LINGER_SECONDS = 5
"""How long tasks and threads that `execute` left behind may keep the host alive."""


@dataclass(slots=True)
class Desk:
    """The host's side of an attempt: the two streams and the documents beside the logs."""

    attempt_dir: Path
    stdout: int
    stderr: int
    secret_env: Sequence[str] = ()
    secrets: list[str] = field(default_factory=list)

    async def on_log(self, stream: Stream, chunk: str | bytes) -> None:
        data = chunk.encode("utf-8", "surrogateescape") if isinstance(chunk, str) else chunk
        left = memoryview(data)
        while left:
            left = left[os.write(self.stdout if stream == "stdout" else self.stderr, left) :]

    async def on_meta(self, meta: InvocationMeta) -> None:
        shown = redact_env_for_logs(meta.env, self.secret_env)
        self.keep("invocation.json", msgspec.structs.replace(meta, env=shown))

    async def on_spawn(self, info: SpawnInfo) -> None:
        self.keep("spawn.json", info)

    def keep(self, name: str, value: Any) -> None:
        """Put a document into the attempt's directory, whole or not at all, without secrets."""
        data = msgspec.json.encode(_masked(msgspec.to_builtins(value), self.secrets))
        part = self.attempt_dir / f"{name}.part"
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.attempt_dir / name)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m binderclip.sdk.host MODULE_OR_PATH`, the request as JSON on stdin."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    directory = os.environ.pop(ATTEMPT_DIR, None)
    if len(words) != 1 or not directory:
        sys.stderr.write(f"Needs one module or path, the request on stdin, {ATTEMPT_DIR} set.\n")
        return 2
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ExecutionRequest)
    desk = Desk(Path(directory), _own_stdout(), 2)
    try:
        asyncio.run(_attend(words[0], request, desk))
    finally:
        sys.stdout.flush()
    return 0


async def _attend(source: str, request: ExecutionRequest, desk: Desk) -> None:
    result = await _execute(source, request, desk)
    try:
        desk.keep("result.json", _sound(result))
    except (TypeError, ValueError, msgspec.MsgspecError) as problem:
        desk.keep("result.json", _failed(problem))
    _leave_soon()


async def _execute(source: str, request: ExecutionRequest, desk: Desk) -> ExecutionResult:
    task = asyncio.create_task(_run(source, request, desk))
    stopped = asyncio.Event()

    def stop() -> None:
        # A second signal must not cut short what the first one's cleanup still does.
        if not stopped.is_set():
            stopped.set()
            task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        result = await task
    except asyncio.CancelledError as problem:
        return _cancelled() if stopped.is_set() else _failed(problem)
    except (Exception, SystemExit) as problem:
        return _failed(problem)
    if stopped.is_set() and result.error_code is None:
        return _cancelled(result)
    return result


async def _run(source: str, request: ExecutionRequest, desk: Desk) -> ExecutionResult:
    adapter = load_adapter_from(source)
    config = read_config(adapter.Config, request.config)
    env = dict(os.environ)
    desk.secret_env = adapter.manifest.secret_env
    desk.secrets = _secrets(adapter, secret_values(config), request, env)
    context = ExecutionContext(
        request=request,
        config=config,
        on_log=desk.on_log,
        on_meta=desk.on_meta,
        on_spawn=desk.on_spawn,
        env=env,
    )
    try:
        result = await adapter.execute(context)
    except SystemExit as problem:
        # asyncio would let it end the process before there is a result.
        raise ContractError(f"execute called sys.exit({problem.code!r})") from problem
    if not isinstance(result, ExecutionResult):
        raise ContractError(f"execute gave {type(result).__name__}, not an ExecutionResult")
    return result


def _own_stdout() -> int:
    """Keep the log's descriptor for `on_log`; everything else that prints, prints to stderr."""
    kept = os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return kept


def _leave_soon() -> None:
    leave = threading.Timer(LINGER_SECONDS, os._exit, (0,))
    leave.daemon = True
    leave.start()


def _secrets(
    adapter: Adapter, own: Sequence[str], request: ExecutionRequest, env: Mapping[str, str]
) -> list[str]:
    named = adapter.manifest.secret_env
    values = [value for name, value in env.items() if name in named or is_secret_name(name)]
    values += [*own, request.auth_token or ""]
    long = {value for value in values if len(value.encode("utf-8", "replace")) >= SHORTEST_SECRET}
    return sorted(long, key=len, reverse=True)


def _masked(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "*" * len(secret))
        return value
    if isinstance(value, dict):
        return {_masked(key, secrets): _masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item, secrets) for item in value]
    return value


def _sound(result: ExecutionResult) -> ExecutionResult:
    """The result in the contract's words; an adapter's own error code is kept beside them."""
    code = result.error_code
    if code is not None and code not in get_args(ErrorCode):
        told = {**(result.result_json or {}), "adapterErrorCode": code}
        result = msgspec.structs.replace(result, error_code="process_failed", result_json=told)
    if result.error_code and not result.error_message:
        text = f"The adapter reported {code} without a message."
        result = msgspec.structs.replace(result, error_message=text)
    return msgspec.convert(msgspec.to_builtins(result), ExecutionResult)


def _failed(problem: BaseException) -> ExecutionResult:
    traceback.print_exception(problem, file=sys.stderr)
    code: ErrorCode = "plugin_failed"
    message = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, BinderclipError):
        code = problem.code if problem.code in get_args(ErrorCode) else code  # type: ignore[assignment]
        message = " ".join(filter(None, (problem.message, problem.hint)))
    return ExecutionResult(
        exit_code=1, signal=None, timed_out=False, error_code=code, error_message=message
    )


def _cancelled(partial: ExecutionResult | None = None) -> ExecutionResult:
    result = partial or ExecutionResult(exit_code=None, signal="SIGTERM", timed_out=False)
    return msgspec.structs.replace(
        result, error_code="cancelled", error_message="Stopped by a signal before its end."
    )


if __name__ == "__main__":
    sys.exit(main())
