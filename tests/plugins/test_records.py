"""The store of plugins: Paperclip's file, written whole, never silently emptied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterError, AdapterNotFound
from binderclip.plugins.records import PluginRecord, PluginStore
from binderclip.plugins.registry import list_adapters, load_adapter, store_problem


def record(type: str, **fields: object) -> PluginRecord:
    return PluginRecord(package_name=f"{type}-package", type=type, **fields)  # type: ignore[arg-type]


def test_the_file_has_paperclips_shape(tmp_path: Path) -> None:
    """P3: a list of records with packageName, localPath, version, type, installedAt, disabled."""
    store = PluginStore(tmp_path)
    store.put(record("b_agent", version="2", installed_at="then", local_path="/x", disabled=True))
    store.put(record("a_agent"))
    first, second = json.loads((tmp_path / "adapter-plugins.json").read_bytes())
    assert first["type"] == "a_agent"
    assert second == second | {
        "packageName": "b_agent-package",
        "type": "b_agent",
        "version": "2",
        "installedAt": "then",
        "localPath": "/x",
        "disabled": True,
    }


def test_a_record_replaces_the_one_of_its_type(tmp_path: Path) -> None:
    store = PluginStore(tmp_path)
    store.put(record("agent", version="1"))
    store.put(record("agent", version="2"))
    assert [each.version for each in store.records()] == ["2"]
    store.drop("agent")
    assert store.records() == []


def test_a_damaged_file_is_reported_and_kept(tmp_path: Path) -> None:
    """P3: a damaged file is reported, kept aside, never silently emptied."""
    store = PluginStore(tmp_path)
    store.file.write_text('[{"packageName": ')
    with pytest.raises(AdapterError, match="is damaged"):
        store.records()
    assert "claude_local" in {view.type for view in list_adapters(store=store)}
    assert store.file.read_text() == '[{"packageName": '
    store.put(record("agent"))
    (aside,) = tmp_path.glob("adapter-plugins.json.damaged-*")
    assert aside.read_text() == '[{"packageName": '
    assert [each.type for each in store.records()] == ["agent"]


def test_a_damaged_file_leaves_the_built_in_adapters_working(tmp_path: Path) -> None:
    """P3: only what the file alone knows is missing, and the reason is told."""
    store = PluginStore(tmp_path)
    store.file.write_text("{")
    assert load_adapter("process", store=store).type == "process"
    with pytest.raises(AdapterError, match="is damaged"):
        load_adapter("some_plugin", store=store)
    assert "is damaged" in (store_problem(store) or "")


def test_a_file_that_paperclip_wrote_is_read(tmp_path: Path) -> None:
    store = PluginStore(tmp_path)
    given = {"packageName": "x", "type": "x_local", "installedAt": "2026-01-01T00:00:00.000Z"}
    store.file.write_text(json.dumps([given]))
    (only,) = store.records()
    assert (only.package_name, only.type, only.disabled) == ("x", "x_local", False)


def test_a_plugin_that_is_gone_is_listed_as_missing(tmp_path: Path) -> None:
    """P6: shown with a humanised label, never hidden."""
    store = PluginStore(tmp_path)
    store.put(record("my_k8s_agent", directory="gone/1"))
    view = next(view for view in list_adapters(store=store) if view.type == "my_k8s_agent")
    assert (view.label, view.state, view.source) == ("My K8s Agent", "missing", "external")
    assert "cannot be read" in (view.problem or "")


def test_an_unknown_plugin_names_the_installed_ones(tmp_path: Path) -> None:
    store = PluginStore(tmp_path)
    store.put(record("agent"))
    with pytest.raises(AdapterNotFound) as caught:
        store.get("other")
    assert "agent" in (caught.value.hint or "")


def test_a_new_data_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    """D8: also when a plugin is the first thing in it."""
    store = PluginStore(tmp_path / "above" / "home")
    with store.changing():
        modes = [path.stat().st_mode & 0o777 for path in (store.home, store.folder)]
    assert modes == [0o700, 0o700]
