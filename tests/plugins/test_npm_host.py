"""npm adapters, unmodified, in Node: bytes, session, result, limits, children (P1, D6)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.check import CheckRequest
from binderclip.contract.errors import ContractError
from binderclip.plugins.service import Plugins
from binderclip.sdk.adapter import Host
from binderclip.sdk.checks import CheckCall
from binderclip.sdk.config import config_from_assignments, read_config

from .conftest import Run, write_npm

Start = Callable[..., Run]


def executing(body: str) -> str:
    return f"execute: async (ctx) => {{ {body} }},"


def asked(adapter: Any, cwd: Path, **config: Any) -> CheckCall:
    request = CheckRequest(company_id="c", adapter_type=adapter.type, config=config, depth="live")
    read = read_config(adapter.Config, config)
    return CheckCall(request, read, cwd, dict(os.environ), None)


def test_a_package_is_described_without_being_changed(plugins: Plugins, tmp_path: Path) -> None:
    """P1: createServerAdapter() at the root export is all that is needed."""
    record = plugins.install(str(write_npm(tmp_path / "speaker")))
    told = plugins.describe("speaker")
    assert (record.package_name, record.version, record.type) == (
        "speaker-adapter",
        "1.0.0",
        "speaker",
    )
    assert (told.label, told.doc, told.models[0].id) == ("Speaker", "Use when a test speaks.", "m1")
    assert told.capabilities.supports_local_agent_jwt
    assert told.capabilities.supports_skills
    assert told.parser.state == "none"


def test_a_run_has_bytes_session_usage_and_text(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """D6: the exact bytes of the adapter's child; console output stays out of them."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    script = "for c in '\\303' '\\251' '\\n'; do printf \"$c\"; sleep 0.05; done"
    done = run("speaker", word="hey", script=script)
    assert done.outcome.state == "succeeded"
    assert done.stdout == "[paperclip] first hey\né\nspoken\n".encode()
    result = done.result
    assert (result.summary, result.model) == ("spoken", "m1")
    assert (result.usage.input_tokens, result.usage.cached_input_tokens) == (10, 4)
    assert (result.session_params, result.session_display_id) == ({"id": "s1"}, "shown-s1")
    assert b"not part" in (done.directory / "stderr.log").read_bytes()
    assert json.loads((done.directory / "invocation.json").read_bytes())["command"] == "sh"


def test_the_context_has_what_adapters_look_for(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """A4: config and agent.adapterConfig, workspace, nested keys, the run's own prompt."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    seen = run("speaker", prompt="do this", **{"limits.cpu": 2}).result.result_json
    cwd = str(tmp_path / "cwd")
    assert seen["config"]["cwd"] == cwd
    assert seen["config"]["limits"] == {"cpu": 2}
    assert seen["config"]["promptTemplate"] == "do this"
    assert seen["agent"]["adapterConfig"] == seen["config"]
    assert seen["context"]["paperclipWorkspace"]["cwd"] == cwd
    assert seen["runtime"]["sessionParams"] is None


def test_skills_are_lent_as_adapters_expect_them(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """K1: by config for npm adapters, by the plan of a Python plugin's own command."""
    skill = tmp_path / "skills" / "paperclip"
    skill.mkdir(parents=True)
    plugins.install(str(write_npm(tmp_path / "speaker")))
    done = run("speaker")
    host = Host(dict(os.environ), tmp_path, skills=(skill,), attempt_dir=tmp_path)
    assert done.drive.request is not None
    plan = done.drive.adapter.plan(done.drive.request, host)
    given = json.loads(plan.stdin or b"")["config"]
    assert given["paperclipRuntimeSkills"][0]["source"] == str(skill)
    assert given["paperclipSkillSync"] == {"desiredSkills": ["paperclip"]}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("throw new Error('no credentials')", "plugin_failed", "no credentials"),
        ("return 7", "plugin_failed", "returned int"),
        ("return { exitCode: 3 }", "process_failed", "exited with 3"),
        ("return { exitCode: 0, timedOut: true }", "timeout", "time limit"),
        ("return { exitCode: 1, errorCode: 'x_auth_required' }", "auth", "exited with 1"),
        ("await new Promise(() => {})", "plugin_failed", "without a result"),
        ("setTimeout(() => { throw new Error('late') }, 5); await new Promise(() => {})",
         "plugin_failed", "late"),
        ("process.exit(0)", "plugin_failed", "without a usable result"),
    ],
)  # fmt: skip
def test_a_failure_is_told_apart_and_has_a_message(
    plugins: Plugins, run: Start, tmp_path: Path, body: str, code: str, message: str
) -> None:
    """A9, P4: whatever execute does, it is an error of that run only."""
    plugins.install(str(write_npm(tmp_path / "odd", "odd_agent", executing(body))))
    result = run("odd_agent").result
    assert (result.error_code, message in result.error_message) == (code, True), result


def test_a_limit_ends_the_adapters_children_before_the_host(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """A11: the whole tree is gone, and what execute could still tell is kept."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    done = run("speaker", script="echo $$ begun; sleep 300", timeoutSec=1.5, graceSec=10)
    assert done.outcome.state == "timed_out"
    pid = int(done.stdout.split(b"\n")[1].split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)
    assert done.result.session_params == {"id": "s1"}


def test_a_child_that_daemonises_is_reaped_with_the_run(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    plugins.install(str(write_npm(tmp_path / "speaker")))
    script = "setsid sh -c 'echo $$; exec sleep 300' </dev/null 2>/dev/null & sleep 0.3"
    done = run("speaker", script=script, timeoutSec=3, graceSec=1)
    pid = int(done.stdout.split(b"\n")[1])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


def test_a_version_probe_is_no_part_of_the_log(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    body = """
      const probe = spawn("sh", ["-c", "echo version 9"]);
      await new Promise((done) => { probe.stdout.resume(); probe.on("close", done); });
      await ctx.onLog("stdout", "said\\n");
      return { exitCode: 0, signal: null, timedOut: false };"""
    plugins.install(str(write_npm(tmp_path / "probe", "probe_agent", executing(body))))
    assert run("probe_agent").stdout == b"said\n"


def test_secrets_stay_out_of_what_the_host_writes(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """D8: masked in the result as they are in the log."""
    body = "return { exitCode: 0, timedOut: false, summary: 'it is ' + process.env.MY_API_KEY };"
    plugins.install(str(write_npm(tmp_path / "leaky", "leaky_agent", executing(body))))
    done = run("leaky_agent", env={"MY_API_KEY": "hunter2hunter2"})
    assert done.result.summary == "it is " + "*" * 14
    assert b"hunter2" not in done.stdout
    assert b"hunter2" not in (done.directory / "answer.json").read_bytes()


def test_the_other_functions_are_asked_in_one_process(plugins: Plugins, tmp_path: Path) -> None:
    """A3: models, detection, skills and the environment test, which counts as live (E2)."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    adapter = plugins.load("speaker")
    call = asked(adapter, tmp_path, word="hey")
    assert [model.id for model in adapter.list_models(call)] == ["m2"]
    assert adapter.detect_model(call) == "m3"
    assert adapter.list_skills(call) == ["paperclip"]
    report = adapter.test_environment(call.request, dict(os.environ), "now")
    assert ("spoken", "asked with hey") in [(c.code, c.message) for c in report.checks]
    quick = CheckRequest(company_id="c", adapter_type="speaker", config={"cwd": str(tmp_path)})
    codes = [check.code for check in adapter.test_environment(quick, {}, "now").checks]
    assert codes == ["cwd_ok", "node_ok"]


def test_a_version_that_was_loaded_anew_elsewhere_is_asked_in_a_fresh_process(
    plugins: Plugins, tmp_path: Path
) -> None:
    """P4: a reload by the command line reaches a server that asked the plugin before."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    adapter = plugins.load("speaker")
    call = asked(adapter, tmp_path)
    first = [model.id for model in adapter.list_models(call)]
    place = plugins.store.directory_of(plugins.record("speaker"))
    source = place / "package" / "index.js"
    source.write_text(source.read_text().replace('id: "m2"', 'id: "m9"'))
    assert [model.id for model in adapter.list_models(call)] == first == ["m2"]
    (place / "plugin.json").write_bytes((place / "plugin.json").read_bytes())
    assert [model.id for model in adapter.list_models(call)] == ["m9"]


def test_keys_that_no_schema_tells_are_passed_on(plugins: Plugins, tmp_path: Path) -> None:
    """Adapters read fields that their own schema does not name."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    config = plugins.load("speaker").Config
    assert config_from_assignments(config, ["word=1", "secretKey=true", "x=a b"]) == {
        "word": "1",
        "secretKey": True,
        "x": "a b",
    }


FORMS = {
    "a class instance": """
class Own { get type() { return "formed"; }
  async execute() { return { exitCode: 0, timedOut: false, summary: "classy" }; }
  async testEnvironment() { return { checks: [] }; } }
export function createServerAdapter() { return new Own(); }
""",
    "a promise": """
export async function createServerAdapter() { return { type: "formed",
  execute: async () => ({ exitCode: 0, timedOut: false, summary: "classy" }) }; }
""",
}


@pytest.mark.parametrize("form", FORMS)
def test_an_adapter_may_be_made_in_other_ways(
    plugins: Plugins, run: Start, tmp_path: Path, form: str
) -> None:
    folder = write_npm(tmp_path / "formed")
    (folder / "index.js").write_text(FORMS[form])
    plugins.install(str(folder))
    assert run("formed").stdout == b"classy\n"


def test_metadata_and_server_in_two_exports_are_merged(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    exports = {".": {"import": "./index.js"}, "./server": {"default": "./server.js"}}
    folder = write_npm(tmp_path / "split", exports=exports)
    (folder / "index.js").write_text('export const type = "split_agent", label = "Split";')
    (folder / "server.js").write_text(
        "export const execute = async () => ({ exitCode: 0, timedOut: false, summary: 'split' });"
    )
    plugins.install(str(folder))
    assert plugins.describe("split_agent").label == "Split"
    assert run("split_agent").result.summary == "split"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("throw new Error('at import')", "at import"),
        ("export const nothing = 1;", "neither createServerAdapter"),
        ("export const createServerAdapter = () => null;", "returned no adapter"),
        ("export const createServerAdapter = () => ({ type: 'Bad Nm', execute() {} });", "Bad Nm"),
        ("export const createServerAdapter = () => ({ type: 'idle' });", "no execute function"),
        ("syntax error here", "Unexpected identifier"),
    ],
)  # fmt: skip
def test_a_package_that_is_no_adapter_is_refused(
    plugins: Plugins, tmp_path: Path, code: str, problem: str
) -> None:
    """P5: refused with the reason; nothing is left behind."""
    folder = write_npm(tmp_path / "bad")
    (folder / "index.js").write_text(code)
    with pytest.raises(ContractError, match=problem):
        plugins.install(str(folder))
    assert plugins.store.records() == []
    assert list(plugins.store.folder.glob("*/*")) == []


def test_reload_runs_new_code_in_sub_modules(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """P4: reload really reloads everything."""
    folder = write_npm(tmp_path / "speaker")
    plugins.install(str(folder))
    assert b"first" in run("speaker").stdout
    (folder / "words.js").write_text('export const text = "second";\n')
    assert b"first" in run("speaker").stdout
    plugins.reload("speaker")
    assert b"second" in run("speaker").stdout
