"""Typed adapter configuration: one class gives validation, form, help and docs (D7, F1)."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from binderclip.contract.config import ConfigField, ConfigSchema, FieldOption, FieldType
from binderclip.contract.errors import ConfigError
from binderclip.sdk.env import redact_env_for_logs

Secret = SecretStr
"""A field whose value is stored encrypted, never shown, and masked in every log."""


def _plain_env(value: object) -> object:
    """Accept Paperclip's `{"type": "plain", "value": …}` beside plain strings."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: item["value"] if isinstance(item, Mapping) and "value" in item else item
        for name, item in value.items()
    }


EnvMap = Annotated[dict[str, str], BeforeValidator(_plain_env)]


def dangerous(**field: Any) -> Any:
    """A field that takes a safety away: off by default, marked in form, help and docs (A12)."""
    return Field(json_schema_extra={"dangerous": True}, **field)


class AdapterConfig(BaseModel):
    """What every adapter's configuration has; unknown keys are kept and reported, not refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", defer_build=True
    )

    open_keys: ClassVar[bool] = False
    """Whether keys that are not declared may have an effect: then they are no mistake."""

    cwd: str | None = Field(None, description="Working directory of the agent, absolute.")
    prompt_template: str | None = Field(
        None,
        description="Prompt with {{path.to.value}} placeholders; a run's own prompt goes first.",
        json_schema_extra={"format": "textarea"},
    )
    env: EnvMap = Field(
        default_factory=dict, description="Environment variables for the agent, besides the usual."
    )
    timeout_sec: float = Field(
        14400, ge=0, description="Seconds until the run is stopped; 0 means no limit."
    )
    idle_timeout_sec: float = Field(
        3600, ge=0, description="Seconds without any output until it is stopped; 0 means no limit."
    )
    grace_sec: float = Field(
        15, ge=0, description="Seconds between asking the agent to end and killing it."
    )
    max_log_bytes: int = Field(
        4 * 1024**3, ge=0, description="Bytes of output until the run is stopped; 0 means no limit."
    )

    @property
    def unknown_keys(self) -> list[str]:
        """Keys that were given but that this adapter does not know."""
        return sorted(self.model_extra or {})


Effort = Literal["minimal", "low", "medium", "high", "xhigh"]
Network = Literal["none", "allowlist", "open"]


class CliConfig(AdapterConfig):
    """What the configurations of agent CLIs share, under one name each."""

    command: str | None = Field(
        None, description="Program to run, by name or absolute path; the runtime's own if unset."
    )
    model: str | None = Field(None, description="Model to use; the runtime's default if unset.")
    effort: Effort | None = Field(None, description="How hard the model should think.")
    extra_args: list[str] = Field(
        default_factory=list, description="Arguments appended to the command line as they are."
    )
    instructions_file_path: str | None = Field(
        None, description="Absolute path of a Markdown file with standing instructions."
    )


ConfigT = typing.TypeVar("ConfigT", bound=AdapterConfig)


def read_config(kind: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """Validate values; everything wrong is one `ConfigError` that names field and problem."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as problem:
        fields = {
            ".".join(str(part) for part in error["loc"]): error["msg"]
            for error in problem.errors(include_url=False, include_input=False)
        }
        told = "; ".join(f"{name}: {text}" for name, text in fields.items())
        raise ConfigError(f"The configuration has a problem: {told}", fields=fields) from None


def config_from_assignments(
    kind: type[AdapterConfig], assignments: Sequence[str]
) -> dict[str, Any]:
    """Read `key=value` words by the field's declared type; lists and objects as JSON."""
    values: dict[str, Any] = {}
    names = {alias: info for alias, _, info in _fields(kind)}
    for word in assignments:
        key, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"--config {word}: write it as key=value")
        head, _, rest = key.partition(".")
        if head not in names and kind.open_keys:
            values[key] = _guessed(text)
            continue
        if head not in names:
            known = ", ".join(sorted(names))
            raise ConfigError(f"--config {key}: no such field; known are {known}", fields={key: ""})
        if rest:
            _nested(values, key, head)[rest] = text
        else:
            values[head] = _typed(key, text, names[head])
    return values


def _nested(values: dict[str, Any], key: str, head: str) -> dict[str, Any]:
    inner = values.setdefault(head, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"--config {key}: {head} has a value already", fields={key: "taken"})
    return inner


def describe_config(kind: type[AdapterConfig]) -> ConfigSchema:
    """The form fields and the JSON Schema of a configuration class (F3)."""
    fields = tuple(_form_field(alias, info) for alias, _, info in _fields(kind))
    return ConfigSchema(fields=fields, json_schema=kind.model_json_schema(by_alias=True))


def build_config(kind: type[AdapterConfig], values: Mapping[str, Any]) -> dict[str, Any]:
    """Form values to stored configuration: empty ones left out, limits always written (F2)."""
    kept = {key: value for key, value in values.items() if value not in (None, "", [], {})}
    config = read_config(kind, kept)
    return {**kept, "timeoutSec": config.timeout_sec, "graceSec": config.grace_sec}


def shown_config(config: AdapterConfig) -> dict[str, Any]:
    """The configuration as people may see it: secrets as asterisks, only what was set."""
    shown: dict[str, Any] = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {**shown, "env": redact_env_for_logs(shown["env"])} if "env" in shown else shown


def secret_values(config: AdapterConfig) -> list[str]:
    """The values of all secret fields that are set."""
    found = (getattr(config, name) for _, name, _ in _fields(type(config)))
    return [value.get_secret_value() for value in found if isinstance(value, SecretStr)]


def dangerous_fields(config: AdapterConfig) -> list[str]:
    """The dangerous fields that are switched on, by their wire name."""
    return [
        alias
        for alias, name, info in _fields(type(config))
        if _extra(info).get("dangerous") and getattr(config, name)
    ]


def _fields(kind: type[AdapterConfig]) -> list[tuple[str, str, FieldInfo]]:
    return [(info.alias or name, name, info) for name, info in kind.model_fields.items()]


def _extra(info: FieldInfo) -> dict[str, Any]:
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def _typed(key: str, text: str, info: FieldInfo) -> Any:
    if _bare(info.annotation)[0] in ("text", "textarea", "select", "combobox", "secret"):
        return text
    if _bare(info.annotation)[0] == "toggle":
        lowered = text.strip().lower()
        if lowered in ("true", "yes", "on", "1"):
            return True
        if lowered in ("false", "no", "off", "0"):
            return False
        raise ConfigError(f"--config {key}: write true or false", fields={key: "true or false"})
    try:
        return json.loads(text)
    except ValueError:
        if _bare(info.annotation)[0] == "number":
            raise ConfigError(f"--config {key}: {text!r} is no number", fields={key: ""}) from None
        raise ConfigError(
            f"--config {key}: lists and objects are written as JSON", fields={key: "not JSON"}
        ) from None


def _guessed(text: str) -> Any:
    """The value of a field whose type nobody declared: JSON where it is JSON, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _form_field(alias: str, info: FieldInfo) -> ConfigField:
    kind, options = _bare(info.annotation)
    extra = _extra(info)
    if extra.get("format") == "textarea":
        kind = "textarea"
    default = info.get_default(call_default_factory=True) if not info.is_required() else None
    return ConfigField(
        key=alias,
        label=str(info.title or _label(alias)),
        type=kind,
        options=tuple(FieldOption(value=str(value), label=str(value)) for value in options),
        default=None if isinstance(default, SecretStr) else default,
        hint=info.description,
        required=info.is_required(),
        group=str(extra["group"]) if "group" in extra else None,
        dangerous=bool(extra.get("dangerous")),
    )


def _label(alias: str) -> str:
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in alias)
    return words[:1].upper() + words[1:]


def _bare(annotation: Any) -> tuple[FieldType, tuple[Any, ...]]:
    """The form primitive of a type, and its options if it is a choice."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return _bare(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        inner = [part for part in typing.get_args(annotation) if part is not type(None)]
        return _bare(inner[0])
    if origin is Literal:
        return "select", typing.get_args(annotation)
    if annotation is bool:
        return "toggle", ()
    if annotation in (int, float):
        return "number", ()
    if annotation is SecretStr:
        return "secret", ()
    if (origin or annotation) in (list, tuple, Sequence):
        return "list", ()
    return ("keyvalue", ()) if (origin or annotation) is dict else ("text", ())
