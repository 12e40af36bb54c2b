"""The adapter; what needs the HTTP client is imported only where a call is made."""

from __future__ import annotations

from collections.abc import Iterable

from binderclip.adapters.http.checks import http_checks
from binderclip.adapters.http.config import HttpConfig
from binderclip.adapters.http.parser import HttpParser
from binderclip.sdk import Adapter, Check, CheckCall, ExecutionContext, ExecutionResult


class HttpAdapter(Adapter):
    """An agent that is reached by HTTP."""

    Config = HttpConfig

    def create_parser(self) -> HttpParser:
        return HttpParser()

    def checks(self, call: CheckCall) -> Iterable[Check]:
        return http_checks(call)

    async def execute(self, ctx: ExecutionContext) -> ExecutionResult:
        from binderclip.adapters.http.execute import Conversation

        return await Conversation(ctx).run()
