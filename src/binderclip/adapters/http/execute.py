"""A run's conversation with an endpoint: the request, the answer, the polls, the cancel."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx
import msgspec

from binderclip.adapters.http.config import HttpConfig
from binderclip.adapters.http.exchange import Reply, auth_headers, exchange, open_client
from binderclip.adapters.http.failure import Broken
from binderclip.adapters.http.parser import HttpParser, error_text
from binderclip.adapters.http.template import UnfilledUrl, fill, fill_url, shown_url, value_at
from binderclip.sdk import (
    ErrorCode,
    ExecutionContext,
    ExecutionResult,
    Failure,
    InvocationMeta,
    Outcome,
    ProcessEnd,
    redact_env_for_logs,
    render_prompt,
    render_template,
    safe_session_id,
)
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.outcome import conclude
from binderclip.sdk.prompt import prompt_data
from binderclip.sdk.transcript import TranscriptBuilder

POLL_MISSES = 5
"""How many looks in a row may fail in passing before a long task is given up."""
CANCEL_SECONDS = 5
TAIL_BYTES = 8 * 1024
SUMMARY_CHARACTERS = 64 * 1024


class Conversation:
    """One run: everything that came is logged as it came, and read as the transcript reads it."""

    def __init__(self, ctx: ExecutionContext) -> None:
        self.ctx = ctx
        self.config: HttpConfig = ctx.config
        self.parser = HttpParser()
        self.prompt = render_prompt(ctx.request, self.config.prompt_template)
        self.data: dict[str, Any] = {
            **prompt_data(ctx.request),
            "prompt": self.prompt,
            "sessionId": safe_session_id(ctx.request.runtime.session_id) or "",
        }
        self._builder = TranscriptBuilder(self.parser)
        self._splitter = LineSplitter()
        self._logged = 0
        self._tail = b""

    async def run(self) -> ExecutionResult:
        async with AsyncExitStack() as stack:
            try:
                url = fill_url(self.config.url, self.data)
                await self._tell(url)
                client = await stack.enter_async_context(open_client(self.config))
                reply = await self._ask(client, url)
                return self._result(reply, None)
            except UnfilledUrl as problem:
                code: ErrorCode = "parse_failed" if "response" in self.data else "bad_config"
                failure = Failure(code, f"A URL cannot be filled: {problem}.")
                return self._result(None, Broken("url", failure))
            except Broken as broken:
                await self._notice(str(broken))
                return self._result(None, broken)
            except asyncio.CancelledError:
                await self._cancel()
                raise

    async def _ask(self, client: httpx.AsyncClient, url: str) -> Reply:
        config = self.config
        payload = None if config.method == "GET" else fill(config.payload_template, self.data)
        headers = self._headers()
        reply = await exchange(client, config.method, url, headers, payload, self._log)
        if config.poll_url is None:
            return reply
        await self._end_line()
        self.data["response"] = reply.document()
        return await self._poll(client, fill_url(config.poll_url, self.data))

    async def _poll(self, client: httpx.AsyncClient, url: str) -> Reply:
        """Look until the task has ended; only a changed status is logged."""
        seen, misses = b"", 0
        while True:
            await asyncio.sleep(self.config.poll_interval_sec)
            try:
                reply = await exchange(client, "GET", url, self._headers(), None, _unheard)
            except Broken as broken:
                misses += 1
                if misses >= POLL_MISSES or not broken.passing:
                    raise
                await self._notice(f"{broken} Looking again.")
                continue
            misses = 0
            if bytes(reply.body) != seen:
                seen = bytes(reply.body)
                await self._log(seen)
                await self._end_line()
            if self._ended(reply.document()):
                return reply

    def _ended(self, document: Any) -> bool:
        status = value_at(document, self.config.poll_status_path)
        if status is None:
            path = self.config.poll_status_path
            failure = Failure("parse_failed", f"The status has nothing at {path} (pollStatusPath).")
            raise Broken("status_path", failure)
        if str(status) in self.config.poll_failed_values:
            told = value_at(document, "error") or value_at(document, "message")
            words = f": {error_text(told)[:500]}" if told else ""
            failure = Failure("process_failed", f"The task ended as {status}{words}.")
            raise Broken("task_failed", failure)
        return str(status) in self.config.poll_done_values

    async def _cancel(self) -> None:
        """Ask the endpoint to stop its work, within a short time; the run ends either way."""
        template = self.config.cancel_url
        if template is None:
            return
        try:
            url = fill_url(template, self.data)
            async with asyncio.timeout(CANCEL_SECONDS), open_client(self.config) as client:
                method = self.config.cancel_method
                await exchange(client, method, url, self._headers(), None, _unheard)
            await self._notice(f"Told {shown_url(url)} to cancel.")
        except (UnfilledUrl, Broken, TimeoutError) as problem:
            await self._notice(f"The endpoint was not told to cancel: {problem}")

    def _headers(self) -> dict[str, str]:
        own = {
            name: " ".join(render_template(value, self.data).split())
            for name, value in self.config.headers.items()
        }
        return {**own, **auth_headers(self.config)}

    async def _tell(self, url: str) -> None:
        meta = InvocationMeta(
            adapter_type=self.ctx.request.agent.adapter_type,
            command=self.config.method,
            command_args=(shown_url(url),),
            prompt=self.prompt,
            context={"headers": redact_env_for_logs(self._headers(), (self.config.auth_header,))},
        )
        await self.ctx.on_meta(meta)

    async def _log(self, chunk: bytes) -> None:
        await self.ctx.on_log("stdout", chunk)
        self._logged += len(chunk)
        self._tail = (self._tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
        for line in self._splitter.push(chunk):
            self._builder.feed("stdout", line, "")

    async def _end_line(self) -> None:
        """End the line, so that a status is seen when it came and two bodies never share one."""
        if self._tail and not self._tail.endswith(b"\n"):
            await self._log(b"\n")

    async def _notice(self, text: str) -> None:
        await self.ctx.on_log("stderr", f"[binderclip] {text}\n")

    def _result(self, reply: Reply | None, broken: Broken | None) -> ExecutionResult:
        for line in self._splitter.finish():
            self._builder.feed("stdout", line, "")
        self._builder.finish(self._logged)
        if reply is not None:
            try:
                self.parser.facts.final_text = self._final_text(reply)
            except Broken as problem:
                broken = problem
        return self._concluded(reply, broken)

    def _final_text(self, reply: Reply) -> str | None:
        path, told = self.config.result_path, self.parser.facts.final_text
        promised = self.config.response_format == "json" or (
            self.config.response_format == "auto" and reply.says_json and reply.size > 0
        )
        document = reply.document() if promised else None
        if path is None:
            return told or reply.body.decode("utf-8", "replace").strip()[:SUMMARY_CHARACTERS]
        found = value_at(document if promised else self.parser.last_object, path)
        if found is None:
            text = f"The answer has nothing at {path} (resultPath)."
            raise Broken("result_path", Failure("parse_failed", text), reply.status)
        return found if isinstance(found, str) else msgspec.json.encode(found).decode()

    def _concluded(self, reply: Reply | None, broken: Broken | None) -> ExecutionResult:
        outcome = Outcome(
            request=self.ctx.request,
            end=ProcessEnd(exit_code=0),
            parser=self.parser,
            stdout_tail=self._tail.decode("utf-8", "replace"),
            cwd=self.config.cwd,
        )
        if broken is not None:
            self.parser.facts.ended = "failure"
            self.parser.facts.failure = broken.failure
        result = conclude(outcome)
        status = broken.status if broken else reply.status if reply else None
        told: dict[str, Any] = {**(result.result_json or {}), "httpStatus": status}
        if broken is not None:
            told |= {"cause": broken.cause, "stdoutTail": outcome.stdout_tail}
        code = 1 if result.error_code else 0
        timed_out = result.error_code == "timeout"
        return msgspec.structs.replace(
            result, exit_code=code, result_json=told, timed_out=timed_out
        )


async def _unheard(_: bytes) -> None:
    return None
