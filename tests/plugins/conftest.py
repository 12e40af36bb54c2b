"""Plugins on a data directory of their own, and packages that are written for a test."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import Entry, apply
from binderclip.contract.session import ResumeDecision
from binderclip.plugins.adapter import _processes, end_process
from binderclip.plugins.records import PluginStore
from binderclip.plugins.service import Plugins
from binderclip.runs import lifecycle
from binderclip.runs.driver import Drive
from binderclip.runs.wake import local_order
from binderclip.sdk.adapter import Adapter
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome
from binderclip.store.transcripts import read_transcript

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "npm-plugins"
FRESH = ResumeDecision(action="fresh", reason="a test")

ECHO = """
from binderclip.sdk import Adapter, AdapterConfig, ExecutionResult, Manifest

class Config(AdapterConfig):
    word: str = "hello"

class Echo(Adapter):
    "Use when a test needs an agent that repeats a word."
    Config = Config
    manifest = Manifest(id="{type}", label="Echo", version="{version}")

    async def execute(self, ctx):
        await ctx.on_log("stdout", ctx.config.word + " from {version}\\n")
        return ExecutionResult(exit_code=0, signal=None, timed_out=False, summary=ctx.config.word)

def create_adapter():
    return Echo()
"""

SERVER = """
import {{ spawn }} from "node:child_process";
import {{ text }} from "./words.js";
export function createServerAdapter() {{
  return {{
    type: "{type}",
    label: "Speaker",
    models: [{{ id: "m1", label: "Model one" }}],
    agentConfigurationDoc: "Use when a test speaks.",
    supportsLocalAgentJwt: true,
    sessionCodec: {{
      deserialize: (raw) => ({{ ...raw, seen: true }}),
      serialize: (params) => ({{ id: params.id }}),
      getDisplayId: (params) => `shown-${{params.id}}`,
    }},
    getConfigSchema: () => ({{ fields: [
      {{ key: "word", label: "Word", type: "text", default: "hi", hint: "What to say." }},
      {{ key: "limits.cpu", label: "CPU", type: "number" }},
    ] }}),
    testEnvironment: async (ctx) => ({{ adapterType: "{type}", status: "warn", checks: [
      {{ code: "spoken", level: "warn", message: `asked with ${{ctx.config.word}}` }},
    ] }}),
    listModels: async () => [{{ id: "m2", label: "Model two" }}],
    detectModel: async () => ({{ model: "m3", provider: "p" }}),
    listSkills: async () => ({{ entries: [{{ key: "paperclip" }}] }}),
    {execute}
  }};
}}
"""

SPEAK = """execute: async (ctx) => {
      console.log("not part of the transcript");
      await ctx.onMeta({ adapterType: "speaker", command: "sh", cwd: ctx.config.cwd });
      await ctx.onLog("stdout", `[paperclip] ${text} ${ctx.config.word}\\n`);
      const child = spawn("sh", ["-c", ctx.config.script ?? "echo spoken"], { detached: true });
      await ctx.onSpawn({ pid: child.pid, processGroupId: child.pid, startedAt: "now" });
      child.stdout.on("data", (chunk) => ctx.onLog("stdout", String(chunk)));
      const [code, signal] = await new Promise((done) => child.on("close", (...a) => done(a)));
      return { exitCode: code, signal, timedOut: false, summary: "spoken", model: "m1",
        usage: { inputTokens: 10, outputTokens: 2, cachedInputTokens: 4 },
        sessionParams: { id: "s1" }, resultJson: { runtime: ctx.runtime, config: ctx.config,
        context: ctx.context, agent: ctx.agent } };
    },"""


def write_python(path: Path, type: str = "echo_agent", version: str = "1") -> Path:
    path.write_text(ECHO.replace("{type}", type).replace("{version}", version))
    return path


def write_npm(folder: Path, type: str = "speaker", execute: str = SPEAK, **facts: Any) -> Path:
    """A local npm package with an adapter in the documented shape."""
    folder.mkdir(parents=True, exist_ok=True)
    package = {"name": f"{type}-adapter", "version": "1.0.0", "type": "module"}
    package |= {"exports": {".": "./index.js"}, **facts}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "words.js").write_text('export const text = "first";\n')
    (folder / "index.js").write_text(SERVER.format(type=type, execute=execute))
    return folder


class Run:
    """One run of an adapter, driven in this process to its end."""

    def __init__(
        self,
        adapter: Adapter,
        home: Path,
        cwd: Path,
        prompt: str,
        skills: tuple[Path, ...] = (),
        **config: Any,
    ) -> None:
        order, request = local_order(
            adapter, cwd=str(cwd), prompt=prompt, config=config, session=FRESH, now=time.time()
        )
        env = dict(os.environ)
        self.drive = Drive(Home(home), order, adapter, request, host_env=env, skills=skills)

    def __call__(self) -> Run:
        self.outcome: RunOutcome = lifecycle.run(self.drive)
        return self

    @property
    def directory(self) -> Path:
        return self.drive.home.attempt_dir(self.drive.run_id, 1)

    @property
    def stdout(self) -> bytes:
        return (self.directory / "stdout.log").read_bytes()

    @property
    def result(self) -> Any:
        return self.outcome.result

    def entries(self) -> list[Entry]:
        return apply([], list(read_transcript(self.directory / "transcript.jsonl")))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BINDERCLIP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("npm_config_cache", str(CACHE))
    return tmp_path / "home"


@pytest.fixture
def plugins(home: Path) -> Iterator[Plugins]:
    yield Plugins(PluginStore(home))
    for directory in list(_processes):
        end_process(Path(directory))


@pytest.fixture
def run(plugins: Plugins, home: Path, tmp_path: Path) -> Callable[..., Run]:
    """Run an installed adapter by its type."""

    def start(type: str, prompt: str = "go", **config: Any) -> Run:
        cwd = tmp_path / "cwd"
        cwd.mkdir(exist_ok=True)
        return Run(plugins.load(type), home, cwd, prompt, **config)()

    return start
