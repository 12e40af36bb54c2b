"""A plugin's described fields become a config class like any other (F1, F3)."""

from __future__ import annotations

from typing import Any

import pytest

from binderclip.contract.errors import ConfigError
from binderclip.plugins.form import config_class, nested, read_foreign_fields, shown_schema
from binderclip.sdk.config import build_config, dangerous_fields, read_config, secret_values

FIELDS: list[dict[str, Any]] = [
    {"key": "model", "label": "Model", "type": "combobox", "options": [{"value": "a"}, "b"]},
    {"key": "mode", "label": "Mode", "type": "select", "options": ["x", "y"], "default": "x"},
    {"key": "turns", "label": "Turns", "type": "number", "default": 3, "hint": "How many."},
    {"key": "apiKey", "label": "Key", "type": "secret", "group": "Access"},
    {"key": "dangerouslySkip", "label": "Skip", "type": "toggle"},
    {"key": "timeoutSec", "label": "Timeout", "type": "number", "default": 1800},
    {"key": "resources.limits.cpu", "label": "CPU", "type": "number"},
    {"key": "odd", "label": "Odd", "type": "hologram"},
    {"label": "no key"},
    "junk",  # type: ignore[list-item]
]
SCHEMA = read_foreign_fields({"fields": FIELDS})
CONFIG = config_class("sample", SCHEMA, foreign=True)


def test_paperclips_fields_are_read_and_odd_ones_become_text() -> None:
    assert SCHEMA is not None
    told = {field.key: field for field in SCHEMA.fields}
    assert len(told) == 8
    assert (told["odd"].type, told["apiKey"].group) == ("text", "Access")
    assert [option.value for option in told["model"].options] == ["a", "b"]
    assert told["dangerouslySkip"].dangerous
    assert read_foreign_fields({"fields": "no"}) is read_foreign_fields(None) is None


def test_values_are_checked_by_their_type() -> None:
    """F1: bad config names field and problem."""
    config: Any = read_config(CONFIG, {"mode": "y", "turns": 5, "apiKey": "hunter2hunter2"})
    assert (config.mode, config.turns) == ("y", 5)
    assert secret_values(config) == ["hunter2hunter2"]
    for wrong in ({"mode": "z"}, {"turns": "many"}, {"timeoutSec": -1}):
        with pytest.raises(ConfigError) as caught:
            read_config(CONFIG, wrong)
        assert {name.split(".")[0] for name in caught.value.fields} == set(wrong)


def test_defaults_are_the_plugins() -> None:
    config = read_config(CONFIG, {})
    assert config.timeout_sec == 1800
    assert dangerous_fields(config) == []
    assert dangerous_fields(read_config(CONFIG, {"dangerouslySkip": True})) == ["dangerouslySkip"]


def test_unknown_stored_keys_are_kept() -> None:
    """F2: they may have an effect that no schema tells."""
    assert build_config(CONFIG, {"hermesCommand": "x"})["hermesCommand"] == "x"


def test_the_form_shows_the_plugins_fields_first_and_each_once() -> None:
    keys = [field.key for field in shown_schema(CONFIG, SCHEMA).fields]
    assert keys[:2] == ["model", "mode"]
    assert len(keys) == len(set(keys))
    assert {"cwd", "env", "graceSec"} <= set(keys)


def test_dotted_keys_nest() -> None:
    """F3."""
    flat = {"a.b.c": 1, "a.b.d": 2, "e": 3, "a": {"b": {"x": 0}, "y": 1}}
    assert nested(flat) == {"a": {"b": {"c": 1, "d": 2, "x": 0}, "y": 1}, "e": 3}
    assert nested({"a": {"y": 1}, "a.b.c": 1}) == {"a": {"y": 1, "b": {"c": 1}}}
