"""Which adapters there are: folders with an `adapter.toml`, and installed plugins (A1, P3).

Listing reads manifests and descriptions alone; code is loaded when an adapter is asked for.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import msgspec

from binderclip.contract.errors import AdapterError, AdapterNotFound, ContractError
from binderclip.contract.manifest import AdapterView, Capabilities, humanised, read_manifest
from binderclip.plugins.described import PLUGIN_FILE
from binderclip.plugins.records import PluginRecord, PluginStore
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.loading import is_path, load_adapter_from

BUILT_IN = Path(__file__).resolve().parents[1] / "adapters"
PACKAGE = "binderclip.adapters"


def list_adapters(folder: Path = BUILT_IN, store: PluginStore | None = None) -> list[AdapterView]:
    """Every adapter by type; a broken one is listed with its problem."""
    views = {path.parent.name: _view(path.parent) for path in sorted(folder.glob("*/adapter.toml"))}
    if store is None and folder != BUILT_IN:
        return list(views.values())
    store = store or PluginStore.from_env()
    off = store.settings.disabled_types
    for type in off:
        if type in views:
            views[type] = msgspec.structs.replace(views[type], disabled=True, state="disabled")
    for record in _installed(store):
        views[record.type] = _plugin_view(store, record, views.get(record.type))
    return [views[type] for type in sorted(views)]


def load_adapter(type_or_path: str, store: PluginStore | None = None) -> Adapter:
    """The adapter in force for a type, or a person's own by the path they named."""
    store = store or PluginStore.from_env()
    if is_path(type_or_path):
        kept = _kept_version(Path(type_or_path), store)
        return _plugin(kept) if kept else load_adapter_from(type_or_path)
    record = _record(store, type_or_path)
    if record is not None and not _stands_back(record):
        adapter = _plugin(store.directory_of(record))
        adapter.disabled = record.disabled
        return adapter
    return _built_in(type_or_path, store)


def built_in_types() -> frozenset[str]:
    return frozenset(path.parent.name for path in BUILT_IN.glob("*/adapter.toml"))


def _built_in(type: str, store: PluginStore) -> Adapter:
    if type not in built_in_types():
        raise _not_found(type, sorted({view.type for view in list_adapters(store=store)}))
    view = _view(BUILT_IN / type)
    if view.problem:
        raise ContractError(f"The adapter {view.type} is broken: {view.problem}")
    adapter = load_adapter_from(f"{PACKAGE}.{view.type}")
    adapter.disabled = type in store.settings.disabled_types
    return adapter


def _plugin(directory: Path) -> Adapter:
    # Only who loads a plugin pays for what it needs.
    from binderclip.plugins.adapter import PluginAdapter

    return PluginAdapter(directory)


def _kept_version(path: Path, store: PluginStore) -> Path | None:
    """The version that a run began with; once it is gone, the one of the same plugin in force."""
    if (path / PLUGIN_FILE).is_file():
        return path
    if path.exists() or path.parent.parent != store.folder:
        return None
    same = (each for each in _installed(store) if Path(each.directory).parts[0] == path.parent.name)
    return next((store.directory_of(each) for each in same if each.directory), None)


def _record(store: PluginStore, type: str) -> PluginRecord | None:
    try:
        return store.find(type)
    except AdapterError:
        # A damaged store must not keep the built-in adapters from working.
        if type in built_in_types():
            return None
        raise


def _stands_back(record: PluginRecord) -> bool:
    return record.override_paused and record.type in built_in_types()


def store_problem(store: PluginStore | None = None) -> str | None:
    """Why the plugins cannot be listed, if that is so."""
    try:
        (store or PluginStore.from_env()).records()
    except AdapterError as problem:
        return f"{problem.message} {problem.hint or ''}".strip()
    return None


def _installed(store: PluginStore) -> list[PluginRecord]:
    try:
        return store.records()
    except AdapterError:
        # Told by whoever asks for plugins; the built-in adapters work without them.
        return []


def _plugin_view(
    store: PluginStore, record: PluginRecord, built_in: AdapterView | None
) -> AdapterView:
    override = built_in is not None
    if built_in is not None and _stands_back(record):
        return msgspec.structs.replace(
            built_in,
            package_name=record.package_name,
            overridden_builtin=True,
            override_paused=True,
        )
    bare = AdapterView(
        type=record.type,
        label=humanised(record.type),
        source="external",
        version=record.version,
        state="missing",
        disabled=record.disabled,
        models=(),
        parser="generic",
        capabilities=Capabilities(),
        package_name=record.package_name,
        overridden_builtin=override or None,
        override_paused=False if override else None,
    )
    try:
        told = store.description_of(record)
    except AdapterError as problem:
        return msgspec.structs.replace(bare, problem=problem.message)
    parser = "ui-parser" if told.parser.state == "ready" else "generic"
    return msgspec.structs.replace(
        bare,
        label=told.label,
        state="disabled" if record.disabled else "ready",
        models=told.models,
        parser="python" if told.own_parser else parser,
        capabilities=told.capabilities,
    )


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
