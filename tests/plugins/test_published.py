"""Published npm adapters, unchanged, with stand-ins for their CLIs (P1, P2, U6)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import Init, ToolCall, ToolResult
from binderclip.contract.errors import ContractError
from binderclip.contract.wire import to_plain
from binderclip.plugins.node import find_node
from binderclip.plugins.parsing import JsParser
from binderclip.plugins.records import PluginStore
from binderclip.plugins.repair import Repair
from binderclip.plugins.service import Plugins

from .conftest import CACHE, ROOT, Run

QWEN = "npm:@superbiche/qwen-paperclip-adapter@0.1.2"
HERMES = "npm:hermes-paperclip-adapter@0.3.0"
GATEWAY = "npm:@paperclipai/hermes-paperclip-adapter@2026.824.1"
RECORDED = ROOT / "src" / "binderclip" / "adapters" / "qwen_local" / "fixtures" / "tools"
BOXES = """┊ 💬 Let me look.
[done] ┊ 💻 $         ls /tmp  0.3s
[done] ┊ 📖 read      /tmp/x  1.2s
[done] ┊ 💻 $         make  2.0s [error]
The project is a CLI tool.

session_id: sess_42
"""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("npm")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One data directory for the module: packages are installed once."""
    made = tmp_path_factory.mktemp("published")
    before = {name: os.environ.get(name) for name in ("BINDERCLIP_HOME", "npm_config_cache")}
    os.environ |= {"BINDERCLIP_HOME": str(made / "home"), "npm_config_cache": str(CACHE)}
    (made / "cwd").mkdir()
    yield made
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def published(place: Path) -> Plugins:
    plugins = Plugins(PluginStore(place / "home"))
    plugins.install(QWEN, override=True)
    plugins.install(HERMES)
    return plugins


def stand_in(place: Path, name: str, output: bytes) -> str:
    """A CLI that prints what the real one printed, a few bytes at a time."""
    kept = place / f"{name}.out"
    kept.write_bytes(output)
    script = (
        f"#!{sys.executable}\nimport os\ndata = open({str(kept)!r}, 'rb').read()\n"
        "for at in range(0, len(data), 11): os.write(1, data[at:at + 11])\n"
    )
    (place / name).write_text(script)
    (place / name).chmod(0o755)
    return str(place / name)


def ran(plugins: Plugins, place: Path, type: str, **config: Any) -> Run:
    return Run(plugins.load(type), place / "home", place / "cwd", "do it", **config)()


def test_two_adapters_of_different_authors_run_side_by_side(
    published: Plugins, place: Path
) -> None:
    """P2: neither disturbs the other; their bytes are exact."""
    recorded = (RECORDED / "stdout.txt").read_bytes()
    qwen = ran(published, place, "qwen_local", command=stand_in(place, "qwen", recorded))
    assert qwen.outcome.state == "succeeded", qwen.result
    assert qwen.stdout.endswith(recorded)
    assert qwen.result.session_params["cwd"] == str(place / "cwd")
    assert [type(entry) for entry in qwen.entries()].count(Init) == 1
    command = stand_in(place, "hermes", BOXES.encode())
    hermes = ran(published, place, "hermes_local", hermesCommand=command)
    assert hermes.outcome.state == "succeeded", hermes.result
    assert BOXES.encode() in hermes.stdout
    assert hermes.result.session_params == {"sessionId": "sess_42"}
    assert "The project is a CLI tool." in hermes.result.summary


def test_their_manifests_are_read(published: Plugins) -> None:
    """C1: flags, models, sessions and parsers as the packages declare them."""
    qwen, hermes = published.describe("qwen_local"), published.describe("hermes_local")
    assert (qwen.parser.state, qwen.parser.form) == ("ready", "es")
    assert qwen.capabilities.supports_instructions_bundle
    assert qwen.session_management.compacts_itself
    assert (hermes.label, hermes.parser.state) == ("Hermes Agent", "none")
    assert published.record("qwen_local").integrity == (
        "sha512-duC42/z3PeV/1VCafLBo4IxDGgdO1gIlmbFf1XK1TZuFKawwMWw90oqYteBLJnv9vorU1dHvstHMc8i7T0vn6g=="
    )


def test_a_published_adapter_places_skills_in_its_runtimes_home(
    published: Plugins, place: Path
) -> None:
    """K1: what its own syncSkills does, before a run that lends skills."""
    skill = place / "lent" / "code-review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: code-review\ndescription: Load it.\n---\n")
    command = stand_in(place, "qwen", b'{"type":"result","result":"done"}\n')
    env = {"HOME": str(place / "user")}
    ran(published, place, "qwen_local", command=command, env=env, skills=(skill,))
    assert (place / "user" / ".qwen" / "skills" / "code-review").resolve() == skill


def test_a_second_package_of_the_same_type_is_refused(published: Plugins) -> None:
    """P5: the first stays."""
    with pytest.raises(ContractError, match="belongs to the plugin hermes-paperclip-adapter"):
        published.install(GATEWAY)
    assert published.record("hermes_local").version == "0.3.0"


def test_removing_one_leaves_the_other_and_restart_changes_nothing(
    published: Plugins, place: Path
) -> None:
    """P2: removed, installed from another author, both seen by another process."""
    published.remove("hermes_local")
    published.install(GATEWAY)
    code = (
        "from binderclip.plugins.registry import list_adapters as l, load_adapter as a;"
        "import json; print(json.dumps([[v.type, v.package_name, v.state, v.parser] for v in l()"
        " if v.source == 'external'])); a('hermes_local'); a('qwen_local')"
    )
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert json.loads(seen.stdout) == [
        ["hermes_local", "@paperclipai/hermes-paperclip-adapter", "ready", "ui-parser"],
        ["qwen_local", "@superbiche/qwen-paperclip-adapter", "ready", "ui-parser"],
    ]
    again = published.reinstall("hermes_local")
    assert again.version == "2026.824.1"
    command = stand_in(place, "hermes", BOXES.encode())
    done = ran(published, place, "hermes_local", hermesCommand=command, command=command)
    kinds = [type(entry) for entry in done.entries()]
    assert kinds.count(ToolCall) == kinds.count(ToolResult) == 3, done.entries()


NODE = """
import fs from "node:fs";
import { createRequire } from "node:module";
const [file, lines] = process.argv.slice(2);
const ns = file.endsWith(".cjs") ? createRequire(import.meta.url)(file) : await import(file);
const made = ns.createStdoutParser ? ns.createStdoutParser() : null;
const parse = made ? (l, t) => made.parseLine(l, t) : ns.parseStdoutLine;
const out = JSON.parse(fs.readFileSync(lines, "utf8")).map((l) => parse(l, "t") ?? null);
console.log(JSON.stringify(out));
"""


@pytest.mark.parametrize("type", ["qwen_local", "hermes_local"])
def test_quickjs_gives_the_entries_that_v8_gives(
    published: Plugins, place: Path, type: str
) -> None:
    """D3: equal entries in both engines, odd lines included."""
    told = published.describe(type)
    if told.parser.state != "ready":
        published.remove(type)
        published.install(GATEWAY)
        told = published.describe(type)
    file = Path(told.source, told.parser.path or "")
    lines = (RECORDED / "stdout.txt").read_text("utf-8").splitlines() + BOXES.splitlines()
    lines += ['{"type":', "null", "\u2028", '{"type":"result","is_error":true}', "  ┊ ", "é💬"]
    lines = [line for line in lines if line]
    (place / "lines.json").write_text(json.dumps(lines))
    (place / "run.mjs").write_text(NODE)
    words = [find_node().path, str(place / "run.mjs"), str(file), str(place / "lines.json")]
    raw = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    repair = Repair()
    expected = [to_plain(repair.entries(answer, "t")) for answer in raw]
    parser = JsParser(file.read_text("utf-8"))
    parser.prepare([("stdout", line, "t") for line in lines])
    got = [to_plain(list(parser.parse_line(line, "t") or ())) for line in lines]
    parser.finish("t")
    assert got == expected


def test_a_store_that_paperclip_wrote_is_imported(place: Path) -> None:
    """P3: names and versions as they stand there; one that is gone is told, the others go on."""
    records = [
        {"packageName": "no-such-adapter-of-anybody", "version": "1.0.0", "type": "gone_local"},
        {
            "packageName": "@superbiche/qwen-paperclip-adapter",
            "version": "0.1.2",
            "type": "qwen_local",
            "installedAt": "2026-05-01T10:00:00.000Z",
            "disabled": True,
        },
    ]
    (place / "adapter-plugins.json").write_text(json.dumps(records))
    plugins = Plugins(PluginStore(place / "imported"))
    (_, problem), (_, fine) = plugins.import_store(place / "adapter-plugins.json")
    assert "could not be found" in (problem or "") or "404" in (problem or ""), problem
    assert fine is None
    kept = plugins.record("qwen_local")
    assert (kept.version, kept.disabled, kept.override) == ("0.1.2", True, True)
    assert [path.name for path in plugins.store.folder.glob("[!.]*")] == [
        "superbiche_qwen-paperclip-adapter"
    ]
