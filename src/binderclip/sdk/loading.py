"""Getting an adapter from a module's name or a path; the same way for the driver and the host.

Code loaded from a path gets a module name of its own, so that two adapters never share one.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from binderclip.contract.errors import AdapterLoadError, BinderclipError, ContractError
from binderclip.contract.manifest import TYPE_NAME
from binderclip.sdk.adapter import Adapter, CliAdapter


def is_path(source: str) -> bool:
    """Whether a source names a file or folder rather than a module or type."""
    return "/" in source or source.endswith(".py") or source in (".", "..")


def load_adapter_from(source: str) -> Adapter:
    """The adapter that a module, a `.py` file or a folder with `adapter.toml` makes."""
    origin = str(Path(source).expanduser().absolute()) if is_path(source) else source
    try:
        module = _module_at(Path(origin)) if is_path(source) else importlib.import_module(origin)
        make = getattr(module, "create_adapter", None)
        if not callable(make):
            raise ContractError(f"{origin} has no create_adapter(): define one that returns it.")
        adapter = _checked(make(), origin)
    except BinderclipError:
        raise
    except (Exception, SystemExit) as problem:
        raise AdapterLoadError(
            f"{origin} cannot be loaded: {_told(problem)}", hint=_place(problem)
        ) from problem
    adapter.origin = origin
    return adapter


def _module_at(path: Path) -> ModuleType:
    file = path / "__init__.py" if path.is_dir() else path
    if path.is_dir() and not (path / "adapter.toml").is_file():
        raise AdapterLoadError(f"{path} has no adapter.toml, so it is no adapter's folder.")
    if not file.is_file():
        raise AdapterLoadError(f"{file} does not exist.", hint="Name a .py file or a folder.")
    from hashlib import sha256

    name = f"adapter_{sha256(str(file).encode()).hexdigest()[:16]}"
    _forget(name)
    within = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=within)
    if spec is None or spec.loader is None:
        raise AdapterLoadError(f"{file} is no Python file.", hint="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _forget(name: str) -> None:
    """Drop a module and its parts, so that a changed file is read again."""
    for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[loaded]


def _checked(made: object, origin: str) -> Adapter:
    if not isinstance(made, Adapter):
        raise ContractError(f"{origin}: create_adapter() gave {made!r}, which is no Adapter.")
    if not TYPE_NAME.fullmatch(made.manifest.id):
        raise ContractError(f"{origin}: id {made.manifest.id!r} must be snake_case.")
    kind = type(made)
    runs = kind.execute not in (Adapter.execute, CliAdapter.execute)
    if not runs and getattr(kind, "command", CliAdapter.command) is CliAdapter.command:
        raise ContractError(f"{origin}: {kind.__name__} has neither execute nor command.")
    return made


def _told(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"


def _place(problem: BaseException) -> str | None:
    """The last line of the traceback that lies outside the import machinery."""
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if not frame.filename.startswith("<frozen")
    ]
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"See {problem.filename}, line {problem.lineno}."
    return f"See {frames[-1].filename}, line {frames[-1].lineno}." if frames else None
