"""Python plugins: a file, a folder, a package in an environment of its own; all verbs on them."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.contract.entry import EntryRecord, SpentRecord
from binderclip.contract.errors import AdapterError, AdapterLoadError, ContractError
from binderclip.plugins.records import PluginStore
from binderclip.plugins.registry import load_adapter
from binderclip.plugins.service import Plugins
from binderclip.sdk.config import read_config
from binderclip.sdk.parser import GenericParser
from binderclip.store.transcripts import read_transcript

from .conftest import ECHO, Run, write_python

PARSER = """
from binderclip.sdk import Assistant, JsonParser, Result, SpentRecord, Usage

class OwnParser(JsonParser):
    def parse_event(self, event, ts):
        if event.get("type") == "boom":
            raise ValueError("boom")
        if event.get("type") == "hang":
            while True:
                pass
        if event.get("type") != "say":
            return None
        self.facts.final_text = event["text"]
        told = [SpentRecord(usage=Usage(output_tokens=event["used"]))] if "used" in event else []
        return [Assistant(ts=ts, text=event["text"]), *told]
"""
FOLDER = """
from binderclip.sdk import CliAdapter, Command
from .parser import OwnParser

class Talker(CliAdapter):
    def command(self, call):
        return Command([call.config.command or "sh", "-c", call.prompt])

    def create_parser(self):
        return OwnParser()

def create_adapter():
    return Talker()
"""
Start = Callable[..., Run]


def write_folder(folder: Path, type: str = "talker") -> Path:
    folder.mkdir()
    (folder / "adapter.toml").write_text(f'id = "{type}"\nlabel = "Talker"\nversion = "3"\n')
    (folder / "__init__.py").write_text(FOLDER)
    (folder / "parser.py").write_text(PARSER)
    return folder


def write_wheel(folder: Path, name: str, type: str, version: str = "1.0") -> Path:
    """A wheel as a registry would give it."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    files = {
        f"{module}.py": ECHO.replace("{type}", type).replace("{version}", version),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Requires-Dist: binderclip\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[binderclip.adapters]\n{type} = {module}\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for place, text in files.items():
            wheel.writestr(place, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{place},,\n" for place in files))
    return path


def test_a_single_file_is_installed_and_runs(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """P1: a .py file is a plugin; its run is driven like any other (D4)."""
    record = plugins.install(str(write_python(tmp_path / "echo.py")))
    assert (record.type, record.version, record.language) == ("echo_agent", "1", "python")
    done = run("echo_agent", word="good day")
    assert done.outcome.state == "succeeded"
    assert done.stdout == b"good day from 1\n"
    assert done.result.summary == "good day"


def test_a_plugins_config_is_checked_and_listed(plugins: Plugins, tmp_path: Path) -> None:
    """F1: the plugin's own fields stand in the schema, the doc and the config class."""
    plugins.install(str(write_python(tmp_path / "echo.py")))
    adapter = plugins.load("echo_agent")
    fields = {field.key: field for field in adapter.config_schema().fields}
    assert fields["word"].default == "hello"
    assert "timeoutSec" in fields
    assert "`word`" in adapter.agent_configuration_doc()
    assert read_config(adapter.Config, {"word": "x"}).word == "x"  # type: ignore[attr-defined]


def test_a_folder_keeps_its_own_parser_in_its_own_process(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """P4: a plugin's parser runs out of process; a line that makes it raise is generic (T3)."""
    plugins.install(str(write_folder(tmp_path / "talker")))
    script = "\n".join(
        f"echo '{json.dumps(event)}'"
        for event in (
            {"type": "say", "text": "one"},
            {"type": "boom"},
            {"type": "say", "text": "two"},
        )
    )
    done = run("talker", prompt=script + "\necho plain; echo oops >&2")
    kinds = [(entry.kind_name, entry.text) for entry in map(Told, done.entries())]
    assert ("assistant", "one") in kinds
    assert ("assistant", "two") in kinds
    assert ("stdout", '{"type": "boom"}') in kinds
    assert ("stderr", "oops") in kinds
    assert done.result.summary == "two"
    assert done.outcome.coverage is not None
    assert (done.outcome.coverage.lines, done.outcome.coverage.understood) == (4, 2)


def test_a_plugins_parser_tells_what_a_call_used(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """N4: the transcript of a plugin's run holds usage behind its entries, as a built-in's does."""
    plugins.install(str(write_folder(tmp_path / "talker")))
    said = json.dumps({"type": "say", "text": "one", "used": 42})
    done = run("talker", prompt=f"echo '{said}'")
    records = list(read_transcript(done.directory / "transcript.jsonl"))
    assert [type(record) for record in records] == [EntryRecord, SpentRecord]
    assert isinstance(records[1], SpentRecord)
    assert records[1].usage.output_tokens == 42


class Told:
    """An entry's kind and text."""

    def __init__(self, entry: object) -> None:
        self.kind_name = type(entry).__name__.lower()
        self.text = getattr(entry, "text", "")


def test_a_parser_that_hangs_ends_with_its_run(
    plugins: Plugins, run: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: the limit ends the plugin's own loop, the transcript goes on generic and says why."""
    monkeypatch.setattr("binderclip.plugins.parsing.BATCH_SECONDS", 0.5)
    plugins.install(str(write_folder(tmp_path / "talker")))
    script = 'echo \'{"type": "hang"}\'; echo after'
    done = run("talker", prompt=script, timeoutSec=2, graceSec=0.2)
    texts = [Told(entry).text for entry in done.entries()]
    assert done.outcome.state == "timed_out"
    assert '{"type": "hang"}' in texts
    assert any("did not answer parse in time" in text for text in texts)


def test_a_package_lives_in_an_environment_of_its_own(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """P1: a package with an entry point; binderclip itself comes from the host."""
    wheel = write_wheel(tmp_path, "binderclip-adapter-paper", "paper_agent")
    record = plugins.install(str(wheel))
    assert (record.package_name, record.version) == ("binderclip-adapter-paper", "1.0")
    assert record.integrity.startswith("sha512-")
    told = plugins.describe("paper_agent")
    assert told.interpreter is not None
    assert told.interpreter.endswith("/venv/bin/python")
    assert run("paper_agent").stdout == b"hello from 1.0\n"


def test_a_package_without_an_entry_point_is_refused(plugins: Plugins, tmp_path: Path) -> None:
    """P5: refused with a reason, and nothing is left of it."""
    wheel = write_wheel(tmp_path, "binderclip-adapter-paper", "paper_agent")
    bare = tmp_path / "bare" / wheel.name
    bare.parent.mkdir()
    with zipfile.ZipFile(wheel) as full, zipfile.ZipFile(bare, "w") as made:
        for name in full.namelist():
            if not name.endswith("entry_points.txt"):
                made.writestr(name, full.read(name))
    with pytest.raises(ContractError, match="no entry point"):
        plugins.install(str(bare))
    assert list(plugins.store.folder.glob("*/*")) == []


def test_reload_runs_new_code_in_every_part(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """P4: reload really reloads everything; the run before it kept its version."""
    folder = write_folder(tmp_path / "talker")
    plugins.install(str(folder))
    before = run("talker", prompt='echo \'{"type": "say", "text": "x"}\'')
    (folder / "parser.py").write_text(PARSER.replace('text=event["text"]', 'text="new"'))
    plugins.reload("talker")
    after = run("talker", prompt='echo \'{"type": "say", "text": "x"}\'')
    assert next(Told(entry).text for entry in before.entries()) == "x"
    assert next(Told(entry).text for entry in after.entries()) == "new"
    assert load_adapter(before.drive.order.adapter_path or "").origin != after.drive.adapter.origin


def test_a_broken_reload_leaves_what_was_there(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """P5: a bad version is refused, and what was there before stays."""
    file = write_python(tmp_path / "echo.py")
    before = plugins.install(str(file))
    file.write_text("raise RuntimeError('not today')")
    with pytest.raises(ContractError, match="not today"):
        plugins.reload("echo_agent")
    assert plugins.record("echo_agent") == before
    assert run("echo_agent").stdout == b"hello from 1\n"


def test_a_new_version_can_be_rolled_back(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    file = write_python(tmp_path / "echo.py", version="1")
    plugins.install(str(file))
    write_python(file, version="2")
    assert plugins.upgrade("echo_agent").version == "2"
    assert plugins.rollback("echo_agent").version == "1"
    assert run("echo_agent").stdout == b"hello from 1\n"


def test_only_the_version_in_force_and_the_one_before_are_kept(
    plugins: Plugins, tmp_path: Path
) -> None:
    file = write_python(tmp_path / "echo.py")
    plugins.install(str(file))
    for _ in range(3):
        plugins.reload("echo_agent")
    assert len(list(plugins.store.folder.glob("*/*"))) == 2


def test_a_version_that_a_run_uses_is_kept(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    """Running runs keep the version they started with."""
    file = write_python(tmp_path / "echo.py")
    plugins.install(str(file))
    adapter = plugins.load("echo_agent")
    used = Path(adapter.origin)
    (used / "runs").mkdir()
    (used / "runs" / "some-run").touch()
    plugins.remove("echo_agent")
    assert load_adapter(str(used)).type == "echo_agent"
    (used / "runs" / "some-run").unlink()
    plugins.install(str(file))
    assert not used.exists()


def test_a_finished_run_is_read_by_the_version_in_force_once_its_own_is_gone(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """D2: a lost transcript is made again, also after upgrades."""
    plugins.install(str(write_python(tmp_path / "echo.py")))
    path = run("echo_agent").drive.order.adapter_path or ""
    for _ in range(2):
        plugins.reload("echo_agent")
    assert not Path(path).exists()
    assert load_adapter(path).origin == str(
        plugins.store.directory_of(plugins.record("echo_agent"))
    )
    plugins.remove("echo_agent")
    with pytest.raises(AdapterLoadError, match="does not exist"):
        load_adapter(path)


def test_a_finished_run_lets_its_version_go(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    plugins.install(str(write_python(tmp_path / "echo.py")))
    done = run("echo_agent")
    assert list((Path(done.drive.adapter.origin) / "runs").iterdir()) == []


def test_verbs_survive_a_restart(plugins: Plugins, tmp_path: Path) -> None:
    """P2: another process sees the same."""
    plugins.install(str(write_python(tmp_path / "one.py", "one_agent")))
    plugins.install(str(write_python(tmp_path / "two.py", "two_agent")))
    plugins.set_disabled("two_agent", True)
    plugins.set_disabled("gemini_local", True)
    again = {view.type: view for view in Plugins(PluginStore(plugins.store.home)).list()}
    assert (again["one_agent"].state, again["two_agent"].state) == ("ready", "disabled")
    assert again["gemini_local"].disabled
    plugins.set_disabled("gemini_local", False)
    assert not {view.type: view for view in plugins.list()}["gemini_local"].disabled


def test_a_disabled_adapter_runs_nothing_new(plugins: Plugins, run: Start, tmp_path: Path) -> None:
    plugins.install(str(write_python(tmp_path / "echo.py")))
    plugins.set_disabled("echo_agent", True)
    done = run("echo_agent")
    assert done.result.error_code == "preflight_failed"
    assert "is disabled" in done.result.error_message
    plugins.set_disabled("echo_agent", False)
    assert run("echo_agent").outcome.state == "succeeded"


def test_a_built_in_type_is_claimed_only_on_purpose(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """P2: an override is asked for, can be paused, and its removal restores the built-in."""
    file = str(write_python(tmp_path / "echo.py", "claude_local"))
    with pytest.raises(ContractError, match="claims the built-in type claude_local"):
        plugins.install(file)
    plugins.install(file, override=True)
    assert run("claude_local").stdout == b"hello from 1\n"
    view = {view.type: view for view in plugins.list()}["claude_local"]
    assert (view.source, view.overridden_builtin, view.override_paused) == ("external", True, False)
    plugins.set_override("claude_local", paused=True)
    assert plugins.load("claude_local").origin == "binderclip.adapters.claude_local"
    paused = {view.type: view for view in plugins.list()}["claude_local"]
    assert (paused.source, paused.override_paused) == ("builtin", True)
    plugins.set_override("claude_local", paused=False)
    assert plugins.load("claude_local").origin != "binderclip.adapters.claude_local"
    plugins.remove("claude_local")
    assert plugins.load("claude_local").origin == "binderclip.adapters.claude_local"


def test_an_override_may_be_read_by_the_built_in_parser(plugins: Plugins, tmp_path: Path) -> None:
    """U5: its own parser, else the built-in's if it says so, else generic."""
    file = str(write_python(tmp_path / "echo.py", "claude_local"))
    plugins.install(file, override=True)
    assert isinstance(plugins.load("claude_local").create_parser(), GenericParser)
    plugins.install(file, override=True, builtin_parser=True)
    plugins.reload("claude_local")
    parser = plugins.load("claude_local").create_parser()
    assert type(parser).__module__.startswith("binderclip.adapters.claude_local")


def test_two_plugins_cannot_have_one_type(plugins: Plugins, tmp_path: Path) -> None:
    """P5: the second is refused; the first is undisturbed."""
    first = plugins.install(str(write_python(tmp_path / "one.py")))
    with pytest.raises(ContractError, match="belongs to the plugin one already"):
        plugins.install(str(write_python(tmp_path / "two.py")))
    assert plugins.record("echo_agent") == first


def test_an_existing_store_is_imported(plugins: Plugins, tmp_path: Path) -> None:
    """P3: an `adapter-plugins.json` of Paperclip's can be taken over."""
    write_python(tmp_path / "echo.py")
    given = [
        {"packageName": "echo", "localPath": str(tmp_path / "echo.py"), "disabled": True},
        {"packageName": "gone", "localPath": str(tmp_path / "gone")},
    ]
    (tmp_path / "old.json").write_text(json.dumps(given))
    (one, fine), (two, problem) = plugins.import_store(tmp_path / "old.json")
    assert (one, fine, two) == ("echo", None, "gone")
    assert "no file or folder" in (problem or "")
    assert plugins.record("echo_agent").disabled


def test_a_run_of_a_removed_plugin_fails_clearly(plugins: Plugins, tmp_path: Path) -> None:
    """P6: it never runs as something else."""
    plugins.install(str(write_python(tmp_path / "echo.py")))
    directory = plugins.store.directory_of(plugins.record("echo_agent"))
    shutil.rmtree(directory)
    with pytest.raises(AdapterLoadError, match="cannot be read"):
        plugins.load("echo_agent")
    plugins.remove("echo_agent")
    with pytest.raises(AdapterError, match="No adapter has the type"):
        plugins.load("echo_agent")
