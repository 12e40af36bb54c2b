"""The process of a Python plugin: answers calls on descriptor 3, or parses the lines of one run.

`python -P -m binderclip.plugins.python_host SOURCE`; its `execute` runs in `binderclip.sdk.host`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.check import CheckRequest
from binderclip.contract.errors import BinderclipError
from binderclip.contract.run import ExecutionRequest
from binderclip.contract.wire import to_plain
from binderclip.plugins.host_loop import serve
from binderclip.sdk.adapter import Adapter, Call, CliAdapter
from binderclip.sdk.checks import CheckCall
from binderclip.sdk.config import read_config
from binderclip.sdk.env import clean_env, ensure_path_in_env
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.parser import Parser


class Desk:
    """The adapter, loaded when it is first needed, and the parser of one run if asked for."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._adapter: Adapter | None = None
        self._parser: Parser | None = None

    @property
    def adapter(self) -> Adapter:
        if self._adapter is None:
            self._adapter = load_adapter_from(self._source)
        return self._adapter

    @property
    def methods(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        return {
            "describe": lambda _: describe(self.adapter),
            "checks": self.checks,
            "listModels": lambda given: to_plain(tuple(self.adapter.list_models(self.call(given)))),
            "detectModel": lambda given: self.adapter.detect_model(self.call(given)),
            "listSkills": lambda given: list(self.adapter.list_skills(self.call(given))),
            "syncSkills": self.sync_skills,
            "codec.deserialize": lambda given: self.codec.deserialize(given["value"]),
            "codec.serialize": lambda given: self.codec.serialize(given["value"]),
            "codec.displayId": lambda given: self.codec.get_display_id(given["value"]),
            "conform": self.conform,
            "parse": self.parse,
            "finish": self.finish,
        }

    @property
    def codec(self) -> Any:
        return self.adapter.session_codec

    def call(self, given: dict[str, Any]) -> CheckCall:
        request = msgspec.convert(given["request"], CheckRequest)
        config = read_config(self.adapter.Config, request.config)
        passed = clean_env(given.get("env") or {}, self.adapter.manifest.pass_env)
        env = ensure_path_in_env({**passed, **config.env})
        return CheckCall(request, config, Path(config.cwd or Path.cwd()), env, _path(given))

    def sync_skills(self, given: dict[str, Any]) -> None:
        request = msgspec.convert(given["request"], ExecutionRequest)
        self.adapter.sync_skills(
            Call(
                request=request,
                config=read_config(self.adapter.Config, request.config),
                cwd=Path(given["cwd"]),
                env=dict(given["env"]),
                prompt=given["prompt"],
                session=None,
                scratch=Path(given["scratch"]),
                skills=tuple(map(Path, given["skills"])),
            )
        )

    def checks(self, given: dict[str, Any]) -> Any:
        return to_plain(tuple(self.adapter.checks(self.call(given))))

    def conform(self, _: dict[str, Any]) -> Any:
        # Only an author's check pays for the tests.
        from binderclip.plugins.conform import conform

        return conform(self.adapter)

    def parse(self, given: dict[str, Any]) -> list[Any]:
        if self._parser is None or given.get("fresh"):
            self._parser = self.adapter.create_parser()
        return [_parsed(self._parser, stream, line, ts) for stream, line, ts in given["lines"]]

    def finish(self, given: dict[str, Any]) -> Any:
        parser = self._parser or self.adapter.create_parser()
        return {"entries": to_plain(list(parser.finish(given["ts"]))), "facts": _facts(parser)}


def describe(adapter: Adapter) -> dict[str, Any]:
    """What the registry keeps of an adapter, as JSON."""
    manifest = adapter.manifest
    own = type(adapter)
    return {
        "type": adapter.type,
        "label": manifest.label,
        "version": manifest.version,
        "doc": adapter.agent_configuration_doc().split("\n## Configuration\n")[0],
        "models": to_plain(manifest.models),
        "capabilities": to_plain(adapter.capabilities),
        "sessionManagement": to_plain(adapter.session_management),
        "config": to_plain(adapter.config_schema()),
        "command": manifest.command,
        "runtime": manifest.runtime,
        "passEnv": list(manifest.pass_env),
        "secretEnv": list(manifest.secret_env),
        "capture": to_plain(manifest.capture),
        "usageTold": manifest.usage_told,
        "structured": adapter.create_parser().structured,
        "methods": ["execute", "testEnvironment", *_overridden(own)],
        "ownCommand": isinstance(adapter, CliAdapter),
        "ownParser": own.create_parser not in (Adapter.create_parser, CliAdapter.create_parser),
        "parserFolder": str(adapter.folder),
        "uiParser": manifest.ui_parser,
        "uiParserVersion": manifest.ui_parser_version,
    }


def _overridden(own: type[Adapter]) -> list[str]:
    names = {
        "listModels": "list_models",
        "detectModel": "detect_model",
        "listSkills": "list_skills",
        "syncSkills": "sync_skills",
    }
    return [
        told for told, name in names.items() if getattr(own, name) is not getattr(Adapter, name)
    ]


def _parsed(parser: Parser, stream: str, line: str, ts: str) -> Any:
    try:
        read = parser.parse_line if stream == "stdout" else parser.parse_stderr
        entries = read(line, ts)
        return None if entries is None else to_plain(list(entries))
    except Exception as problem:
        return {"error": f"{type(problem).__name__}: {problem}"[:500]}


def _facts(parser: Parser) -> Any:
    return json.loads(msgspec.json.encode(parser.facts, enc_hook=repr))


def _path(given: dict[str, Any]) -> Path | None:
    program = given.get("program")
    return Path(program) if program else None


def main(words: list[str]) -> int:
    if len(words) != 1:
        sys.stderr.write("Needs one module or path, and JSON-RPC on descriptor 3.\n")
        return 2
    desk = Desk(words[0])

    def answer(method: str, params: dict[str, Any]) -> Any:
        known = desk.methods.get(method)
        if known is None:
            raise LookupError(f"there is no method {method}")
        try:
            return known(params)
        except BinderclipError as problem:
            raise RuntimeError(" ".join(filter(None, (problem.message, problem.hint)))) from problem
        except (Exception, SystemExit) as problem:
            traceback.print_exc()
            raise RuntimeError(f"{type(problem).__name__}: {problem}") from problem

    serve(answer)
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads that a plugin left running must not keep its process.
    os._exit(code)
