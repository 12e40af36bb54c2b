"""What an adapter says about itself: manifest, doc, config class (A2, A12, F1, F2)."""

from __future__ import annotations

from typing import Any

from binderclip.contract.errors import ConfigError
from binderclip.contract.manifest import TYPE_NAME
from binderclip.sdk.config import (
    build_config,
    dangerous_fields,
    read_config,
    secret_values,
    shown_config,
)
from binderclip.sdk.testing.conformance.requirement import Subject, demand

UNKNOWN_KEY = "conformanceUnknownKey"
SECRET_VALUE = "conformance-secret-value"
WRONG_VALUES: tuple[Any, ...] = ("\u2302 not this", {"not": ["this"]}, [[{"not": "this"}]], -1)


def manifest_is_complete(subject: Subject) -> None:
    manifest = subject.adapter.manifest
    demand(TYPE_NAME.fullmatch(manifest.id), f"id {manifest.id!r} must be snake_case")
    demand(manifest.label.strip(), "label is empty")
    demand(manifest.version.strip(), "version is empty: transcripts are cached by it")
    ids = [model.id for model in manifest.models]
    demand(len(ids) == len(set(ids)), f"models has the same id twice: {ids}")
    if (subject.adapter.folder / "adapter.toml").is_file():
        folder = subject.adapter.folder.name
        demand(folder == manifest.id, f"folder {folder} and id {manifest.id} must be equal")


def doc_routes_and_lists_every_field(subject: Subject) -> None:
    doc = subject.adapter.agent_configuration_doc()
    for phrase in ("Use when", "Don't use when"):
        demand(phrase in doc.replace("’", "'"), f"the doc must say {phrase!r} (A2)")
    for field in subject.adapter.config_schema().fields:
        line = next((text for text in doc.splitlines() if f"`{field.key}`" in text), None)
        demand(line is not None, f"the doc does not list `{field.key}`")
        told = not field.dangerous or "dangerous" in str(line).lower()
        demand(told, f"the doc must mark `{field.key}` as dangerous")


def every_field_is_explained(subject: Subject) -> None:
    schema = subject.adapter.config_schema()
    keys = [field.key for field in schema.fields]
    demand(len(keys) == len(set(keys)), f"two config fields have one key: {keys}")
    for field in schema.fields:
        demand(field.hint, f"{field.key} needs a description: forms, help and docs show it")
        demand(field.label, f"{field.key} has no label")
        is_choice = field.type in ("select", "combobox")
        demand(field.type != "select" or field.options, f"{field.key} is a choice of nothing")
        demand(is_choice or not field.options, f"{field.key} has options but is no choice")
    known = set(schema.json_schema.get("properties", {}))
    demand(set(keys) <= known, f"missing in the JSON Schema: {set(keys) - known}")


def config_survives_a_round_trip(subject: Subject) -> None:
    kind = subject.adapter.Config
    empty = {field.key: "" for field in subject.adapter.config_schema().fields}
    form = {**empty, **subject.config, UNKNOWN_KEY: {"kept": [1, 2]}}
    stored = build_config(kind, form)
    demand("timeoutSec" in stored and "graceSec" in stored, "both limits are always written (F2)")
    left = [key for key in stored if stored[key] in ("", None, [], {})]
    demand(not left, f"empty fields must be left out (F2): {left}")
    demand(stored.get(UNKNOWN_KEY) == {"kept": [1, 2]}, "unknown stored keys must be kept (F2)")
    demand(build_config(kind, stored) == stored, "stored config changes when it is stored again")
    demand(read_config(kind, stored).unknown_keys == [UNKNOWN_KEY], "unknown keys must be told")


def bad_values_are_named(subject: Subject) -> None:
    for field in subject.adapter.config_schema().fields:
        problems = [_problem(subject, field.key, value) for value in WRONG_VALUES]
        named = [fields for fields in problems if fields is not None]
        demand(named, f"{field.key} takes any value: give it a type")
        for fields in named:
            heads = {key.split(".")[0] for key in fields}
            demand(field.key in heads, f"a bad {field.key} is reported as {sorted(fields)}")


def _problem(subject: Subject, key: str, value: Any) -> dict[str, str] | None:
    try:
        read_config(subject.adapter.Config, {**subject.config, key: value})
    except ConfigError as problem:
        return problem.fields
    return None


def dangers_are_off_and_secrets_hidden(subject: Subject) -> None:
    config = read_config(subject.adapter.Config, subject.config)
    given = set(subject.config)
    switched_on = [name for name in dangerous_fields(config) if name not in given]
    demand(not switched_on, f"dangerous by default: {switched_on} (A12)")
    secrets = [f.key for f in subject.adapter.config_schema().fields if f.type == "secret"]
    filled = {**subject.config, **dict.fromkeys(secrets, SECRET_VALUE)}
    config = read_config(subject.adapter.Config, filled)
    demand(SECRET_VALUE not in repr(shown_config(config)), "a secret field is shown (D7)")
    found = secret_values(config).count(SECRET_VALUE)
    demand(found == len(secrets), "a secret field's value is not known as a secret")
