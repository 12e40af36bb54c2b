"""The newest Node that can be found runs npm plugins; an old one is refused with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.contract.errors import CommandNotFound
from binderclip.plugins.node import find_node, npm_command


def node(folder: Path, version: str) -> Path:
    folder.mkdir()
    (folder / "node").write_text(f"#!/bin/sh\necho {version}\n")
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
