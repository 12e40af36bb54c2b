"""An installed plugin as every other adapter: its facts from disk, its code in other processes."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.check import Check, CheckRequest
from binderclip.contract.config import ConfigSchema
from binderclip.contract.errors import BinderclipError
from binderclip.contract.manifest import Capabilities, Manifest, Model
from binderclip.contract.run import ExecutionRequest, ExecutionResult
from binderclip.contract.wire import to_plain
from binderclip.plugins.described import PLUGIN_FILE, Description, read_description
from binderclip.plugins.foreign import foreign_result
from binderclip.plugins.form import config_class, nested, shown_schema
from binderclip.plugins.node import find_node
from binderclip.plugins.parsing import JsParser, PythonParser
from binderclip.plugins.rpc import PluginProcess
from binderclip.plugins.skills import (
    lent,
    names_of,
    npm_wish,
    python_wish,
    skill_entries,
    warnings_of,
)
from binderclip.plugins.uiparser import is_deterministic, read_source
from binderclip.sdk.adapter import Adapter, Call, Host, Plan
from binderclip.sdk.checks import CheckCall
from binderclip.sdk.config import read_config
from binderclip.sdk.direct import RUNTIME_SKILLS
from binderclip.sdk.env import clean_env
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.outcome import Outcome
from binderclip.sdk.parser import GenericParser, Parser
from binderclip.sdk.prompt import render_prompt

HERE = Path(__file__).resolve().parent
BUILT_IN = HERE.parent / "adapters"
RUNS = "runs"
"""In a version's directory: one file for each run that uses it, so that it is not removed."""
LIVE_SECONDS = 60
CALL_SECONDS = 20
_MARKS = {"info": "info", "warn": "warn", "warning": "warn", "error": "error"}


_processes: dict[str, tuple[int, PluginProcess]] = {}
"""For each version that was asked something: when it was described, and its process."""
_looking = threading.Lock()


class OpaqueSession:
    """Session parameters as the plugin wrote them; its host reads them by its own codec (S2)."""

    def deserialize(self, raw: object) -> dict[str, Any] | None:
        return dict(raw) if isinstance(raw, Mapping) and raw else None

    def serialize(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        return params or None

    def get_display_id(self, params: dict[str, Any] | None) -> str | None:
        shown = (params or {}).get("sessionId")
        return shown if isinstance(shown, str) and shown else None


class PluginAdapter(Adapter):
    """One version of a plugin; a run keeps the version that it was started with."""

    session_codec = OpaqueSession()

    def __init__(self, directory: Path) -> None:
        told = read_description(directory)
        self.directory = directory
        self.description = told
        self.Config = config_class(told.type, told.config, foreign=self.is_npm)  # type: ignore[misc]
        self.manifest = _manifest(told)
        self.folder = Path(told.parser_folder) if told.parser_folder else directory
        self.origin = str(directory)
        self.session_management = told.session_management  # type: ignore[misc]

    @property
    def is_npm(self) -> bool:
        return self.description.language == "npm"

    @property
    def capabilities(self) -> Capabilities:
        return self.description.capabilities

    @property
    def parser_version(self) -> str:
        told = self.description
        return f"{told.version}+{told.parser.sha256[:8]}" if told.parser.sha256 else told.version

    def agent_configuration_doc(self) -> str:
        from binderclip.sdk.adapter import _field_list

        intro = self.description.doc.strip() or self.description.label
        return f"{intro}\n\n## Configuration\n\n{_field_list(self.config_schema())}\n"

    def config_schema(self) -> ConfigSchema:
        return shown_schema(self.Config, self.description.config)

    def create_parser(self) -> Parser:
        told = self.description
        if told.own_parser:
            return PythonParser(self.new_process(), structured=told.structured)
        source = read_source(self.folder, told.parser)
        if source is not None:
            return JsParser(source, renumber=not is_deterministic(told.parser))
        if told.builtin_parser and (BUILT_IN / told.type).is_dir():
            return load_adapter_from(f"binderclip.adapters.{told.type}").create_parser()
        return GenericParser()

    def host_command(self) -> tuple[str, ...]:
        told = self.description
        if self.is_npm:
            hook, host = HERE / "node_hook.mjs", HERE / "node_host.mjs"
            return (find_node().path, "--import", str(hook), str(host), "execute", told.source)
        return (told.interpreter or sys.executable, "-P", "-m", "binderclip.sdk.host", told.source)

    def plan(self, request: ExecutionRequest, host: Host) -> Plan:
        if host.skills:
            context = {**request.context, RUNTIME_SKILLS: skill_entries(host.skills)}
            request = msgspec.structs.replace(request, context=context)
        plan = super().plan(request, host)
        if host.skills and self._is_asked_to_place_skills(request):
            plan = self._with_skills(plan, request, host)
        self._hold(request.run_id)
        if not self.is_npm:
            return plan
        return msgspec.structs.replace(
            plan, stdin=msgspec.json.encode(self._foreign_request(request, plan))
        )

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        result = self._concluded(outcome)
        with contextlib.suppress(OSError):
            (self.directory / RUNS / outcome.request.run_id).unlink()
        return result

    def checks(self, call: CheckCall) -> Iterable[Check]:
        if self.is_npm:
            yield from self._node_checks(call)
        elif call.depth != "preflight":
            given = {"request": to_plain(call.request), "env": call.env}
            given["program"] = str(call.program) if call.program else None
            yield from self._found(lambda: self._call("checks", given, LIVE_SECONDS))

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        if "listModels" not in self.description.methods:
            return self.description.models
        return _models(self._ask("listModels", call)) or self.description.models

    def refresh_models(self, call: CheckCall) -> Sequence[Model]:
        """As `list_models`, past what an npm adapter keeps in memory."""
        if "refreshModels" not in self.description.methods:
            return self.list_models(call)
        return _models(self._ask("refreshModels", call)) or self.description.models

    def detect_model(self, call: CheckCall) -> str | None:
        if "detectModel" not in self.description.methods:
            return None
        found = self._ask("detectModel", call)
        if isinstance(found, Mapping):
            found = found.get("model")
        return found if isinstance(found, str) and found else None

    def sync_skills(self, call: Call) -> None:
        self._synced(call)

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        if "listSkills" not in self.description.methods:
            return ()
        return names_of(self._ask("listSkills", call))

    def new_process(self) -> PluginProcess:
        """A process of the plugin that answers calls."""
        return host_process(self.description, self.directory)

    def _is_asked_to_place_skills(self, request: ExecutionRequest) -> bool:
        """A command line of its own places them itself, in the host that runs it."""
        told = self.description
        is_local = request.execution_target.kind == "local"
        return is_local and "syncSkills" in told.methods and not told.own_command

    def _with_skills(self, plan: Plan, request: ExecutionRequest, host: Host) -> Plan:
        """Let the plugin place the skills before its run; a failure is told, the run goes on."""
        config = read_config(self.Config, request.config)
        cwd, prompt = Path(plan.cwd), plan.meta.prompt or ""
        call = Call(request, config, cwd, plan.env, prompt, None, host.scratch, host.skills)
        try:
            notes = self._synced(call)
        except BinderclipError as problem:
            notes = [f"The skills were not placed: {problem.message}"]
        told = (*plan.meta.notes, *notes)
        return msgspec.structs.replace(plan, meta=msgspec.structs.replace(plan.meta, notes=told))

    def _synced(self, call: Call) -> list[str]:
        if "syncSkills" not in self.description.methods:
            return []
        if self.is_npm:
            return warnings_of(self._call("call", npm_wish(call, self.type)))
        self._call("syncSkills", python_wish(call))
        return []

    def _call(self, method: str, params: Any, seconds: float | None = None) -> Any:
        process = self._process()
        return process.call(method, params, seconds=seconds or CALL_SECONDS)

    def _process(self) -> PluginProcess:
        """One process for all who ask; another once somebody, perhaps elsewhere, loaded it anew."""
        with _looking:
            described = (self.directory / PLUGIN_FILE).stat().st_mtime_ns
            known = _processes.get(self.origin)
            if known is None or known[0] != described:
                # The one before ends by itself when nobody asks it any more.
                known = _processes[self.origin] = (described, self.new_process())
            return known[1]

    def _ask(self, method: str, call: CheckCall) -> Any:
        if not self.is_npm:
            return self._call(method, {"request": to_plain(call.request), "env": call.env})
        return self._call("call", {"name": method, "args": [_ask_args(call)], "env": call.env})

    def _found(self, ask: Callable[[], Any]) -> Iterable[Check]:
        """A plugin's own findings; one that fails to answer is a finding as well."""
        try:
            listed = ask()
        except BinderclipError as problem:
            yield Check(
                code="plugin_failed", level="error", message=problem.message, hint=problem.hint
            )
            return
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, Mapping) and isinstance(each.get("message"), str):
                yield _check(each)

    def _node_checks(self, call: CheckCall) -> Iterable[Check]:
        if not Path(self.description.source, "package.json").is_file():
            yield Check(
                code="plugin_missing",
                level="error",
                message=f"The package {self.description.package_name} is no longer on disk.",
                hint=f"binderclip adapters reinstall {self.type}",
            )
            return
        try:
            node = find_node()
        except BinderclipError as problem:
            yield Check(
                code="node_missing", level="error", message=problem.message, hint=problem.hint
            )
            return
        yield Check(code="node_ok", level="info", message=f"Runs in Node {node.version}.")
        # Half of the adapters call the model in their own test, so it is asked for by `live`.
        if call.depth == "live" and "testEnvironment" in self.description.methods:
            yield from self._found(lambda: self._test_environment(call))

    def _test_environment(self, call: CheckCall) -> Any:
        wish = {"name": "testEnvironment", "args": [_ask_args(call)], "env": call.env}
        told = self._call("call", wish, LIVE_SECONDS)
        return told.get("checks") if isinstance(told, Mapping) else None

    def _foreign_request(self, request: ExecutionRequest, plan: Plan) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(request)
        config = nested(plain["config"])
        config["cwd"] = plan.cwd
        config["env"] = dict(read_config(self.Config, request.config).env)
        context = plain.setdefault("context", {})
        if context.get("promptText"):
            config["promptTemplate"] = render_prompt(request, config.get("promptTemplate"))
        for name in ("taskId", "taskTitle", "taskBody", "commentId", "wakeReason"):
            if isinstance(context.get(name), str):
                config.setdefault(name, context[name])
        skills = context.get(RUNTIME_SKILLS)
        if skills:
            config |= lent(skills)
        runtime = {"sessionId": None, "sessionParams": None, "sessionDisplayId": None}
        runtime |= {"taskKey": None, **plain.get("runtime", {})}
        return {**plain, "config": config, "runtime": runtime, "secrets": list(plan.secrets)}

    def _concluded(self, outcome: Outcome) -> ExecutionResult:
        if not self.is_npm or outcome.attempt_dir is None:
            return super().conclude(outcome)
        try:
            answer = msgspec.json.decode((outcome.attempt_dir / "answer.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return super().conclude(outcome)
        result = foreign_result(answer if isinstance(answer, dict) else {})
        with contextlib.suppress(OSError):
            data = msgspec.json.encode(result)
            (outcome.attempt_dir / "result.json").write_bytes(data)
        return super().conclude(outcome)

    def _hold(self, run_id: str) -> None:
        held = self.directory / RUNS
        with contextlib.suppress(OSError):
            held.mkdir(mode=0o700, exist_ok=True)
            (held / run_id).touch()


def end_process(directory: Path) -> None:
    """End the process that answers for a version, if it runs; the next call starts another."""
    with _looking:
        known = _processes.pop(str(directory), None)
    if known is not None:
        known[1].close()


def host_process(told: Description, directory: Path) -> PluginProcess:
    """The process that answers calls for a plugin, not yet started."""
    env = {**clean_env(os.environ, told.pass_env), "BINDERCLIP_PLUGIN": str(directory)}
    if told.language == "npm":
        hook, host = HERE / "node_hook.mjs", HERE / "node_host.mjs"
        argv = [find_node().path, "--import", str(hook), str(host), "serve", told.source]
    else:
        python = told.interpreter or sys.executable
        # No bytecode is written: a file that is saved twice within a second would stay as it was.
        argv = [python, "-P", "-B", "-m", "binderclip.plugins.python_host", told.source]
    return PluginProcess(told.type or told.package_name, argv, env)


def _manifest(told: Description) -> Manifest:
    return Manifest(
        id=told.type,
        label=told.label,
        version=told.version,
        runtime=told.runtime or told.type,
        command=told.command,
        pass_env=told.pass_env,
        secret_env=told.secret_env,
        capture=told.capture,
        capabilities=told.capabilities,
        usage_told=told.usage_told,
        structured=told.structured,
        models=told.models,
        ui_parser=told.parser.path,
        ui_parser_version=told.parser.version,
    )


def _ask_args(call: CheckCall) -> dict[str, Any]:
    request: CheckRequest = call.request
    config = {**nested(to_plain(request.config)), "cwd": str(call.cwd)}
    asked = {"agentId": "", "companyId": request.company_id, "adapterType": request.adapter_type}
    return {**asked, "config": config, "adapterConfig": config}


def _models(found: Any) -> tuple[Model, ...]:
    listed = found.get("models") if isinstance(found, Mapping) else found
    return tuple(
        Model(id=each["id"], label=str(each.get("label") or each["id"]))
        for each in (listed if isinstance(listed, list) else [])
        if isinstance(each, Mapping) and isinstance(each.get("id"), str)
    )


def _check(each: Mapping[str, Any]) -> Check:
    level = _MARKS.get(str(each.get("level")), "info")
    return Check(
        code=str(each.get("code") or "plugin_check")[:100],
        level=level,  # type: ignore[arg-type]
        message=str(each["message"])[:2000],
        detail=str(each["detail"])[:4000] if each.get("detail") else None,
        hint=str(each["hint"])[:2000] if each.get("hint") else None,
    )
