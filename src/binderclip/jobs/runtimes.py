"""Names of runtimes: `claude-code` for `claude_local`, and the type where no other is told (N1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binderclip.contract.errors import BinderclipError
from binderclip.contract.manifest import AdapterView, Manifest, read_manifest
from binderclip.contract.run import RunOrder
from binderclip.plugins.described import PLUGIN_FILE
from binderclip.plugins.registry import BUILT_IN, list_adapters, load_adapter
from binderclip.sdk.adapter import Adapter


def runtime_of(order: RunOrder, meta: Mapping[str, Any]) -> str:
    """The runtime of a run: as noted when it began, else what its adapter says."""
    noted = meta.get("runtime") or order.runtime_name
    if isinstance(noted, str) and noted:
        return noted
    manifest = _manifest_of(order)
    return (manifest.runtime if manifest else "") or order.adapter_type


def is_structured(order: RunOrder) -> bool:
    """Whether the runtime's output has a structure; a plain one's text is shown as it is."""
    manifest = _manifest_of(order)
    return manifest.structured if manifest else True


def adapter_of(runtime: str) -> Adapter | None:
    """The adapter that reads this runtime's output, a plugin where no built-in one does."""
    views = {view.type: view for view in list_adapters()}
    if runtime in views:
        return load_adapter(runtime)
    for view in sorted(views.values(), key=lambda view: view.source == "external"):
        manifest = _manifest_in_force(view)
        if manifest is not None and manifest.runtime == runtime:
            return load_adapter(view.type)
    return None


def _manifest_of(order: RunOrder) -> Manifest | None:
    if order.adapter_path is None:
        return _read(BUILT_IN / order.adapter_type)
    path = Path(order.adapter_path)
    # A version that is gone is stood in for by the one in force; people's own code is not run.
    is_plugin = (path / PLUGIN_FILE).is_file() or not path.exists()
    return _loaded(str(path)) if is_plugin else _read(path)


def _manifest_in_force(view: AdapterView) -> Manifest | None:
    return _loaded(view.type) if view.source == "external" else _read(BUILT_IN / view.type)


def _loaded(type_or_path: str) -> Manifest | None:
    """A plugin's manifest, made of what it said of itself when it was installed."""
    try:
        return load_adapter(type_or_path).manifest
    except BinderclipError:
        return None


def _read(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder / "adapter.toml")
    except BinderclipError:
        return None
