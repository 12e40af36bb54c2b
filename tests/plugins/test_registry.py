"""Adapters are found by their folders, listed without importing them, loaded by type or path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterLoadError, AdapterNotFound, ContractError
from binderclip.plugins.registry import BUILT_IN, list_adapters, load_adapter

SINGLE_FILE = """
from binderclip.sdk import Adapter, ExecutionResult, Manifest

class Echo(Adapter):
    manifest = Manifest(id="echo_agent", label="{label}")

    async def execute(self, ctx):
        return ExecutionResult(exit_code=0, signal=None, timed_out=False)

def create_adapter():
    return Echo()
"""


def folder_adapter(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    (folder / "__init__.py").write_text("from .own import create_adapter\n")
    return folder


def test_every_built_in_folder_is_listed_and_ready() -> None:
    """A1: a folder with adapter.toml is all it takes."""
    views = list_adapters()
    folders = sorted(path.parent.name for path in BUILT_IN.glob("*/adapter.toml"))
    assert [view.type for view in views] == folders
    assert [(view.type, view.problem) for view in views if view.state != "ready"] == []


def test_listing_imports_no_adapter() -> None:
    """A2: metadata is readable without the adapter's code."""
    code = (
        "import sys; from binderclip.plugins.registry import list_adapters; list_adapters();"
        "sys.exit(any(name.startswith('binderclip.adapters.') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("type", [path.parent.name for path in BUILT_IN.glob("*/adapter.toml")])
def test_every_built_in_adapter_loads_under_its_own_type(type: str) -> None:
    adapter = load_adapter(type)
    assert adapter.type == type
    assert adapter.origin == f"binderclip.adapters.{type}"


def test_the_list_tells_the_capabilities_that_the_code_has() -> None:
    """C1, C2: what is told without importing is what a loaded adapter says of itself."""
    for view in list_adapters():
        assert view.capabilities == load_adapter(view.type).capabilities, view.type


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        ("id = ", "Invalid value"),
        ('id = "other"\nlabel = "x"', "says id = 'other'"),
        ('id = "Bad-Name"\nlabel = "x"', "must be snake_case"),
        ('id = "odd"', "missing required field `label`"),
        ('id = "odd"\nlabel = "x"', "__init__.py does not exist"),
        ('id = "odd"\nlabel = "x"\nsurprise = 1', "surprise"),
    ],
)
def test_a_broken_adapter_is_listed_with_its_problem(
    tmp_path: Path, toml: str, problem: str
) -> None:
    """P6: shown with a humanised label, never hidden, never an exception."""
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "adapter.toml").write_text(toml)
    (view,) = list_adapters(tmp_path)
    assert (view.type, view.state) == ("odd", "broken")
    assert problem in (view.problem or "")


def test_a_manifest_that_is_not_utf8_is_broken(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "adapter.toml").write_bytes(b'id = "\xff"')
    (view,) = list_adapters(tmp_path)
    assert (view.state, view.label) == ("broken", "Odd")


@pytest.mark.parametrize(("wanted", "guess"), [("proces", "process"), ("pro", "process")])
def test_an_unknown_type_suggests_the_nearest(wanted: str, guess: str) -> None:
    """P6: a run of an unknown type fails clearly."""
    with pytest.raises(AdapterNotFound) as caught:
        load_adapter(wanted)
    assert f"Did you mean {guess}?" in caught.value.message
    assert "process" in (caught.value.hint or "")


def test_a_far_type_is_refused_without_a_guess() -> None:
    with pytest.raises(AdapterNotFound, match=r"No adapter has the type 'zzzzzz'\.$"):
        load_adapter("zzzzzz")


def test_a_single_file_is_loaded_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "echo.py").write_text(SINGLE_FILE.format(label="Echo"))
    monkeypatch.chdir(tmp_path)
    adapter = load_adapter("./echo.py")
    assert (adapter.type, adapter.origin) == ("echo_agent", str(tmp_path / "echo.py"))


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """P4: reload really reloads everything."""
    file = tmp_path / "echo.py"
    file.write_text(SINGLE_FILE.format(label="First"))
    assert load_adapter(str(file)).manifest.label == "First"
    file.write_text(SINGLE_FILE.format(label="Second one"))
    assert load_adapter(str(file)).manifest.label == "Second one"


def test_two_folders_with_equal_names_do_not_disturb_each_other(tmp_path: Path) -> None:
    """P2: each has its own modules and its own manifest."""
    for place in ("one", "two"):
        folder_adapter(
            tmp_path / place / "agent",
            adapter__toml=f'id = "agent_{place}"\nlabel = "Agent"',
            own__py=SINGLE_FILE.replace("    manifest", "    other"),
        )
    one, two = (load_adapter(str(tmp_path / place / "agent")) for place in ("one", "two"))
    assert (one.type, two.type) == ("agent_one", "agent_two")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise ValueError('no luck')", "ValueError: no luck"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_code_that_fails_at_import_is_a_load_error(tmp_path: Path, code: str, problem: str) -> None:
    (tmp_path / "bad.py").write_text(f"\n{code}\n")
    with pytest.raises(AdapterLoadError, match=problem) as caught:
        load_adapter(str(tmp_path / "bad.py"))
    assert "bad.py, line 2" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("x = 1", r"no create_adapter\(\)"),
        ("def create_adapter(): return 7", "gave 7, which is no Adapter"),
        (
            "from binderclip.sdk import Adapter, Manifest\n"
            "class Idle(Adapter):\n    manifest = Manifest(id='idle', label='x')\n"
            "def create_adapter(): return Idle()",
            "Idle has neither execute nor command",
        ),
    ],
)
def test_an_adapter_that_breaks_the_contract_is_refused(
    tmp_path: Path, code: str, problem: str
) -> None:
    """P5: checked before it is used."""
    (tmp_path / "bad.py").write_text(code)
    with pytest.raises(ContractError, match=problem):
        load_adapter(str(tmp_path / "bad.py"))


def test_a_path_without_an_adapter_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(AdapterLoadError, match=r"has no adapter\.toml"):
        load_adapter(str(tmp_path))
    with pytest.raises(AdapterLoadError, match="does not exist"):
        load_adapter(str(tmp_path / "gone.py"))
