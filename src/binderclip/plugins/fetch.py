"""Making the directory of one version: fetched, looked at, unpacked, never yet activated.

Nothing of the package runs here; install scripts run only when a person asked for them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from binderclip.contract.errors import AdapterLoadError, ContractError
from binderclip.plugins.archives import check_archive, integrity_of, integrity_of_folder
from binderclip.plugins.described import Language
from binderclip.plugins.node import find_node, npm_command
from binderclip.plugins.sources import Source

ENTRY_POINTS = "binderclip.adapters"
TOOL_SECONDS = 600
Told = Callable[[str, str], None]
"""Called with a step and a sentence, for whoever watches an installation."""
_NOT_COPIED = shutil.ignore_patterns(
    ".git", "node_modules", "__pycache__", ".venv", "*.pyc", ".mypy_cache", ".pytest_cache"
)
_COMPLAINT = re.compile(r"(npm error|npm ERR!|ERROR:)(?: (?:code )?E?\d{3})?(.*)")
_NOISE = re.compile(r"A complete log|Note that you can|tarball, folder|code\b")
_NPM_FLAGS = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def silent(step: str, message: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A version on disk: what its host loads, and what was resolved."""

    language: Language
    package_name: str
    version: str
    source: str
    integrity: str
    interpreter: str | None = None


def fetch(source: Source, directory: Path, *, scripts: bool, told: Told) -> Fetched:
    """Fill the directory from the source."""
    directory.mkdir(mode=0o700, parents=True)
    if source.kind == "npm-folder":
        return _npm_folder(source, directory, scripts, told)
    if source.is_npm:
        return _npm_archive(source, directory, scripts, told)
    if source.kind in ("file", "python-folder"):
        return _python_files(source, directory, told)
    return _python_package(source, directory, scripts, told)


def _npm_archive(source: Source, directory: Path, scripts: bool, told: Told) -> Fetched:
    archive = source.path or _packed(source, directory, told)
    told("check", f"Looking into {archive.name}.")
    check_archive(archive)
    (directory / "package.json").write_text('{"name":"binderclip-plugin","private":true}\n')
    kept = directory / "package.tgz"
    if archive != kept:
        shutil.copyfile(archive, kept)
    told("install", "Installing it with its dependencies.")
    words = [
        "install",
        *_without_scripts(scripts),
        "--omit=dev",
        "--save-exact",
        *_NPM_FLAGS,
        "./package.tgz",
    ]
    _npm(words, directory)
    declared = json.loads((directory / "package.json").read_text("utf-8"))
    names = list(declared.get("dependencies") or {})
    package = directory / "node_modules" / names[0] if names else directory
    if not names or not (package / "package.json").is_file():
        raise AdapterLoadError(f"npm installed nothing for {source.spec}.")
    facts = _package_json(package)
    return Fetched("npm", facts["name"], facts["version"], str(package), integrity_of(kept))


def _packed(source: Source, directory: Path, told: Told) -> Path:
    told("download", f"Asking npm for {source.name}.")
    wanted = f"{source.name}@{source.version or 'latest'}"
    out = _npm(["pack", "--json", "--ignore-scripts", *_NPM_FLAGS, wanted], directory)
    packed: Any = json.loads(out[out.index("[") :] if "[" in out else out)
    (only,) = packed if isinstance(packed, list) else packed.values()
    archive = directory / Path(only["filename"]).name
    if not archive.is_file():
        (archive,) = directory.glob("*.tgz")
    told("download", f"{only['name']} {only['version']}, {only.get('unpackedSize', 0)} bytes.")
    return archive.rename(directory / "package.tgz")


def _npm_folder(source: Source, directory: Path, scripts: bool, told: Told) -> Fetched:
    assert source.path is not None
    package = directory / "package"
    told("copy", f"Copying {source.path}, so that running runs keep what they began with.")
    shutil.copytree(source.path, package, symlinks=True, ignore=_NOT_COPIED)
    facts = _package_json(package)
    modules = _modules_near(source.path)
    if modules is not None:
        (package / "node_modules").symlink_to(modules)
    elif facts.get("dependencies"):
        told("install", "Installing its dependencies.")
        _npm(["install", *_without_scripts(scripts), "--omit=dev", *_NPM_FLAGS], package)
    integrity = integrity_of_folder(package)
    return Fetched("npm", facts["name"], facts["version"], str(package), integrity)


def _without_scripts(scripts: bool) -> tuple[str, ...]:
    return () if scripts else ("--ignore-scripts",)


def _modules_near(path: Path) -> Path | None:
    """The folder's own modules; in a monorepo those of the folder above it."""
    for folder in (path, *path.parents[:3]):
        if (folder / "node_modules").is_dir():
            return folder / "node_modules"
    return None


def _package_json(package: Path) -> dict[str, Any]:
    try:
        facts = json.loads((package / "package.json").read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise ContractError(f"package.json cannot be read: {problem}") from problem
    if not isinstance(facts, dict) or not isinstance(facts.get("name"), str):
        raise ContractError("package.json has no name.")
    return {**facts, "version": str(facts.get("version") or "0.0.0")}


def _python_files(source: Source, directory: Path, told: Told) -> Fetched:
    assert source.path is not None
    told("copy", f"Copying {source.path}, so that running runs keep what they began with.")
    if source.kind == "file":
        place = directory / source.path.name
        shutil.copyfile(source.path, place)
        integrity, version = integrity_of(place), "1"
    else:
        place = directory / source.path.name
        shutil.copytree(source.path, place, ignore=_NOT_COPIED)
        integrity = integrity_of_folder(place)
        version = str(_toml(place / "adapter.toml").get("version") or "1")
    wanted = place / "requirements.txt"
    interpreter = None
    if source.kind == "python-folder" and wanted.is_file():
        interpreter = _own_python(directory, told)
        told("install", "Installing its requirements.")
        _pip(interpreter, ["install", "--only-binary=:all:", "-r", str(wanted)])
    return Fetched("python", source.name, version, str(place), integrity, interpreter)


def _python_package(source: Source, directory: Path, scripts: bool, told: Told) -> Fetched:
    interpreter = _own_python(directory, told)
    flags = [] if scripts or source.kind == "python-package" else ["--only-binary=:all:"]
    place, integrity = source.path, ""
    if source.kind == "pypi":
        told("download", f"Asking PyPI for {source.name}.")
        wanted = source.name + (f"=={source.version}" if source.version else "")
        downloads = directory / "downloads"
        _pip(interpreter, ["download", "--no-deps", *flags, "-d", str(downloads), wanted])
        (place,) = downloads.iterdir()
    assert place is not None
    if place.is_file():
        check_archive(place)
        integrity = integrity_of(place)
    told("install", "Installing it into an environment of its own.")
    _pip(interpreter, ["install", *flags, str(place)])
    name, version, module = _entry_point(directory)
    integrity = integrity or integrity_of_folder(place)
    return Fetched("python", name, version, module, integrity, interpreter)


def _own_python(directory: Path, told: Told) -> str:
    """An environment without pip; what binderclip itself has comes after its own packages."""
    told("environment", "Making a Python environment for it.")
    home = directory / "venv"
    venv.create(home, symlinks=True, with_pip=False)
    packages = _site_packages(home)
    host = sysconfig.get_path("purelib")
    # addsitedir also follows the .pth files of an editable installation.
    line = f"import site; site.addsitedir({host!r})\n"
    (packages / "zz_binderclip_host.pth").write_text(line)
    return str(home / "bin" / "python")


def _site_packages(home: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return home / "lib" / version / "site-packages"


def _entry_point(directory: Path) -> tuple[str, str, str]:
    """Name and version of the package that offers an adapter, and the module that makes it."""
    packages = str(_site_packages(directory / "venv"))
    for package in distributions(path=[packages]):
        for point in package.entry_points.select(group=ENTRY_POINTS):
            return package.metadata["Name"], package.version, point.module
    raise ContractError(
        f"The package has no entry point in the group {ENTRY_POINTS}.",
        hint=f'Its pyproject.toml needs [project.entry-points."{ENTRY_POINTS}"].',
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _pip(interpreter: str, words: Sequence[str]) -> str:
    quiet = ("--disable-pip-version-check", "--no-input", "--quiet")
    command = [sys.executable, "-P", "-m", "pip", "--python", interpreter, *words, *quiet]
    return _tool("pip", command, Path(interpreter).parents[2])


def _npm(words: Sequence[str], directory: Path) -> str:
    path = str(Path(find_node().path).parent) + os.pathsep + os.environ.get("PATH", "")
    return _tool("npm", [*npm_command(), *words], directory, {"PATH": path})


def _tool(
    name: str, command: Sequence[str], directory: Path, env: dict[str, str] | None = None
) -> str:
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command,
                cwd=directory,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=TOOL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise AdapterLoadError(f"{name} did not finish in {TOOL_SECONDS} s.") from None
        errors.seek(0)
        told = errors.read().decode("utf-8", "replace")
    if done.returncode:
        raise AdapterLoadError(f"{name} failed: {_worst(told)}", hint="Nothing was changed.")
    return done.stdout.decode("utf-8", "replace")


def _worst(told: str) -> str:
    """The lines of a tool's complaint that say what is wrong."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    errors = [found[2].strip() for line in lines if (found := _COMPLAINT.match(line))]
    said = [line for line in errors if line and not _NOISE.match(line)]
    return " ".join(dict.fromkeys(said[:4] or lines[-4:]))[:1000] or "it said nothing"
