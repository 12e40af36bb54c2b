"""`binderclip adapters`: verbs on plugins, and the author's kit, with the real program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from binderclip.plugins.scaffold import SKILL
from tests.plugins.conftest import ROOT, write_npm, write_python

from .conftest import Cli


def listed(cli: Cli, type: str) -> dict[str, object] | None:
    views = json.loads(cli("adapters", "list", "--json").stdout)
    return next((view for view in views if view["type"] == type), None)


def test_an_installed_adapter_is_listed_shown_run_and_removed(cli: Cli, tmp_path: Path) -> None:
    """P2: by CLI; every command is a process of its own, so all of it survives a restart."""
    cli("adapters", "install", str(write_npm(tmp_path / "speaker")))
    view = listed(cli, "speaker")
    assert view is not None
    assert (view["source"], view["packageName"]) == ("external", "speaker-adapter")
    shown = cli("adapters", "show", "speaker").stdout
    assert "speaker-adapter 1.0.0" in shown
    assert "What to say." in shown
    done = cli("run", "--adapter", "speaker", "--config", "word=ho", "go")
    assert "spoken" in done.stdout
    assert "succeeded" in done.stdout
    cli("adapters", "disable", "speaker")
    refused = cli("run", "--adapter", "speaker", "go", code=1)
    assert "is disabled" in refused.stdout + refused.stderr
    cli("adapters", "enable", "speaker")
    cli("adapters", "reinstall", "speaker")
    cli("adapters", "remove", "speaker")
    assert listed(cli, "speaker") is None
    missing = cli("run", "--adapter", "speaker", "go", code=2)
    assert "No adapter has the type 'speaker'" in missing.stderr


def test_an_override_is_asked_for_and_paused(cli: Cli, tmp_path: Path) -> None:
    file = str(write_python(tmp_path / "echo.py", "process"))
    refused = cli("adapters", "install", file, code=1)
    assert "claims the built-in type process" in refused.stderr
    assert "--override" in refused.stderr
    cli("adapters", "install", file, "--override")
    assert "hello from 1" in cli("run", "--adapter", "process", "x").stdout
    assert "ready, overrides" in cli("adapters", "list").stdout
    cli("adapters", "pause", "process")
    assert "ready, override paused" in cli("adapters", "list").stdout
    assert "built in" in cli("run", "--adapter", "process", "--", "echo", "built in").stdout
    cli("adapters", "override", "process")
    assert "hello from 1" in cli("run", "--adapter", "process", "x").stdout


def test_an_upgrade_is_rolled_back(cli: Cli, tmp_path: Path) -> None:
    file = write_python(tmp_path / "echo.py", version="1")
    cli("adapters", "install", str(file))
    assert "was the newest already" in cli("adapters", "upgrade", "echo_agent").stdout
    write_python(file, version="2")
    assert json.loads(cli("adapters", "reload", "echo_agent", "--json").stdout)["version"] == "2"
    assert json.loads(cli("adapters", "rollback", "echo_agent", "--json").stdout)["version"] == "1"


def test_a_store_of_paperclips_is_imported(cli: Cli, tmp_path: Path) -> None:
    """P3."""
    path = str(write_npm(tmp_path / "speaker"))
    record = {"packageName": "speaker-adapter", "localPath": path, "type": "speaker"}
    (tmp_path / "old.json").write_text(json.dumps([record]))
    assert (
        "speaker-adapter: installed" in cli("adapters", "import", str(tmp_path / "old.json")).stdout
    )
    assert listed(cli, "speaker")


def test_a_new_adapter_passes_its_own_tests(cli: Cli) -> None:
    """K3: the folder that `new` writes is checked, tested, run and installed as it stands."""
    told = cli("adapters", "new", "My-Agent").stdout
    assert "binderclip adapters check ./my_agent" in told
    assert all(part in told for part in ("__init__.py", "parser.py", "fixtures/", "doc.md"))
    folder = cli.cwd / "my_agent"
    checked = cli("adapters", "check", "my_agent").stdout
    assert checked.count("✓") == 5
    assert (folder / SKILL).is_file()
    own = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_adapter.py"],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert own.returncode == 0, own.stdout
    assert "Done: hello" in cli("run", "--adapter", "./my_agent", "hello").stdout
    cli("adapters", "install", "./my_agent")
    assert "Done: hello" in cli("run", "--adapter", "my_agent", "hello").stdout
    again = cli("adapters", "new", "my-agent", code=1)
    assert "exists already" in again.stderr


def test_the_skill_in_the_repository_is_the_one_that_new_writes() -> None:
    """K3: one text in both places."""
    template = ROOT / "src" / "binderclip" / "plugins" / "template" / "SKILL.md.tmpl"
    assert (ROOT / SKILL).read_text() == template.read_text()


def test_check_names_what_is_wrong(cli: Cli, tmp_path: Path) -> None:
    """U7: exports, size, imports, determinism, error tolerance, entry shapes."""
    (tmp_path / "p.js").write_text("import './x.js'; export const parseStdoutLine = () => [];")
    assert "it imports './x.js'" in cli("adapters", "check", str(tmp_path / "p.js"), code=1).stdout
    (tmp_path / "p.js").write_text("export const parseStdoutLine = (l) => [{ kind: 'assistant' }];")
    told = cli("adapters", "check", str(tmp_path / "p.js"), code=1).stdout
    assert "things that are no entries" in told
    folder = write_npm(tmp_path / "speaker")
    report = json.loads(cli("adapters", "check", str(folder), "--json").stdout)
    assert report["type"] == "speaker"
    assert report["tiers"][2]["missing"] == ["a ui-parser that loads"]
    (folder / "index.js").write_text("throw new Error('at import')")
    assert "at import" in cli("adapters", "check", str(folder), code=1).stdout


PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "{name}"
version = "1.0"

[project.entry-points."binderclip.adapters"]
mine = "mine"
"""
BACKEND = """
import zipfile
from pathlib import Path

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "{stem}-1.0-py3-none-any.whl"
    info = "{stem}-1.0.dist-info"
    with zipfile.ZipFile(Path(directory) / name, "w") as wheel:
        for path in sorted(Path("mine").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                wheel.write(path)
        told = "Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n"
        wheel.writestr(f"{{info}}/METADATA", told)
        wheel.writestr(f"{{info}}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
                       "Tag: py3-none-any\\n")
        wheel.writestr(f"{{info}}/entry_points.txt", "[binderclip.adapters]\\nmine = mine\\n")
        wheel.writestr(f"{{info}}/RECORD", "")
    return name
"""


def test_check_scores_a_package_in_its_own_environment(cli: Cli) -> None:
    """U7: what `new` wrote, made into a package; its tests run where its requirements are."""
    cli("adapters", "new", "mine")
    for name, warned in (("binderclip-adapter-mine", False), ("mine-tools", True)):
        (cli.cwd / "pyproject.toml").write_text(PROJECT.format(name=name))
        backend = BACKEND.format(name=name, stem=name.replace("-", "_"))
        (cli.cwd / "backend.py").write_text(backend)
        told = cli("adapters", "check", ".").stdout
        assert "42 requirements are met" in told
        assert told.count("✓") == 5, told
        assert ("people look for binderclip-adapter-NAME" in told) is warned


def test_an_adapter_that_hangs_or_dies_does_not_take_the_check_with_it(cli: Cli) -> None:
    """P4: its code never runs in the process of the command."""
    cli("adapters", "new", "mine")
    parser = cli.cwd / "mine" / "parser.py"
    source = parser.read_text()
    parser.write_text(source.replace("def parse_event(", "def parse_event(self, *_):\n"
                      "        import os; os._exit(7)\n\n    def unused("))  # fmt: skip
    told = cli("adapters", "check", "./mine", code=1).stdout
    assert "ended during conform" in told


def test_a_problem_names_the_authors_own_file(cli: Cli, tmp_path: Path) -> None:
    """P5: not the copy that was looked at, which is gone by then."""
    cli("adapters", "new", "mine")
    parser = cli.cwd / "mine" / "parser.py"
    parser.write_text(parser.read_text() + "def (\n")
    for words, stream in ((("check", "./mine"), "stdout"), (("install", "./mine"), "stderr")):
        told = getattr(cli("adapters", *words, code=1), stream)
        assert f"{cli.cwd}/mine cannot be loaded: SyntaxError" in told
        assert str(parser) in told
        assert "binderclip-check-" not in told
        assert "/plugins/" not in told
    folder = write_npm(tmp_path / "speaker")
    (folder / "index.js").write_text("import './gone.js';")
    assert str(folder / "gone.js") in cli("adapters", "install", str(folder), code=1).stderr


def test_a_parser_that_says_nothing_is_a_warning(cli: Cli, tmp_path: Path) -> None:
    """U7: it may be meant, but it is hardly what an author wants."""
    (tmp_path / "p.js").write_text("export const parseStdoutLine = (line) => line.type;")
    told = cli("adapters", "check", str(tmp_path / "p.js")).stdout
    assert "! ui-parser.js: 9 lines gave 0 entries; 9 gave none." in told


def test_a_built_in_adapter_is_not_mistaken_for_a_plugin(cli: Cli) -> None:
    for verb in ("reload", "upgrade", "remove", "rollback", "pause"):
        told = cli("adapters", verb, "codex_local", code=2).stderr
        assert "codex_local is built in and no plugin stands for it" in told


def test_models_are_listed_with_their_origin(cli: Cli, tmp_path: Path) -> None:
    """A3."""
    cli("adapters", "install", str(write_npm(tmp_path / "speaker")))
    told = cli("adapters", "models", "speaker")
    assert "Model two" in told.stdout
    assert "From the runtime; it would use m3 by itself." in told.stderr
    found = json.loads(cli("adapters", "models", "process", "--json").stdout)
    assert (found["models"], found["source"]) == ([], "declared")


def test_check_tries_a_parser_on_sample_output(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.js").write_text(
        "export const parseStdoutLine = (l, ts) => l ? [{ kind: 'user', ts, text: l }] : [];"
    )
    (tmp_path / "sample.txt").write_text("one\ntwo\n")
    words = ("adapters", "check", str(tmp_path / "p.js"), "--sample", str(tmp_path / "sample.txt"))
    assert "2 lines gave 2 entries" in cli(*words).stdout


def test_dev_loads_an_adapter_anew_when_a_file_is_saved(cli: Cli, tmp_path: Path) -> None:
    file = write_python(tmp_path / "echo.py", version="1")
    watching = cli.start("adapters", "dev", "--once", str(file))
    assert watching.stdout is not None
    assert b"is installed" in watching.stdout.readline()
    write_python(file, version="22")
    assert b"loaded anew" in watching.stdout.readline()
    watching.communicate(timeout=30)
    assert watching.returncode == 0
    assert "hello from 22" in cli("run", "--adapter", "echo_agent", "x").stdout


def test_dev_keeps_the_version_before_when_a_save_is_broken(cli: Cli, tmp_path: Path) -> None:
    """P5: what was there stays; an override is said aloud."""
    file = write_python(tmp_path / "echo.py", "process", version="1")
    watching = cli.start("adapters", "dev", "--once", str(file))
    assert watching.stdout is not None
    assert b"stands for the built-in adapter process" in watching.stdout.readline()
    assert b"is installed" in watching.stdout.readline()
    file.write_text("def (")
    told = watching.communicate(timeout=30)[0].decode()
    assert f"{file} cannot be loaded: SyntaxError" in told
    assert "The version before stays in force." in told
    assert "hello from 1" in cli("run", "--adapter", "process", "x").stdout
