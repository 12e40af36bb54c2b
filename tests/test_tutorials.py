"""Every block of the tutorial on adapters is run, in the order in which it is read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "tutorial" / "your-adapter.md").read_text("utf-8")
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.M | re.S)
TYPESCRIPT = ROOT / ".cache" / "typescript"
TSC = TYPESCRIPT / "node_modules" / ".bin"


def blocks() -> list[tuple[str, str]]:
    found = []
    for indent, language, text in BLOCK.findall(PAGE):
        lines = [line.removeprefix(indent) for line in text.splitlines()]
        found.append((language, "\n".join(lines) + "\n"))
    return found


@pytest.fixture(scope="session")
def compiler() -> Path:
    """The TypeScript compiler, installed once."""
    if not (TSC / "tsc").exists():
        TYPESCRIPT.mkdir(parents=True, exist_ok=True)
        (TYPESCRIPT / "package.json").write_text('{"private": true}')
        words = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "typescript@5.9.3",
        ]
        subprocess.run(words, cwd=TYPESCRIPT, check=True, capture_output=True)
    return TSC


def test_every_block_of_the_adapter_tutorial_works(tmp_path: Path, compiler: Path) -> None:
    """Files are written under the name in their first line; commands end with 0."""
    scripts = str(Path(sys.executable).parent)
    env = {**os.environ, "BINDERCLIP_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    env["PATH"] = os.pathsep.join([scripts, str(compiler), os.environ["PATH"]])
    work = tmp_path / "work"
    work.mkdir()
    said = ""
    for language, text in blocks():
        if language == "sh":
            script = "set -eu\n" + text
            done = subprocess.run(
                ["sh", "-c", script], cwd=work, env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            said += done.stdout
        else:
            first = text.split("\n", 1)[0]
            (work / first.lstrip("#/ ")).write_text(text)
    assert "POLLY WANTS A CRACKER" in said
    assert "POLLY AGAIN" in said
    assert "Done: say something" in said
    assert "2 lines gave 2 entries" in said


def test_the_tutorial_has_all_its_kinds_of_blocks() -> None:
    assert {language for language, _ in blocks()} == {"python", "sh", "ts"}
    assert len(blocks()) >= 9
