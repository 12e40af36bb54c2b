"""Which adapters there are: every folder with an `adapter.toml`; no other place names one (A1).

Listing reads the manifests alone; an adapter's code is imported when it is loaded.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import msgspec

from binderclip.contract.errors import AdapterNotFound, ContractError
from binderclip.contract.manifest import AdapterView, Capabilities, humanised, read_manifest
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.loading import is_path, load_adapter_from

BUILT_IN = Path(__file__).resolve().parents[1] / "adapters"
PACKAGE = "binderclip.adapters"


def list_adapters(folder: Path = BUILT_IN) -> list[AdapterView]:
    """Every adapter by type; a broken one is listed with its problem."""
    return [_view(path.parent) for path in sorted(folder.glob("*/adapter.toml"))]


def load_adapter(type_or_path: str) -> Adapter:
    """A built-in adapter by its type, or a person's own by the path they named."""
    if is_path(type_or_path):
        return load_adapter_from(type_or_path)
    known = {view.type: view for view in list_adapters()}
    view = known.get(type_or_path)
    if view is None:
        raise _not_found(type_or_path, sorted(known))
    if view.problem:
        raise ContractError(f"The adapter {view.type} is broken: {view.problem}")
    return load_adapter_from(f"{PACKAGE}.{view.type}")


def _view(folder: Path) -> AdapterView:
    broken = AdapterView(
        type=folder.name,
        label=humanised(folder.name),
        source="builtin",
        version="",
        state="broken",
        disabled=False,
        models=(),
        parser="generic",
        capabilities=Capabilities(),
    )
    try:
        manifest = read_manifest(folder / "adapter.toml")
    except (ContractError, UnicodeDecodeError) as problem:
        return msgspec.structs.replace(broken, problem=str(problem))
    misfit = _misfit(folder, manifest.id)
    return msgspec.structs.replace(
        broken,
        label=manifest.label,
        version=manifest.version,
        state="broken" if misfit else "ready",
        models=manifest.models,
        parser="builtin" if (folder / "parser.py").is_file() else "generic",
        capabilities=manifest.capabilities,
        problem=misfit,
    )


def _misfit(folder: Path, id: str) -> str | None:
    if id != folder.name:
        return f"its folder is {folder.name}, but its adapter.toml says id = {id!r}"
    if not (folder / "__init__.py").is_file():
        return f"{folder / '__init__.py'} does not exist"
    return None


def _not_found(wanted: str, known: list[str]) -> AdapterNotFound:
    near = [name for name in known if wanted and name.startswith(wanted)]
    near = near or get_close_matches(wanted, known, n=1, cutoff=0.5)
    guess = f" Did you mean {near[0]}?" if near else ""
    return AdapterNotFound(
        f"No adapter has the type {wanted!r}.{guess}",
        hint=f"There are: {', '.join(known)}. A file of your own is named by its path.",
    )
