"""Installs the pinned agent CLIs from npm into a cache, once; what is there needs no network.

A directory appears under its final name only when its program has answered `--version`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "clis"
NODE = "node"
TRIES = 2
SECONDS = 500


@dataclass(frozen=True, slots=True)
class Cli:
    """One program of `clis.toml`."""

    name: str
    package: str
    version: str

    def folder(self, cache: Path = CACHE) -> Path:
        return cache / f"{self.name}-{self.version}"

    def programs(self, cache: Path = CACHE) -> Path:
        """The directory that goes into PATH."""
        return self.folder(cache) / "node_modules" / ".bin"

    def is_there(self, cache: Path = CACHE) -> bool:
        return (self.programs(cache) / self.name).exists()


def known() -> dict[str, Cli]:
    """Every program by its name, Node among them."""
    table = tomllib.loads((HERE / "clis.toml").read_text("utf-8"))
    return {name: Cli(name, row["package"], row["version"]) for name, row in table.items()}


def search_path(name: str, cache: Path = CACHE) -> str:
    """PATH for a CLI: itself and Node first, then the machine's own programs."""
    clis = known()
    ours = [clis[each].programs(cache) for each in (name, NODE)]
    return os.pathsep.join([*map(str, ours), "/usr/local/bin", "/usr/bin", "/bin"])


def install(cli: Cli, cache: Path) -> None:
    """Install into a directory beside the final one, try the program, rename."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{cli.name}-", dir=cache) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        # Some of these programs are put in place by their install script, which npm may hold back.
        allowed = {"private": True, "allowScripts": {cli.package: True}}
        (made / "package.json").write_text(json.dumps(allowed))
        _npm(cli, made, cache)
        _run([str(made / "node_modules" / ".bin" / cli.name), "--version"], cli, cache)
        shutil.rmtree(cli.folder(cache), ignore_errors=True)
        made.rename(cli.folder(cache))


def _npm(cli: Cli, folder: Path, cache: Path) -> None:
    words = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--save-exact"]
    for left in reversed(range(TRIES)):
        try:
            _run([*words, f"{cli.package}@{cli.version}"], cli, cache, folder)
            return
        except RuntimeError:
            if not left:
                raise


def _run(words: list[str], cli: Cli, cache: Path, cwd: Path | None = None) -> None:
    node = known()[NODE].programs(cache)
    env = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise RuntimeError(f"{cli.name}: {words[0]}: {problem}") from problem
    if done.returncode:
        told = done.stdout.decode("utf-8", "replace")[-2000:]
        raise RuntimeError(f"{cli.name}: {' '.join(words)} exited {done.returncode}\n{told}")


def main(names: list[str]) -> None:
    """Install what is missing of the named programs, or of all."""
    cache = Path(os.environ.get("BINDERCLIP_CLIS") or CACHE)
    clis = known()
    if strangers := set(names) - set(clis):
        sys.exit(f"clis: not in clis.toml: {', '.join(sorted(strangers))}")
    wanted = [clis[name] for name in names or clis if not clis[name].is_there(cache)]
    try:
        if wanted and not clis[NODE].is_there(cache):
            _told(clis[NODE], cache)
        rest = [cli for cli in wanted if cli.name != NODE]
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(lambda cli: _told(cli, cache), rest))
    except RuntimeError as problem:
        sys.exit(f"clis: {problem}")


def _told(cli: Cli, cache: Path) -> None:
    sys.stdout.write(f"clis: installing {cli.package}@{cli.version}\n")
    sys.stdout.flush()
    install(cli, cache)


if __name__ == "__main__":
    main(sys.argv[1:])
