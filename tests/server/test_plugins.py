"""Plugins over HTTP: verbs, progress, parsers with their ETag; the server is never restarted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.plugins.conftest import write_npm, write_python
from tests.plugins.test_hostile import packed

from .conftest import Served, serving

PARSER = "export const parseStdoutLine = (l, ts) => [{ kind: 'thinking', ts, text: l }];"


def adapter(served: Served, type: str) -> dict[str, Any] | None:
    return next((each for each in served.get("/api/adapters") if each["type"] == type), None)


def test_a_plugin_lives_its_whole_life_over_http(served: Served, tmp_path: Path) -> None:
    """P2: install, list, run, disable, reload, remove; one server process all along."""
    exports = {".": "./index.js", "./ui-parser": "./p.js"}
    folder = write_npm(tmp_path / "speaker", exports=exports)
    (folder / "p.js").write_text(PARSER)
    served.client.headers.update(served.person)
    record = served.post("/api/adapters/install", {"spec": str(folder)}, 201)
    assert (record["type"], record["version"]) == ("speaker", "1.0.0")
    view = adapter(served, "speaker")
    assert view is not None
    assert (view["source"], view["state"], view["parser"]) == ("external", "ready", "ui-parser")
    assert view["capabilities"]["supportsLocalAgentJwt"] is True
    schema = served.get("/api/adapters/speaker/config-schema")
    assert schema["fields"][0]["key"] == "word"
    body = {"name": "Sp", "adapterType": "speaker", "adapterConfig": {"cwd": str(tmp_path)}}
    agent = served.post("/api/agents", body, 201)["id"]
    run = served.ended(served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"])
    assert (run["status"], run["summary"]) == ("succeeded", "spoken")
    entries = served.get(f"/api/runs/{run['id']}/transcript")
    assert "thinking" in json.dumps(entries)
    assert served.ask("PATCH", "/api/adapters/speaker", json={"disabled": True})["disabled"]
    assert not served.ask("PATCH", "/api/adapters/speaker", json={"disabled": False})["disabled"]
    served.ask("DELETE", "/api/adapters/speaker", 204)
    assert adapter(served, "speaker") is None
    served.post("/api/adapters/install", {"packageName": str(folder), "isLocalPath": True}, 201)
    assert served.process.poll() is None


def test_a_parser_is_served_with_an_etag_that_changes_with_it(
    served: Served, tmp_path: Path
) -> None:
    """U3: by both addresses; a reload refreshes it."""
    served.client.headers.update(served.person)
    exports = {".": "./index.js", "./ui-parser": "./p.js"}
    folder = write_npm(tmp_path / "shown", "shown_agent", exports=exports)
    (folder / "p.js").write_text(PARSER)
    served.post("/api/adapters/install", {"spec": str(folder)}, 201)
    first = served.client.get("/api/adapters/shown_agent/ui-parser.js")
    assert (first.status_code, first.text) == (200, PARSER)
    assert first.headers["content-type"].startswith("text/javascript")
    etag = {"if-none-match": first.headers["etag"]}
    assert served.client.get("/api/shown_agent/ui-parser.js", headers=etag).status_code == 304
    (folder / "p.js").write_text(PARSER + "\n")
    served.post("/api/adapters/shown_agent/reload", {}, 200)
    assert served.client.get("/api/shown_agent/ui-parser.js", headers=etag).status_code == 200
    detail = served.get("/api/adapters/shown_agent/plugin")
    assert detail["description"]["parser"]["state"] == "ready"
    assert served.client.get("/api/adapters/process/ui-parser.js").status_code == 404


def test_models_are_asked_of_the_plugin_and_kept(served: Served, tmp_path: Path) -> None:
    """A3: the runtime's list, where it comes from, and again only when asked to."""
    served.client.headers.update(served.person)
    kept = tmp_path / "models"
    kept.write_text("one")
    execute = f"""
      listModels: async () => {{
        const fs = await import("node:fs");
        const id = fs.readFileSync({json.dumps(str(kept))}, "utf8");
        return [{{ id, label: id }}];
      }},
      execute: async () => ({{ exitCode: 0 }}),"""
    folder = write_npm(tmp_path / "moody", "moody_agent", execute)
    served.post("/api/adapters/install", {"spec": str(folder)}, 201)
    path = "/api/adapters/moody_agent/models"
    told = served.get(path)
    assert (told["models"], told["source"]) == ([{"id": "one", "label": "one"}], "runtime")
    assert (told["detected"], told["problem"]) == ("m3", None)
    kept.write_text("two")
    assert served.get(path)["models"][0]["id"] == "one"
    assert served.get(f"{path}?refresh=1")["models"][0]["id"] == "two"
    served.ask("DELETE", "/api/adapters/moody_agent", 204)


NEEDY = """
from binderclip.sdk import Adapter, AdapterConfig, Manifest, Model

class Config(AdapterConfig):
    gateway: str

class Needy(Adapter):
    Config = Config
    manifest = Manifest(id="needy_agent", label="Needy", version="1")

    def list_models(self, call):
        name = f"{call.config.gateway}-{len(call.env.get('GATE_KEY', ''))}"
        return [Model(id=name, label=name)]

    async def execute(self, ctx):
        raise NotImplementedError

def create_adapter():
    return Needy()
"""


def test_models_are_asked_with_the_configuration_of_an_agent(
    served: Served, tmp_path: Path
) -> None:
    """A3: a runtime with required fields answers for an agent that has them, secrets included."""
    served.client.headers.update(served.person)
    (tmp_path / "needy.py").write_text(NEEDY)
    served.post("/api/adapters/install", {"spec": str(tmp_path / "needy.py")}, 201)
    served.ask("PUT", "/api/secrets/GATE", 200, json={"value": "twelve-bytes"})
    config = {"gateway": "north", "env": {"GATE_KEY": {"secret": "GATE"}}}
    body = {"name": "N", "adapterType": "needy_agent", "adapterConfig": config}
    agent = served.post("/api/agents", body, 201)["id"]
    path = "/api/adapters/needy_agent/models"
    assert "gateway" in served.get(path)["problem"]
    told = served.get(f"{path}?agentId={agent}")
    assert (told["models"][0]["id"], told["source"]) == ("north-12", "runtime")
    changed = {"adapterConfig": config | {"gateway": "south"}}
    served.ask("PATCH", f"/api/agents/{agent}", json=changed)
    assert served.get(f"{path}?agentId={agent}")["models"][0]["id"] == "south-12"
    other = served.client.get(f"/api/adapters/process/models?agentId={agent}")
    assert (other.status_code, list(other.json()["error"]["fields"])) == (422, ["agentId"])
    served.ask("DELETE", "/api/adapters/needy_agent", 204)


def test_installing_needs_the_persons_token(served: Served, tmp_path: Path) -> None:
    """R3: an install is a person's act."""
    file = str(write_python(tmp_path / "echo.py"))
    bare = httpx.post(f"{served.address}/api/adapters/install", json={"spec": file})
    assert (bare.status_code, bare.json()["error"]["code"]) == (403, "person_needed")


def test_a_bad_plugin_is_refused_with_the_reason(served: Served, tmp_path: Path) -> None:
    """P5: refused, and the server goes on."""
    served.client.headers.update(served.person)
    file = tmp_path / "bad.py"
    file.write_text("raise RuntimeError('not today')")
    answer = served.client.post("/api/adapters/install", json={"spec": str(file)})
    assert answer.status_code == 400
    assert "not today" in answer.json()["error"]["message"]
    assert served.client.post("/api/adapters/install", json={}).status_code == 422
    assert served.get("/api/health")


class Viewer(threading.Thread):
    """Somebody who watches what is installed, until it is over."""

    def __init__(self, served: Served) -> None:
        super().__init__()
        self.steps: list[tuple[str, str]] = []
        self._address = served.address
        self._begun = threading.Event()
        self.start()
        assert self._begun.wait(30)

    def run(self) -> None:
        with httpx.stream("GET", f"{self._address}/api/events", timeout=30) as stream:
            name = ""
            for line in stream.iter_lines():
                self._begun.set()
                name = line.removeprefix("event: ") if line.startswith("event: ") else name
                if line.startswith("data: ") and name == "adapter-progress":
                    told = json.loads(line[6:])["progress"]
                    self.steps.append((told["step"], told["message"]))
                if self.steps and self.steps[-1][0] in ("done", "failed"):
                    return


def test_progress_is_told_to_every_viewer(served: Served, tmp_path: Path) -> None:
    """P2: step by step, to the end, also when it comes to nothing."""
    served.client.headers.update(served.person)
    file = write_python(tmp_path / "echo.py", "told_agent")
    viewer = Viewer(served)
    served.post("/api/adapters/install", {"spec": str(file)}, 201)
    viewer.join(30)
    assert [step for step, _ in viewer.steps] == ["copy", "load", "ready", "done"]
    file.write_text("raise RuntimeError('not today')")
    viewer = Viewer(served)
    served.ask("POST", "/api/adapters/told_agent/reload", 400)
    viewer.join(30)
    assert [step for step, _ in viewer.steps] == ["copy", "load", "failed"]
    assert "not today" in viewer.steps[-1][1]


def test_an_override_is_paused_and_resumed(served: Served, tmp_path: Path) -> None:
    """P2: by HTTP too."""
    served.client.headers.update(served.person)
    file = str(write_python(tmp_path / "echo.py", "codex_local"))
    served.post("/api/adapters/install", {"spec": file, "override": True}, 201)
    view = adapter(served, "codex_local")
    assert view is not None
    assert (view["source"], view["overriddenBuiltin"]) == ("external", True)
    served.ask("PATCH", "/api/adapters/codex_local/override", json={"paused": True})
    view = adapter(served, "codex_local")
    assert view is not None
    assert (view["source"], view["overridePaused"]) == ("builtin", True)
    served.ask("DELETE", "/api/adapters/codex_local", 204)


HANG = "export const createServerAdapter = async () => { setInterval(() => {}, 1e6);"
REFUSED = {
    "crash.py": ("import os; os._exit(9)", "ended during describe"),
    "flood.py": (
        "import os\nfor _ in range(32): os.write(1, b'x' * 10**6)\nraise OSError('drowned')",
        "drowned",
    ),
    "shape.py": ("def create_adapter(): return 7", "create_adapter"),
    "abort.js": ("process.abort();", "ended during describe"),
    "hang.js": (f"{HANG} await new Promise(() => {{}}); }};", "did not answer describe in time"),
    "type.js": (
        "export const createServerAdapter = () => ({ type: 'A B', execute() {} });",
        "type",
    ),
    "empty.js": ("export const createServerAdapter = () => ({ type: 'empty' });", "execute"),
}


def refused(served: Served, spec: Path) -> str:
    """Why a plugin was not installed."""
    answer = served.client.post("/api/adapters/install", json={"spec": str(spec)}, timeout=90)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["message"])


def hostile(folder: Path) -> Iterator[tuple[Path, str]]:
    """Plugins that must not get in, each with a word of the reason."""
    for name, (code, reason) in REFUSED.items():
        if name.endswith(".py"):
            (folder / name).write_text(code)
            yield folder / name, reason
        else:
            package = write_npm(folder / name.removesuffix(".js"), name.removesuffix(".js"))
            (package / "index.js").write_text(code)
            yield package, reason
    yield write_python(folder / "claim.py", "gemini_local"), "claims the built-in type"
    yield write_python(folder / "second.py", "first_agent"), "belongs to the plugin first"
    escaping = write_npm(folder / "escape", "escape_agent")
    yield packed(folder / "evil.tgz", escaping, "package/../../evil.txt"), "leads outside"


def test_a_hostile_set_never_disturbs_the_server_or_other_runs(
    served: Served, tmp_path: Path
) -> None:
    """P4: each is refused with a reason while a run goes on; the server is the same process."""
    served.client.headers.update(served.person)
    agent = served.agent("steady", "until [ -e gate ]; do sleep 0.05; done; echo steady")
    run = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    first = str(write_python(tmp_path / "first.py", "first_agent"))
    served.post("/api/adapters/install", {"spec": first}, 201)
    before = (served.home.path / "adapter-plugins.json").read_bytes()
    for spec, reason in hostile(tmp_path):
        assert reason in refused(served, spec), spec
    assert (served.home.path / "adapter-plugins.json").read_bytes() == before
    assert list(tmp_path.rglob("evil.txt")) == []
    left = [path.parent.name for path in (served.home.path / "plugins").glob("*/*")]
    assert [name for name in left if name in ("crash", "hang", "escape", "second", "evil")] == []
    served.ask("DELETE", "/api/adapters/first_agent", 204)
    (served.home.path.parent / "gate").touch()
    assert served.ended(run)["summary"] == "steady"
    assert served.process.poll() is None


MISDEEDS = {
    "abort_agent": "process.abort();",
    "exit_agent": "process.exit(0);",
    "flood_agent": 'for (;;) await ctx.onLog("stdout", "x".repeat(9999) + "\\n");',
    "hang_agent": "process.on('SIGTERM', () => {}); for (;;) {}",
    "shape_agent": "return 7;",
    "kill_agent": "process.kill(process.ppid, 'SIGKILL'); await new Promise(() => {});",
}


def test_plugins_that_turn_bad_in_a_run_fail_alone(served: Served, tmp_path: Path) -> None:
    """P4: several at once beside a good one; each run ends with its own error."""
    served.client.headers.update(served.person)
    steady = served.agent("calm", "until [ -e calm ]; do sleep 0.05; done; echo calm")
    good = served.post(f"/api/agents/{steady}/wakeup", {}, 202)["runId"]
    limits = {"cwd": str(tmp_path), "maxLogBytes": 500_000, "timeoutSec": 5, "graceSec": 1}
    runs = {}
    for type, body in MISDEEDS.items():
        execute = f"execute: async (ctx) => {{ {body} }},"
        folder = write_npm(tmp_path / type, type, execute)
        served.post("/api/adapters/install", {"spec": str(folder)}, 201)
        made = {"name": type, "adapterType": type, "adapterConfig": limits}
        agent = served.post("/api/agents", made, 201)["id"]
        runs[type] = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    ended = {type: served.ended(run) for type, run in runs.items()}
    codes = {type: run["errorCode"] for type, run in ended.items()}
    assert codes.pop("flood_agent") == "output_limit"
    assert codes.pop("hang_agent") == "timeout"
    assert all(codes.values()), codes
    assert all(run["errorMessage"] for run in ended.values())
    (served.home.path.parent / "calm").touch()
    assert served.ended(good)["summary"] == "calm"
    assert served.process.poll() is None


def test_a_restart_changes_nothing_of_what_is_installed(tmp_path: Path) -> None:
    """P2: types, versions, switches, overrides, parsers and runs, in another server process."""
    exports = {".": "./index.js", "./ui-parser": "./p.js"}
    folder = write_npm(tmp_path / "speaker", exports=exports)
    (folder / "p.js").write_text(PARSER)
    specs = [
        {"spec": str(folder)},
        {"spec": str(write_python(tmp_path / "off.py", "off_agent"))},
        {"spec": str(write_python(tmp_path / "own.py", "codex_local")), "override": True},
        {"spec": str(write_python(tmp_path / "back.py", "pi_local")), "override": True},
    ]
    with serving(tmp_path / "home") as server:
        server.client.headers.update(server.person)
        for spec in specs:
            server.post("/api/adapters/install", spec, 201)
        server.ask("PATCH", "/api/adapters/off_agent", json={"disabled": True})
        server.ask("PATCH", "/api/adapters/qwen_local", json={"disabled": True})
        server.ask("PATCH", "/api/adapters/pi_local/override", json={"paused": True})
        before = server.get("/api/adapters")
        etag = server.client.get("/api/adapters/speaker/ui-parser.js").headers["etag"]
    with serving(tmp_path / "home") as server:
        server.client.headers.update(server.person)
        assert server.get("/api/adapters") == before
        told = {"if-none-match": etag}
        parser = server.client.get("/api/adapters/speaker/ui-parser.js", headers=told)
        assert parser.status_code == 304
        body = {"name": "S", "adapterType": "speaker", "adapterConfig": {"cwd": str(tmp_path)}}
        agent = server.post("/api/agents", body, 201)["id"]
        run = server.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
        assert server.ended(run)["summary"] == "spoken"
        server.ask("DELETE", "/api/adapters/codex_local", 204)
    with serving(tmp_path / "home") as server:
        views = {view["type"]: view for view in server.get("/api/adapters")}
        assert views["codex_local"]["source"] == "builtin"
        assert views["pi_local"]["overridePaused"]


def test_a_bad_new_version_is_refused_and_a_good_one_is_rolled_back(
    served: Served, tmp_path: Path
) -> None:
    """P5: by HTTP; nothing of a refused version stays on disk."""
    served.client.headers.update(served.person)
    file = write_python(tmp_path / "steps.py", "steps_agent", "1")
    served.post("/api/adapters/install", {"spec": str(file)}, 201)
    place = served.home.path / "plugins" / "steps"
    kept = sorted(place.iterdir())
    file.write_text("raise RuntimeError('half an idea')")
    for verb in ("reload", "reinstall", "upgrade"):
        answer = served.client.post(f"/api/adapters/steps_agent/{verb}", json={})
        assert answer.status_code == 400
        assert "half an idea" in answer.json()["error"]["message"]
    assert sorted(place.iterdir()) == kept
    write_python(file, "steps_agent", "2")
    assert served.post("/api/adapters/steps_agent/upgrade", {}, 200)["version"] == "2"
    assert served.post("/api/adapters/steps_agent/rollback", {}, 200)["version"] == "1"
    served.ask("DELETE", "/api/adapters/steps_agent", 204)
    assert not place.exists()
