"""The supervisor runs on Python 3.9 with nothing but the standard library, and starts fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from binderclip import supervisor

FOLDER = Path(supervisor.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_every_module_parses_as_python_3_9(module: str) -> None:
    """D1: remote hosts get the same package."""
    source = (FOLDER / f"{module}.py").read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    imports = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    annotated = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.returns]
    assert imports or not annotated


def test_a_cold_start_imports_nothing_heavy() -> None:
    """D1: a supervisor starts in milliseconds."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import binderclip.supervisor.main\n"
        "print(*sorted(sys.modules))\n"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(FOLDER.parents[1])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.split())
    heavy = {"asyncio", "dataclasses", "inspect", "logging", "pathlib", "subprocess", "typing"}
    assert loaded & heavy == set()
    strangers = {n.partition(".")[0] for n in loaded} - set(sys.stdlib_module_names)
    assert strangers <= {"__main__", "binderclip"}
