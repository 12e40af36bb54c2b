"""What an adapter does around a run: session codec, environment test, plan (S2, E1-E3, A10, D8)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from binderclip.contract.check import CheckRequest, Depth, EnvironmentReport, verdict
from binderclip.contract.run import AgentRef, ExecutionRequest, RuntimeSession
from binderclip.sdk.adapter import Host, Plan
from binderclip.sdk.config import read_config
from binderclip.sdk.env import DEFAULT_PATH, is_secret_name
from binderclip.sdk.testing.conformance.requirement import Subject, demand

CHECK_CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TESTED_AT = "2000-01-01T00:00:00.000Z"
PROMPT = "Say the word conformance-prompt-7f3a."
TOKEN = "conformance-run-token-19c4"
STRAY = "CONFORMANCE_STRAY"
UNSAFE_IDS: tuple[object, ...] = (
    *(None, 5, "", " ", [], {}, "--flag", "a b", "a\nb"),
    *("../../etc/passwd", "x" * 5000, "$(id)", "a;b", "é"),
)
GARBAGE: tuple[object, ...] = (
    *(None, 0, 7, True, "", "text", [], ["x"], {}, {"x": {}}, b"bytes"),
    *({"sessionId": unsafe} for unsafe in UNSAFE_IDS),
)


@contextmanager
def _places() -> Iterator[dict[str, Path]]:
    """Empty directories for one trial: home, cwd, scratch, and a bin on PATH."""
    with TemporaryDirectory(prefix="conformance-") as root:
        made = {name: Path(root) / name for name in ("home", "cwd", "scratch", "bin")}
        for path in made.values():
            path.mkdir()
        yield made


def codec_refuses_garbage(subject: Subject) -> None:
    codec = subject.adapter.session_codec
    for raw in GARBAGE:
        demand(codec.deserialize(raw) is None, f"deserialize({raw!r}) must give None (S2)")
    demand(codec.serialize(None) is None, "serialize(None) must give None")
    demand(codec.get_display_id(None) is None, "get_display_id(None) must give None")


def codec_round_trips(subject: Subject) -> None:
    codec = subject.adapter.session_codec
    told = [case.replayed(subject.adapter).result.session_params for case in subject.cases]
    simple = codec.deserialize({"sessionId": "abc-123", "cwd": "/srv/project"})
    for params in filter(None, [simple, *told]):
        stored = json.loads(msgspec.json.encode(codec.serialize(params)))
        back = codec.deserialize(stored)
        demand(back is not None, f"a session of the adapter itself is refused: {params}")
        demand(codec.serialize(back) == stored, f"the session changes when stored: {params}")
        demand(codec.get_display_id(back), f"the session has no display id: {params}")


def quick_test_leaves_no_trace(subject: Subject) -> None:
    with _places() as places:
        program = _stand_in(subject, places["bin"])
        before = (_traces(places), dict(os.environ), Path.cwd(), _children())
        reports = [_tested(subject, places, depth) for depth in ("preflight", "quick", "quick")]
        after = (_traces(places), dict(os.environ), Path.cwd(), _children())
    demand(before == after, "the quick test changed files, environment, cwd or processes (E2)")
    demand(reports[1] == reports[2], "two quick tests of the same environment differ (E1)")
    for report in reports:
        _demand_sound_report(subject, report)
    found = not program or "command_missing" not in _codes(reports[1])
    demand(found, f"the command {program} was on PATH and not found")


def findings_never_raise(subject: Subject) -> None:
    with _places() as places:
        lost = {**subject.config, "cwd": str(places["cwd"] / "missing")}
        report = _tested(subject, places, "quick", config=lost)
        demand(report.status == "fail", "a missing cwd must fail the environment test (E1)")
        broken = {**subject.config, "timeoutSec": "soon"}
        report = _tested(subject, places, "quick", config=broken)
        demand("config_invalid" in _codes(report), "a bad config must be a finding (E2)")
        if _default_program(subject):
            report = _tested(subject, places, "quick")
            told = "command_missing" in _codes(report) and report.status == "fail"
            demand(told, "a missing command must be the error command_missing (E1)")


def plan_keeps_secrets_out_of_argv(subject: Subject) -> None:
    names = subject.adapter.manifest
    wanted = [name for name in names.pass_env if name in names.secret_env or is_secret_name(name)]
    host_env = {name: f"conformance-{name.lower()}-value" for name in wanted}
    schema = subject.adapter.config_schema().fields
    secrets = {f.key: f"conformance-{f.key}-value" for f in schema if f.type == "secret"}
    with _places() as places:
        plan = _planned(subject, places, secrets, {**host_env, STRAY: "stray"})
        demand(not _traces({"cwd": places["cwd"]}), "planning wrote into the agent's cwd (K1)")
    for value in (*host_env.values(), *secrets.values(), TOKEN):
        shown = [word for word in plan.argv if value in word]
        demand(not shown, f"a secret stands in argv: {shown} (D8)")
        told = msgspec.structs.replace(plan.meta, prompt=None)
        demand(value not in repr(told), "a secret stands in the invocation's metadata")
        passed = value in plan.env.values()
        demand(not passed or value in plan.secrets, "a secret value would not be masked")
    demand(STRAY not in plan.env, "a variable outside of the allow-list was passed on (H5)")


def plan_hands_over_the_prompt(subject: Subject) -> None:
    # The list of fields speaks of the command line anyway; the adapter's own words must.
    doc = subject.adapter.agent_configuration_doc().partition("## Configuration")[0]
    with _places() as places:
        plan = _planned(subject, places, {}, {})
        files = [path for path in places["scratch"].rglob("*") if path.is_file()]
        written = any(PROMPT.encode() in path.read_bytes() for path in files)
    in_argv = any(PROMPT in word for word in plan.argv)
    demand(
        not in_argv or "argv" in doc or "command line" in doc,
        "the prompt stands in argv: use stdin or a file, or let the doc say why not (A10)",
    )
    by_stdin = PROMPT.encode() in (plan.stdin or b"")
    by_env = any(PROMPT in value for value in plan.env.values())
    demand(in_argv or by_stdin or written or by_env, "the prompt reaches the runtime nowhere")
    demand(plan.meta.prompt == PROMPT, "the metadata does not tell the prompt (A4)")


def plan_refuses_unsafe_sessions(subject: Subject) -> None:
    with _places() as places:
        fresh = _planned(subject, places, {}, {})
    with _places() as places:
        unsafe = _planned(subject, places, {}, {}, session={"sessionId": "--conformance-flag"})
    shown = [word for word in unsafe.argv if "--conformance-flag" in word]
    demand(not shown, f"an unsafe session id stands in argv: {shown} (A8)")
    demand(len(fresh.argv) == len(unsafe.argv), "an unsafe session changes the command line")


def _planned(
    subject: Subject,
    places: Mapping[str, Path],
    config: Mapping[str, Any],
    env: Mapping[str, str],
    session: dict[str, Any] | None = None,
) -> Plan:
    _stand_in(subject, places["bin"])
    adapter = subject.adapter
    request = ExecutionRequest(
        run_id="0190c0de-0000-7000-8000-000000000001",
        agent=AgentRef(id="agent", company_id="company", name="A", adapter_type=adapter.type),
        runtime=RuntimeSession(session_params=session),
        config={**subject.config, **config, "cwd": str(places["cwd"])},
        context={"promptText": PROMPT},
        auth_token=TOKEN,
    )
    host_env = {**_host_env(places), **env}
    return adapter.plan(
        request, Host(env=host_env, scratch=places["scratch"], api_url="http://127.0.0.1:9")
    )


def _tested(
    subject: Subject,
    places: Mapping[str, Path],
    depth: Depth,
    config: Mapping[str, Any] | None = None,
) -> EnvironmentReport:
    given = {"cwd": str(places["cwd"]), **(subject.config if config is None else config)}
    request = CheckRequest(
        company_id="company", adapter_type=subject.adapter.type, config=given, depth=depth
    )
    return subject.adapter.test_environment(request, _host_env(places), TESTED_AT)


def _demand_sound_report(subject: Subject, report: EnvironmentReport) -> None:
    demand(report.adapter_type == subject.adapter.type, "the report names another adapter")
    demand(report.status == verdict(report.checks), "the status contradicts the checks (E1)")
    for check in report.checks:
        demand(CHECK_CODE.fullmatch(check.code), f"the code {check.code!r} is not snake_case")
        demand(check.message.strip(), f"{check.code} has no message")
        helpful = check.level != "error" or check.hint or check.code == "config_invalid"
        demand(helpful, f"the error {check.code} needs a hint that says what to do")


def _host_env(places: Mapping[str, Path]) -> dict[str, str]:
    return {"HOME": str(places["home"]), "PATH": f"{places['bin']}:{DEFAULT_PATH}"}


def _default_program(subject: Subject) -> str | None:
    """The program that would run, unless this machine really has it."""
    config = read_config(subject.adapter.Config, subject.config)
    program = getattr(config, "command", None) or subject.adapter.manifest.command
    real = any((Path(folder) / program).exists() for folder in DEFAULT_PATH.split(":"))
    return None if not program or "/" in program or real else program


def _stand_in(subject: Subject, folder: Path) -> str | None:
    """Put a program of the runtime's name on PATH that knows its version and nothing else."""
    name = _default_program(subject)
    if name:
        (folder / name).write_text("#!/bin/sh\necho 1.2.3\n")
        (folder / name).chmod(0o755)
    return name


def _codes(report: EnvironmentReport) -> list[str]:
    return [check.code for check in report.checks]


def _traces(places: Mapping[str, Path]) -> dict[str, bytes]:
    files = (path for root in places.values() for path in root.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in files}


def _children() -> set[str]:
    """Living children of this process, where /proc tells them."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for path in lists for pid in path.read_text().split()}
