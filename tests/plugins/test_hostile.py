"""Hostile plugins: each is refused or contained with a clear reason; nobody else notices (P4)."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterError, BinderclipError
from binderclip.plugins.service import Plugins

from .conftest import Run, write_npm, write_python

Start = Callable[..., Run]


def packed(path: Path, folder: Path, extra: str | None = None) -> Path:
    """The folder as npm would pack it, perhaps with an entry that leads outside."""
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, "package")
        if extra:
            entry = tarfile.TarInfo(extra)
            entry.size = 4
            archive.addfile(entry, io.BytesIO(b"evil"))
    return path


JAVASCRIPT = {
    "crashes at import": ("process.abort()", "ended during describe|cannot be loaded"),
    "exits at import": ("process.exit(0)", "ended during describe"),
    "never answers": ("await new Promise(() => setInterval(() => {}, 1e6));", "did not answer"),
    "loops at import": ("for (;;) {}", "did not answer"),
    "floods stdout and dies": (
        "import fs from 'node:fs'; const b = Buffer.alloc(1 << 20, 120);"
        "for (let i = 0; i < 64; i += 1) fs.writeSync(1, b); throw new Error('after the flood');",
        "after the flood",
    ),
    "writes garbage to the channel": (
        "import fs from 'node:fs'; fs.writeSync(3, 'garbage\\n'); export {};",
        "no JSON-RPC",
    ),
    "a type that is no text": (
        "export const createServerAdapter = () => ({ type: { a: 1 }, execute() {} });",
        "type is",
    ),
    "models that are no list": (
        "export const createServerAdapter = () => ({ type: 'odd', execute() {}, models: 7,"
        " label: { x: 1 } });",
        "described itself wrongly|cannot be loaded",
    ),
    "a getter that throws": (
        "export const createServerAdapter = () => ({ get type() { throw Error('no type'); } });",
        "no type",
    ),
}
PYTHON = {
    "exits at import": ("import os; os._exit(3)", "ended during describe"),
    "loops at import": ("while True: pass", "did not answer"),
    "floods stdout and dies": (
        "import os\nfor _ in range(64): os.write(1, b'x' * (1 << 20))\nraise ValueError('drowned')",
        "drowned",
    ),
    "closes the channel": ("import os; os.close(3)", "ended during describe"),
}


@pytest.mark.parametrize("what", JAVASCRIPT)
def test_an_npm_plugin_that_misbehaves_is_refused(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    code, reason = JAVASCRIPT[what]
    monkeypatch.setattr("binderclip.plugins.install.DESCRIBE_SECONDS", 4)
    folder = write_npm(tmp_path / "bad")
    (folder / "index.js").write_text(code)
    with pytest.raises(AdapterError, match=reason):
        plugins.install(str(folder))
    assert plugins.store.records() == []
    assert list(plugins.store.folder.glob("*/*")) == []


@pytest.mark.parametrize("what", PYTHON)
def test_a_python_plugin_that_misbehaves_is_refused(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    code, reason = PYTHON[what]
    monkeypatch.setattr("binderclip.plugins.install.DESCRIBE_SECONDS", 4)
    (tmp_path / "bad.py").write_text(code)
    with pytest.raises(AdapterError, match=reason):
        plugins.install(str(tmp_path / "bad.py"))
    assert plugins.store.records() == []


def test_an_archive_that_escapes_is_refused_before_it_is_unpacked(
    plugins: Plugins, tmp_path: Path
) -> None:
    folder = write_npm(tmp_path / "speaker")
    evil = packed(tmp_path / "evil.tgz", folder, "package/../../../evil.txt")
    with pytest.raises(AdapterError, match="leads outside of its folder"):
        plugins.install(str(evil))
    assert list(tmp_path.rglob("evil.txt")) == []
    assert plugins.store.records() == []


def test_a_good_archive_is_installed(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """P1: a tarball as npm packs it; its install scripts do not run."""
    folder = write_npm(tmp_path / "speaker", scripts={"postinstall": "touch ../../../ran"})
    record = plugins.install(str(packed(tmp_path / "good.tgz", folder)))
    assert record.integrity.startswith("sha512-")
    assert b"spoken" in run("speaker").stdout
    assert list(plugins.store.folder.rglob("ran")) == []


@pytest.mark.parametrize("asked", [False, True], ids=["not asked for", "asked for"])
@pytest.mark.parametrize("kind", ["archive", "folder"])
def test_install_scripts_run_only_when_asked_for(
    plugins: Plugins, tmp_path: Path, kind: str, asked: bool
) -> None:
    """D6: those of the package and of what it depends on."""
    inner = tmp_path / "inner"
    inner.mkdir()
    script = {"postinstall": f"touch {tmp_path}/ran"}
    (inner / "package.json").write_text(
        json.dumps({"name": "inner", "version": "1.0.0", "scripts": script})
    )
    needs = {"inner": f"file:{packed(tmp_path / 'inner.tgz', inner)}"}
    folder = write_npm(tmp_path / "speaker", dependencies=needs)
    spec = packed(tmp_path / "speaker.tgz", folder) if kind == "archive" else folder
    plugins.install(str(spec), scripts=asked)
    assert (tmp_path / "ran").exists() is asked


def test_an_export_that_leads_outside_is_refused(plugins: Plugins, tmp_path: Path) -> None:
    (tmp_path / "outside.js").write_text("export const createServerAdapter = () => ({});")
    folder = write_npm(tmp_path / "bad", exports={".": "../outside.js"})
    with pytest.raises(AdapterError, match="outside of the package"):
        plugins.install(str(folder))


def test_a_flood_in_a_run_ends_that_run(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """P4: contained by the limits of every run."""
    body = (
        'execute: async (ctx) => { for (;;) await ctx.onLog("stdout", "x".repeat(99) + "\\n"); },'
    )
    plugins.install(str(write_npm(tmp_path / "flood", "flood_agent", body)))
    done = run("flood_agent", maxLogBytes=200_000, graceSec=1)
    assert done.result.error_code == "output_limit"


def test_a_plugin_that_ignores_its_end_is_killed(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    body = 'execute: async () => { process.on("SIGTERM", () => {}); for (;;) {} },'
    plugins.install(str(write_npm(tmp_path / "stubborn", "stubborn_agent", body)))
    done = run("stubborn_agent", timeoutSec=1, graceSec=0.5)
    assert done.outcome.state == "timed_out"


def test_an_answer_that_is_no_result_fails_that_run(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    body = "execute: async () => { const a = {}; a.a = a; return { exitCode: 0, resultJson: a }; },"
    plugins.install(str(write_npm(tmp_path / "odd", "odd_agent", body)))
    done = run("odd_agent")
    assert done.result.error_code == "plugin_failed"
    assert "no JSON" in done.result.error_message


def test_a_call_that_hangs_is_a_finding_and_the_next_one_works(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: a hang ends that call only."""
    from .test_npm_host import asked

    folder = write_npm(tmp_path / "speaker")
    source = (folder / "index.js").read_text()
    slow = source.replace(
        "testEnvironment: async (ctx) =>",
        "testEnvironment: async () => { for (;;) {} }, unused: (ctx) =>",
    )
    (folder / "index.js").write_text(slow)
    plugins.install(str(folder))
    adapter = plugins.load("speaker")
    monkeypatch.setattr("binderclip.plugins.adapter.LIVE_SECONDS", 1)
    call = asked(adapter, tmp_path)
    report = adapter.test_environment(call.request, dict(os.environ), "now")
    assert ("plugin_failed", "error") in [(check.code, check.level) for check in report.checks]
    assert [model.id for model in adapter.list_models(call)] == ["m2"]


def test_a_hostile_set_disturbs_nobody(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """P2: what was installed works as before, after all of them."""
    plugins.install(str(write_python(tmp_path / "good.py", "good_agent")))
    before = plugins.store.file.read_bytes()
    for name, code in (("one", "import os; os._exit(1)"), ("two", "raise SystemExit(0)")):
        (tmp_path / f"{name}.py").write_text(code)
        with pytest.raises(BinderclipError):
            plugins.install(str(tmp_path / f"{name}.py"))
    with pytest.raises(BinderclipError):
        plugins.install(str(write_python(tmp_path / "three.py", "good_agent")))
    with pytest.raises(BinderclipError):
        plugins.install(str(write_python(tmp_path / "four.py", "codex_local")))
    assert plugins.store.file.read_bytes() == before
    assert run("good_agent").stdout == b"hello from 1\n"
    assert [record["type"] for record in json.loads(before)] == ["good_agent"]
