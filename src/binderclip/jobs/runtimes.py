"""Names of runtimes: `claude-code` for `claude_local`, and the type where no other is told (N1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binderclip.contract.errors import BinderclipError
from binderclip.contract.manifest import Manifest, read_manifest
from binderclip.contract.run import RunOrder
from binderclip.plugins.registry import BUILT_IN, list_adapters, load_adapter
from binderclip.sdk.adapter import Adapter


def runtime_of(order: RunOrder, meta: Mapping[str, Any]) -> str:
    """The runtime of a run: as noted when it began, else what its adapter's manifest says."""
    noted = meta.get("runtime")
    if isinstance(noted, str) and noted:
        return noted
    manifest = _manifest(_folder(order))
    return (manifest.runtime if manifest else "") or order.adapter_type


def is_structured(order: RunOrder) -> bool:
    """Whether the runtime's output has a structure; a plain one's text is shown as it is."""
    manifest = _manifest(_folder(order))
    return manifest.structured if manifest else True


def adapter_of(runtime: str) -> Adapter | None:
    """The adapter that reads this runtime's output."""
    for view in list_adapters():
        manifest = _manifest(BUILT_IN / view.type)
        if runtime == view.type or (manifest and runtime == manifest.runtime):
            return load_adapter(view.type)
    return None


def _folder(order: RunOrder) -> Path:
    return Path(order.adapter_path) if order.adapter_path else BUILT_IN / order.adapter_type


def _manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder / "adapter.toml")
    except BinderclipError:
        return None
