"""A plugin's described fields as a config class, so that every surface treats them alike (F1)."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from typing import Any, Literal

from binderclip.contract.config import ConfigField, ConfigSchema, FieldOption
from binderclip.sdk.config import AdapterConfig, CliConfig, describe_config
from binderclip.sdk.fields import Field, Secret, options_of

_TYPES: dict[str, Any] = {
    "number": int | float | None,
    "toggle": bool,
    "secret": Secret | None,
    "list": list[Any],
    "keyvalue": dict[str, Any],
}
_EMPTY: dict[str, Any] = {"toggle": False, "list": [], "keyvalue": {}}
_KINDS = frozenset(
    ("text", "textarea", "number", "toggle", "select", "combobox", "secret", "list", "keyvalue")
)
_LIMITS = {"timeoutSec": "timeout_sec", "graceSec": "grace_sec"}


class ForeignConfig(CliConfig):
    """The usual fields of npm adapters; they read keys that no schema of theirs tells."""

    open_keys = True


def config_class(type: str, schema: ConfigSchema | None, *, foreign: bool) -> type[AdapterConfig]:
    """A class with the usual fields and those that the plugin described."""
    base = ForeignConfig if foreign else AdapterConfig
    usual = options_of(base)
    fields: dict[str, Any] = {}
    for field in schema.fields if schema else ():
        head = field.key.partition(".")[0]
        if field.key in _LIMITS and _is_limit(field.default):
            fields[_LIMITS[field.key]] = (float, Field(field.default, ge=0, description=field.hint))
        elif head not in usual and head != field.key:
            fields[_name(head)] = (dict[str, Any], Field(default_factory=dict, alias=head))
        elif field.key not in usual:
            fields[_name(field.key)] = (_annotation(field), _declared(field))
    types = {name: annotation for name, (annotation, _) in fields.items()}
    values = {name: declared for name, (_, declared) in fields.items()}
    return builtins.type(f"Config_{type}", (base,), {**values, "__annotations__": types})


def shown_schema(kind: type[AdapterConfig], schema: ConfigSchema | None) -> ConfigSchema:
    """The form: the plugin's own fields as it told them, then the usual ones."""
    usual = describe_config(kind)
    own = schema.fields if schema else ()
    told = {field.key for field in own} | {field.key.partition(".")[0] for field in own}
    rest = tuple(field for field in usual.fields if field.key not in told)
    return ConfigSchema(fields=(*own, *rest), json_schema=usual.json_schema)


def read_foreign_fields(answer: Any) -> ConfigSchema | None:
    """Paperclip's `{fields: […]}`; a field without a key is left out, an odd one becomes text."""
    listed = answer.get("fields") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        return None
    fields = [_field(each) for each in listed if isinstance(each, Mapping) and each.get("key")]
    return ConfigSchema(fields=tuple(fields), json_schema={})


def nested(config: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as the objects that adapters expect (F3)."""
    made: dict[str, Any] = {}
    for key, value in config.items():
        for step in reversed(key.split(".")):
            value = {step: value}
        made = _merged(made, value)
    return made


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(one)
    for key, value in other.items():
        there = made.get(key)
        both = isinstance(there, Mapping) and isinstance(value, Mapping)
        made[key] = _merged(there, value) if both else value  # type: ignore[arg-type]
    return made


def _field(each: Mapping[str, Any]) -> ConfigField:
    kind = each.get("type")
    options = each.get("options")
    return ConfigField(
        key=str(each["key"]),
        label=str(each.get("label") or each["key"]),
        type=kind if kind in _KINDS else "text",
        options=tuple(_option(one) for one in options) if isinstance(options, list) else (),
        default=each.get("default"),
        hint=str(each["hint"]) if each.get("hint") else None,
        required=bool(each.get("required")),
        group=str(each["group"]) if each.get("group") else None,
        dangerous="dangerous" in str(each["key"]).lower(),
    )


def _option(one: Any) -> FieldOption:
    if isinstance(one, Mapping):
        value = str(one.get("value", ""))
        return FieldOption(value=value, label=str(one.get("label") or value))
    return FieldOption(value=str(one), label=str(one))


def _annotation(field: ConfigField) -> Any:
    if field.type == "select" and field.options:
        values = tuple(option.value for option in field.options)
        return Literal[values] if field.required else Literal[values] | None
    return _TYPES.get(field.type, str | None)


def _declared(field: ConfigField) -> Any:
    words: dict[str, Any] = {
        "alias": field.key,
        "title": field.label,
        "description": field.hint,
        "dangerous": field.dangerous,
        "group": field.group,
        "textarea": field.type == "textarea",
    }
    return Field(**words) if field.required else Field(_default(field), **words)


def _default(field: ConfigField) -> Any:
    if field.default is not None and field.type != "secret":
        return field.default
    return _EMPTY.get(field.type)


def _is_limit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _name(key: str) -> str:
    """A Python name for a wire name; what every configuration has is not to be covered."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"\W", "_", key)).lower().strip("_")
    return f"own_{snake}" if not snake or hasattr(AdapterConfig, snake) else snake
