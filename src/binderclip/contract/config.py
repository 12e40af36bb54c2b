"""How an adapter's configuration is described to forms, the CLI and the docs (F3)."""

from __future__ import annotations

from typing import Any, Literal

from binderclip.contract.wire import Wire

FieldType = Literal[
    "text", "textarea", "number", "toggle", "select", "combobox", "secret", "list", "keyvalue"
]


class FieldOption(Wire, frozen=True, kw_only=True):
    value: str
    label: str


class ConfigField(Wire, frozen=True, kw_only=True):
    key: str
    label: str
    type: FieldType
    options: tuple[FieldOption, ...] = ()
    default: Any = None
    hint: str | None = None
    required: bool = False
    group: str | None = None
    dangerous: bool = False


class ConfigSchema(Wire, frozen=True, kw_only=True):
    fields: tuple[ConfigField, ...]
    json_schema: dict[str, Any]
