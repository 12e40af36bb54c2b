"""Typed adapter configuration: one class gives validation, form, help and docs (D7, F1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from binderclip.contract.config import ConfigField, ConfigSchema, FieldOption
from binderclip.contract.errors import ConfigError
from binderclip.sdk.env import redact_env_for_logs
from binderclip.sdk.fields import BadValue, Field, Option, Secret, form_of, options_of


def _plain_env(value: object) -> object:
    """Accept Paperclip's `{"type": "plain", "value": …}` beside plain strings."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: item["value"] if isinstance(item, Mapping) and "value" in item else item
        for name, item in value.items()
    }


class AdapterConfig:
    """What every adapter's configuration has; unknown keys are kept and reported, not refused.

    Fields are class attributes with a type; `read_config` makes an object that has their values.
    """

    open_keys: ClassVar[bool] = False
    """Whether keys that are not declared may have an effect: then they are no mistake."""

    cwd: str | None = Field(None, description="Working directory of the agent, absolute.")
    prompt_template: str | None = Field(
        None,
        description="Prompt with {{path.to.value}} placeholders; a run's own prompt goes first.",
        textarea=True,
    )
    env: dict[str, str] = Field(
        default_factory=dict,
        before=_plain_env,
        description="Environment variables for the agent, besides the usual.",
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

    def __init__(self) -> None:
        self._given: list[Option] = []
        """The fields that were set."""
        self._unknown: dict[str, Any] = {}
        """What was given under names that this adapter does not know."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{o.name}={getattr(self, o.name)!r}" for o in self._given)
        return f"{type(self).__name__}({shown})"

    @property
    def unknown_keys(self) -> list[str]:
        """Keys that were given but that this adapter does not know."""
        return sorted(self._unknown)

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong with values of the right type, as field and words; for subclasses."""
        return iter(())


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


ConfigT = TypeVar("ConfigT", bound=AdapterConfig)


def read_config(kind: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """Validate values; everything wrong is one `ConfigError` that names field and problem."""
    config = kind()
    wrong: dict[str, str] = {}
    left = dict(values)
    for option in options_of(kind).values():
        key = option.alias if option.alias in left else option.name
        if key in left:
            try:
                setattr(config, option.name, option.read(left.pop(key)))
                config._given.append(option)
            except BadValue as problem:
                name = f"{option.alias}.{problem.place}" if problem.place else option.alias
                wrong[name] = problem.message
        elif option.required:
            wrong[option.alias] = "Field required"
        else:
            setattr(config, option.name, option.default())
    config._unknown = left
    wrong = wrong or dict(config.problems())
    if wrong:
        told = "; ".join(f"{name}: {text}" if name else text for name, text in wrong.items())
        raise ConfigError(f"The configuration has a problem: {told}", fields=wrong)
    return config


def config_from_assignments(
    kind: type[AdapterConfig], assignments: Sequence[str]
) -> dict[str, Any]:
    """Read `key=value` words by the field's declared type; lists and objects as JSON."""
    values: dict[str, Any] = {}
    names = options_of(kind)
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
    options = options_of(kind)
    schema = {
        "type": "object",
        "title": kind.__name__,
        "properties": {alias: option.schema() for alias, option in options.items()},
        "required": [alias for alias, option in options.items() if option.required],
        "additionalProperties": True,
    }
    return ConfigSchema(fields=tuple(map(_form_field, options.values())), json_schema=schema)


def build_config(kind: type[AdapterConfig], values: Mapping[str, Any]) -> dict[str, Any]:
    """Form values to stored configuration: empty ones left out, limits always written (F2)."""
    kept = {key: value for key, value in values.items() if value not in (None, "", [], {})}
    config = read_config(kind, kept)
    return {**kept, "timeoutSec": config.timeout_sec, "graceSec": config.grace_sec}


def shown_config(config: AdapterConfig) -> dict[str, Any]:
    """The configuration as people may see it: secrets as asterisks, only what was set."""
    shown = {option.alias: _shown(getattr(config, option.name)) for option in config._given}
    shown |= config._unknown
    return {**shown, "env": redact_env_for_logs(shown["env"])} if "env" in shown else shown


def secret_values(config: AdapterConfig) -> list[str]:
    """The values of all secret fields that are set."""
    found = (getattr(config, option.name) for option in options_of(type(config)).values())
    return [value.get_secret_value() for value in found if isinstance(value, Secret)]


def dangerous_fields(config: AdapterConfig) -> list[str]:
    """The dangerous fields that are switched on, by their wire name."""
    return [
        option.alias
        for option in options_of(type(config)).values()
        if option.dangerous and getattr(config, option.name)
    ]


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, Secret) else value


def _typed(key: str, text: str, option: Option) -> Any:
    kind = form_of(option.annotation)[0]
    if kind in ("text", "textarea", "select", "combobox", "secret"):
        return text
    if kind == "toggle":
        lowered = text.strip().lower()
        if lowered in ("true", "yes", "on", "1"):
            return True
        if lowered in ("false", "no", "off", "0"):
            return False
        raise ConfigError(f"--config {key}: write true or false", fields={key: "true or false"})
    try:
        return json.loads(text)
    except ValueError:
        if kind == "number":
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


def _form_field(option: Option) -> ConfigField:
    kind, choices = form_of(option.annotation)
    default = None if option.required else option.default()
    return ConfigField(
        key=option.alias,
        label=option.title or _label(option.alias),
        type="textarea" if option.textarea else kind,
        options=tuple(FieldOption(value=str(value), label=str(value)) for value in choices),
        default=None if isinstance(default, Secret) else default,
        hint=option.description,
        required=option.required,
        group=option.group,
        dangerous=option.dangerous,
    )


def _label(alias: str) -> str:
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in alias)
    return words[:1].upper() + words[1:]
