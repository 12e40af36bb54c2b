"""Imports point downwards only; the folder tree is the architecture, and this keeps it true."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "binderclip"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE

LAYERS = {
    "contract": 0,
    "supervisor": 0,
    "sdk": 1,
    "adapters": 2,
    "plugins": 2,
    "store": 2,
    "workspaces": 2,
    "runs": 3,
    "jobs": 3,
    "server": 4,
    "cli": 4,
}
THIRD_PARTY = {
    "contract": {"msgspec"},
    "supervisor": set[str](),
    "sdk": {"msgspec"},
}


@dataclass(frozen=True)
class Import:
    """One imported module name and the line that imports it."""

    path: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: imports {self.module}"


def package_of(path: Path, source: Path) -> list[str]:
    """The dotted package that relative imports of this file start from."""
    return [PACKAGE, *path.relative_to(source).parent.parts]


def from_targets(node: ast.ImportFrom, package: list[str]) -> list[str]:
    """`from x import y` may name a submodule, so inside our package y counts as well."""
    above = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    if base != PACKAGE:
        return [base]
    return [f"{base}.{alias.name}" for alias in node.names]


def dynamic_target(node: ast.Call) -> str | None:
    """The literal module name of `import_module("x")` or `__import__("x")`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else None
    name = node.func.id if isinstance(node.func, ast.Name) else name
    if name not in {"import_module", "__import__"} or not node.args:
        return None
    first = node.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def targets(node: ast.AST, package: list[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return from_targets(node, package)
    if isinstance(node, ast.Call):
        target = dynamic_target(node)
        if target is not None and target.startswith("."):
            target = ".".join([*package, target.lstrip(".")])
        return [] if target is None else [target]
    return []


def imports_of(path: Path, source: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text("utf-8"), str(path))
    package = package_of(path, source)
    for node in ast.walk(tree):
        for module in targets(node, package):
            yield Import(path, getattr(node, "lineno", 0), module)


def own_rule(folder: str, inside: list[str], target: list[str]) -> str | None:
    """The rule that an import of our own package breaks, or None."""
    if len(target) < 2:
        return None if folder not in LAYERS else f"{folder} may not import the package's root"
    other = target[1]
    if other == folder:
        return adapter_folder_rule(inside, target) if folder == "adapters" else None
    if other.startswith("__") or folder not in LAYERS:
        return None
    if other not in LAYERS:
        return f"{other} is not a layer; name it in LAYERS"
    if folder == "adapters" and other != "sdk":
        return "an adapter imports binderclip.sdk and its own folder only"
    if LAYERS[other] < LAYERS[folder]:
        return None
    direction = "upwards" if LAYERS[other] > LAYERS[folder] else "sideways"
    return f"{direction}: {folder} is L{LAYERS[folder]}, {other} is L{LAYERS[other]}"


def adapter_folder_rule(inside: list[str], target: list[str]) -> str | None:
    if len(inside) > 1 and len(target) > 2 and inside[1] == target[2]:
        return None
    return "an adapter does not import another adapter"


def outside_rule(folder: str, top: str) -> str | None:
    """The rule that an import from outside the package breaks, or None."""
    if folder not in THIRD_PARTY or top in sys.stdlib_module_names or top in THIRD_PARTY[folder]:
        return None
    allowed = ", ".join(["the standard library", *sorted(THIRD_PARTY[folder])])
    return f"{folder} needs {allowed} only"


def broken_rule(found: Import, source: Path) -> str | None:
    inside = list(found.path.relative_to(source).parts)
    folder = inside[0].removesuffix(".py")
    target = found.module.split(".")
    if target[0] == PACKAGE:
        return own_rule(folder, inside, target)
    return outside_rule(folder, target[0])


def violations(source: Path) -> list[str]:
    found = [item for path in sorted(source.rglob("*.py")) for item in imports_of(path, source)]
    rules = [(item, broken_rule(item, source)) for item in found]
    return [f"{item} ({rule})" for item, rule in rules if rule]


def plant(source: Path, name: str, code: str) -> Path:
    path = source / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, "utf-8")
    return path


def test_imports_point_downwards_only() -> None:
    """A1: adapters see the SDK alone; every other folder sees only what lies below it."""
    assert violations(SOURCE) == []


def test_every_folder_with_code_has_a_layer() -> None:
    folders = {path.relative_to(SOURCE).parts[0] for path in SOURCE.glob("*/**/*.py")}
    assert folders - set(LAYERS) <= {"skills"}


@pytest.mark.parametrize(
    ("name", "code", "line", "rule"),
    [
        ("runs/wake.py", "import binderclip.server.app", 1, "upwards: runs is L3, server is L4"),
        ("store/rows.py", "from binderclip.plugins import find", 1, "sideways: store is L2"),
        ("runs/tail.py", "from binderclip import cli", 1, "upwards: runs is L3, cli is L4"),
        ("jobs/a.py", "\n\ndef f():\n    from ..runs import wake", 4, "sideways: jobs is L3"),
        (
            "sdk/load.py",
            "import importlib\nimportlib.import_module('binderclip.store')",
            2,
            "upwards: sdk is L1, store is L2",
        ),
        ("contract/x.py", "import sqlalchemy", 1, "contract needs the standard library, msgspec"),
        ("contract/y.py", "import binderclip.supervisor", 1, "sideways: contract is L0"),
        ("supervisor/x.py", "import msgspec", 1, "supervisor needs the standard library only"),
        ("adapters/a/x.py", "import binderclip.contract.entry", 1, "an adapter imports"),
        ("adapters/a/y.py", "from ..b import parser", 1, "does not import another adapter"),
        ("adapters/a/z.py", "from binderclip.adapters import b", 1, "does not import another"),
        ("runs/odd.py", "import binderclip.extras", 1, "extras is not a layer"),
    ],
)
def test_a_planted_violation_is_named_with_its_line_and_rule(
    tmp_path: Path, name: str, code: str, line: int, rule: str
) -> None:
    path = plant(tmp_path, name, code)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{path}:{line}: ")
    assert rule in found


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (
            "adapters/a/x.py",
            "from binderclip.sdk import CliAdapter\nfrom . import config\nimport httpx",
        ),
        ("adapters/a/deep/y.py", "from ..config import Config"),
        ("sdk/env.py", "from binderclip.contract.errors import ConfigError\nimport msgspec, os"),
        ("supervisor/main.py", "import os, fcntl"),
        ("server/app.py", "from binderclip import __version__\nfrom binderclip.runs import wake"),
        ("__main__.py", "from binderclip.cli import main"),
    ],
)
def test_an_allowed_import_is_left_alone(tmp_path: Path, name: str, code: str) -> None:
    plant(tmp_path, name, code)
    assert violations(tmp_path) == []
