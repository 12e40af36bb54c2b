"""Skills reach the runtime of a plugin by its own syncSkills, never through the cwd (K1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binderclip.plugins.service import Plugins

from .conftest import Run, write_npm

Start = Callable[..., Run]
PLACE = """
    syncSkills: async (ctx, desired) => {
      const fs = await import("node:fs");
      for (const each of ctx.config.paperclipRuntimeSkills) {
        if (!desired.includes(each.key)) continue;
        fs.mkdirSync(`${process.env.HOME}/.speaker/skills`, { recursive: true });
        fs.symlinkSync(each.source, `${process.env.HOME}/.speaker/skills/${each.runtimeName}`);
      }
      fs.writeFileSync(`${process.env.HOME}/asked.json`, JSON.stringify({ ...ctx, desired }));
      return { supported: true, mode: "persistent", entries: [], warnings: ["One was there."] };
    },
    execute: async (ctx) => {
      const fs = await import("node:fs");
      const seen = fs.readdirSync(`${process.env.HOME}/.speaker/skills`);
      await ctx.onLog("stdout", `sees ${seen}\\n`);
      return { exitCode: 0, signal: null, timedOut: false };
    },"""
PYTHON = """
from pathlib import Path
from binderclip.sdk import Adapter, ExecutionResult, Manifest, link_skills

def place(env):
    return Path(env["HOME"]) / ".placer" / "skills"

class Placer(Adapter):
    manifest = Manifest(id="placer", label="Placer", version="1", structured=False)

    def sync_skills(self, call):
        assert call.scratch.is_dir() and call.cwd.is_dir() and call.prompt == "go"
        link_skills(call.skills, place(call.env))

    def list_skills(self, call):
        return sorted(path.name for path in place(call.env).iterdir())

    async def execute(self, ctx):
        seen = sorted(path.name for path in place(ctx.env).iterdir())
        await ctx.on_log("stdout", f"sees {','.join(seen)}\\n")
        return ExecutionResult(exit_code=0, signal=None, timed_out=False)

def create_adapter():
    return Placer()
"""
COMMAND = """
from binderclip.sdk import CliAdapter, Command, Manifest, link_skills

class Lister(CliAdapter):
    manifest = Manifest(id="lister", label="Lister", version="1", structured=False)

    def command(self, call):
        self.sync_skills(call)
        return Command(["ls", str(call.scratch / "skills")])

    def sync_skills(self, call):
        link_skills(call.skills, call.scratch / "skills")

def create_adapter():
    return Lister()
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    made = tmp_path / "lent" / "code-review"
    made.mkdir(parents=True)
    (made / "SKILL.md").write_text("---\nname: code-review\ndescription: When code is read.\n---\n")
    return made


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


def notes(done: Run) -> list[str]:
    meta: dict[str, Any] = json.loads((done.directory / "meta.json").read_bytes())
    return list(meta["invocation"].get("notes", []))


def test_an_npm_adapter_places_them_before_its_run(
    plugins: Plugins, run: Start, tmp_path: Path, skill: Path, user: Path
) -> None:
    """K1, A3: asked in Paperclip's words, with the run's environment; its warnings are kept."""
    plugins.install(str(write_npm(tmp_path / "speaker", execute=PLACE)))
    assert plugins.describe("speaker").capabilities.supports_skills
    done = run("speaker", skills=(skill,), env={"HOME": str(user)}, word="hey")
    assert done.stdout == b"sees code-review\n", done.result
    assert (user / ".speaker" / "skills" / "code-review").resolve() == skill
    asked = json.loads((user / "asked.json").read_bytes())
    assert asked["desired"] == ["code-review"]
    assert (asked["adapterType"], asked["config"]["word"]) == ("speaker", "hey")
    assert asked["config"]["paperclipSkillSync"] == {"desiredSkills": ["code-review"]}
    assert notes(done) == ["One was there."]
    assert list((tmp_path / "cwd").iterdir()) == []


def test_a_python_plugin_places_them_in_its_own_process(
    plugins: Plugins, run: Start, tmp_path: Path, skill: Path, user: Path
) -> None:
    """K1: `sync_skills` by the same protocol, with the whole call."""
    (tmp_path / "placer.py").write_text(PYTHON)
    plugins.install(str(tmp_path / "placer.py"))
    done = run("placer", skills=(skill,), env={"HOME": str(user)})
    assert done.stdout == b"sees code-review\n", done.result
    assert (user / ".placer" / "skills" / "code-review").resolve() == skill
    assert list((tmp_path / "cwd").iterdir()) == []


def test_a_python_command_places_them_where_it_runs(
    plugins: Plugins, run: Start, tmp_path: Path, skill: Path
) -> None:
    """K1: a `CliAdapter` links into its own scratch, which is gone after the run."""
    (tmp_path / "lister.py").write_text(COMMAND)
    plugins.install(str(tmp_path / "lister.py"))
    assert plugins.describe("lister").own_command
    assert run("lister", skills=(skill,)).stdout == b"code-review\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("throw new Error('no room');", "no room"),
        ("process.abort();", "ended during call"),
        ("for (;;) {}", "in time"),
    ],
    ids=["throws", "crashes", "hangs"],
)
def test_skills_that_cannot_be_placed_do_not_stop_the_run(
    plugins: Plugins,
    run: Start,
    tmp_path: Path,
    skill: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    reason: str,
) -> None:
    """P4: a crash or a hang ends that call only, and the run's record tells it."""
    monkeypatch.setattr("binderclip.plugins.adapter.CALL_SECONDS", 1)
    execute = "execute: async () => ({ exitCode: 0, signal: null, timedOut: false }),"
    made = f"syncSkills: async () => {{ {body} }}, {execute}"
    plugins.install(str(write_npm(tmp_path / "speaker", execute=made)))
    done = run("speaker", skills=(skill,))
    assert done.outcome.state == "succeeded"
    assert [reason in note for note in notes(done)] == [True], notes(done)


def test_without_skills_nobody_is_asked(
    plugins: Plugins, run: Start, tmp_path: Path, user: Path
) -> None:
    plugins.install(str(write_npm(tmp_path / "speaker", execute=PLACE)))
    run("speaker", env={"HOME": str(user)})
    assert list(user.iterdir()) == []
