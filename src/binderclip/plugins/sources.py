"""Where a plugin comes from: `npm:NAME[@VERSION]`, `pypi:NAME[==VERSION]`, or a path (P1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from binderclip.contract.errors import AdapterLoadError

SourceKind = Literal[
    "npm", "npm-archive", "npm-folder", "pypi", "wheel", "python-package", "python-folder", "file"
]
_NPM_NAME = re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*")
_NPM_VERSION = re.compile(r"[A-Za-z0-9.^~<>=|* +-]+")
_PYPI_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_FORMS = "npm:NAME[@VERSION], pypi:NAME[==VERSION], or a path"


@dataclass(frozen=True, slots=True)
class Source:
    """A place that a plugin can be made from, recognised but not yet trusted."""

    kind: SourceKind
    name: str
    """The package's name, or the name of the folder or file."""
    version: str | None = None
    path: Path | None = None

    @property
    def is_npm(self) -> bool:
        return self.kind.startswith("npm")

    @property
    def spec(self) -> str:
        if self.path is not None:
            return str(self.path)
        if self.kind == "npm":
            return f"npm:{self.name}" + (f"@{self.version}" if self.version else "")
        return f"pypi:{self.name}" + (f"=={self.version}" if self.version else "")


def read_spec(spec: str) -> Source:
    """What a person's words mean; nothing is fetched or loaded."""
    head, colon, rest = spec.strip().partition(":")
    if colon and head == "npm":
        return _npm(rest)
    if colon and head == "pypi":
        return _pypi(rest)
    path = Path(spec).expanduser().absolute()
    if not path.exists():
        raise AdapterLoadError(f"{spec} is no file or folder.", hint=f"Name {_FORMS}.")
    return _local(path)


def _npm(text: str) -> Source:
    at = text.find("@", 1)
    name, version = (text, None) if at < 0 else (text[:at], text[at + 1 :])
    if not _NPM_NAME.fullmatch(name) or (version and not _NPM_VERSION.fullmatch(version)):
        raise AdapterLoadError(f"{text!r} is no name of an npm package.", hint=f"Name {_FORMS}.")
    return Source("npm", name, version or None)


def _pypi(text: str) -> Source:
    name, _, version = text.partition("==")
    if not _PYPI_NAME.fullmatch(name) or (version and not re.fullmatch(r"[\w.+!-]+", version)):
        raise AdapterLoadError(f"{text!r} is no name of a PyPI package.", hint=f"Name {_FORMS}.")
    return Source("pypi", name, version or None)


def _local(path: Path) -> Source:
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".py":
        return Source("file", path.stem, path=path)
    if path.name.endswith((".tgz", ".tar.gz")):
        return Source("npm-archive", path.name.removesuffix(".tgz"), path=path)
    if path.suffix == ".whl":
        return Source("wheel", path.name.split("-")[0].replace("_", "-"), path=path)
    raise AdapterLoadError(f"{path} is no adapter.", hint="It ends in .py, .whl or .tgz.")


def _folder(path: Path) -> Source:
    if (path / "adapter.toml").is_file():
        return Source("python-folder", path.name, path=path)
    if (path / "package.json").is_file():
        return Source("npm-folder", path.name, path=path)
    if (path / "pyproject.toml").is_file():
        return Source("python-package", path.name, path=path)
    raise AdapterLoadError(
        f"{path} has neither adapter.toml nor package.json nor pyproject.toml.",
        hint="An adapter's folder has one of them at its top.",
    )
