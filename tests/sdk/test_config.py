"""D7, F1-F3, A12: one typed class gives validation, form, assignments and what is shown."""

from __future__ import annotations

import traceback
from typing import Any, Literal

import pytest

from binderclip.contract.config import ConfigField
from binderclip.contract.errors import ConfigError
from binderclip.sdk import AdapterConfig, CliConfig, Field, Secret, build_config, dangerous
from binderclip.sdk.config import (
    config_from_assignments,
    dangerous_fields,
    describe_config,
    read_config,
    secret_values,
    shown_config,
)


class Sample(CliConfig):
    color: Literal["red", "blue"] = Field("red", description="Which colour.")
    api_secret: Secret | None = Field(None, description="A secret.")
    skip_checks: bool = dangerous(default=False, description="Skip all checks.")
    size: int | None = Field(None, description="How large.", group="Looks")
    notes: str | None = Field(None, title="Your notes", description="N.", textarea=True)


class Needy(AdapterConfig):
    url: str = Field(description="Where to call.")


def field(key: str) -> ConfigField:
    return next(item for item in describe_config(Sample).fields if item.key == key)


def test_limits_have_the_contracts_defaults() -> None:
    """A11: 14400, 3600, 15 seconds and 4 GiB."""
    config = read_config(AdapterConfig, {})
    limits = (config.timeout_sec, config.idle_timeout_sec, config.grace_sec, config.max_log_bytes)
    assert limits == (14400, 3600, 15, 4 * 1024**3)


def test_everything_wrong_is_told_at_once_by_field() -> None:
    """F1: bad config names field and problem."""
    with pytest.raises(ConfigError) as caught:
        read_config(Sample, {"timeoutSec": -1, "color": "green", "extraArgs": "x"})
    assert set(caught.value.fields) == {"timeoutSec", "color", "extraArgs"}
    assert "timeoutSec: must be a number of at least 0" in caught.value.message


def test_a_bad_value_is_not_repeated_in_the_error() -> None:
    """D8: the value could be a secret."""
    value = "".join(reversed("2retnuh"))
    with pytest.raises(ConfigError) as caught:
        read_config(Sample, {"apiSecret": {"oops": value}})
    assert value not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("values", "field", "told"),
    [
        ({"env": {"A": 1}}, "env", "must be an object"),
        ({"extraArgs": ["a", 1]}, "extraArgs.1", "must be a list"),
        ({"color": "green"}, "color", "must be one of 'red', 'blue'"),
        ({"size": 1.5}, "size", "must be a whole number"),
        ({"model": 5}, "model", "must be a text"),
        ({"skipChecks": "maybe"}, "skipChecks", "must be true or false"),
        ({"apiSecret": 5}, "apiSecret", "must be a text"),
    ],
)
def test_a_bad_value_is_told_by_what_it_should_be(
    values: dict[str, Any], field: str, told: str
) -> None:
    """F1: field and problem, in words that a person can act on."""
    with pytest.raises(ConfigError) as caught:
        read_config(Sample, values)
    assert {name: text for name, text in caught.value.fields.items() if name.startswith(field)}
    assert list(caught.value.fields.values()) == [told]


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ({"timeoutSec": 5}, 5.0),
        ({"timeoutSec": "2.5"}, 2.5),
        ({"timeout_sec": 7}, 7.0),
    ],
)
def test_numbers_may_come_as_text_and_under_their_python_name(
    values: dict[str, Any], read: float
) -> None:
    assert read_config(Sample, values).timeout_sec == read


def test_defaults_are_not_shared() -> None:
    class Listed(AdapterConfig):
        words: list[str] = Field(["a"], description="W.")

    read_config(Listed, {}).words.append("b")
    assert read_config(Listed, {}).words == ["a"]


def test_a_field_with_a_limit_that_does_not_exist_is_a_mistake_of_its_author() -> None:
    with pytest.raises(TypeError, match="minimum"):
        Field(3, minimum=1)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(Needy, {})
    assert caught.value.fields == {"url": "Field required"}


def test_unknown_keys_are_kept_and_told() -> None:
    """F2: kept, reported by the environment test, never refused."""
    config = read_config(Sample, {"zeta": 1, "alpha": 2})
    assert config.unknown_keys == ["alpha", "zeta"]


def test_environment_values_may_have_paperclips_form() -> None:
    config = read_config(Sample, {"env": {"A": "1", "B": {"type": "plain", "value": "2"}}})
    assert config.env == {"A": "1", "B": "2"}


@pytest.mark.parametrize("env", ["A=1", {"A": 1}, {"A": {"type": "plain"}}, [["A", "1"]]])
def test_a_bad_environment_is_named(env: object) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(Sample, {"env": env})
    assert {key.split(".")[0] for key in caught.value.fields} == {"env"}


def test_form_values_become_stored_config() -> None:
    """F2: empty left out, both limits always written, unknown keys kept."""
    values = {"model": "", "cwd": None, "extraArgs": [], "env": {}, "size": 0, "mystery": "kept"}
    assert build_config(Sample, values) == {
        "size": 0,
        "mystery": "kept",
        "timeoutSec": 14400,
        "graceSec": 15,
    }


def test_false_is_a_value() -> None:
    """F2: a toggle that was switched off is not an empty field."""
    assert build_config(Sample, {"skipChecks": False})["skipChecks"] is False


def test_a_bad_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="graceSec"):
        build_config(Sample, {"graceSec": "soon"})


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("model=gpt-5=x", {"model": "gpt-5=x"}),
        ("model=5", {"model": "5"}),
        ("timeoutSec=2.5", {"timeoutSec": 2.5}),
        ("size=3", {"size": 3}),
        ("skipChecks=yes", {"skipChecks": True}),
        ("skipChecks=Off", {"skipChecks": False}),
        ("color=blue", {"color": "blue"}),
        ("apiSecret=abc", {"apiSecret": "abc"}),
        ('extraArgs=["-v","a b"]', {"extraArgs": ["-v", "a b"]}),
        ('env={"A":"1"}', {"env": {"A": "1"}}),
        ("env.A=true", {"env": {"A": "true"}}),
        ("notes=", {"notes": ""}),
    ],
)
def test_assignments_are_read_by_the_declared_type(word: str, values: dict[str, Any]) -> None:
    """Design 6: `--config key=value`; lists and objects as JSON."""
    assert config_from_assignments(Sample, [word]) == values


def test_assignments_add_up() -> None:
    words = ['env={"A":"1"}', "env.B=2", "model=a", "model=b"]
    assert config_from_assignments(Sample, words) == {"env": {"A": "1", "B": "2"}, "model": "b"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["model"], "write it as key=value"),
        (["modle=x"], "no such field; known are"),
        (["timeoutSec=soon"], "'soon' is no number"),
        (["skipChecks=maybe"], "write true or false"),
        (["extraArgs=-v"], "written as JSON"),
        (["model=a", "model.b=c"], "has a value already"),
        (["nothing.x=1"], "no such field"),
    ],
)
def test_a_bad_assignment_says_what_to_write(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        config_from_assignments(Sample, words)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("cwd", "text"),
        ("promptTemplate", "textarea"),
        ("notes", "textarea"),
        ("env", "keyvalue"),
        ("timeoutSec", "number"),
        ("size", "number"),
        ("extraArgs", "list"),
        ("color", "select"),
        ("effort", "select"),
        ("apiSecret", "secret"),
        ("skipChecks", "toggle"),
    ],
)
def test_every_type_has_its_form_primitive(key: str, kind: str) -> None:
    """F3: text, number, toggle, select, secret, list, key-value."""
    assert field(key).type == kind


def test_a_form_field_says_all_that_a_form_needs() -> None:
    """F3: key, label, type, options, default, hint, required, group."""
    color, size = field("color"), field("size")
    assert [option.value for option in color.options] == ["red", "blue"]
    assert (color.label, color.default, color.hint) == ("Color", "red", "Which colour.")
    assert (size.group, size.required, field("notes").label) == ("Looks", False, "Your notes")
    assert field("timeoutSec").label == "Timeout sec"
    assert describe_config(Needy).fields[-1].required
    assert describe_config(Needy).json_schema["required"] == ["url"]


def test_a_secrets_default_is_not_shown() -> None:
    class Bad(AdapterConfig):
        token: Secret = Field(Secret("built-in-token"), description="T.")

    assert describe_config(Bad).fields[-1].default is None


def test_dangerous_fields_are_marked_and_found_when_on() -> None:
    """A12: default off, marked in the form."""
    assert field("skipChecks").dangerous
    assert not field("color").dangerous
    assert dangerous_fields(read_config(Sample, {})) == []
    assert dangerous_fields(read_config(Sample, {"skipChecks": True})) == ["skipChecks"]


def test_secrets_are_asterisks_wherever_config_is_shown() -> None:
    """D8: never in shown config, also not by way of env."""
    values = {"apiSecret": "hunter2hunter2", "env": {"MY_TOKEN": "tok-tok-tok", "A": "1"}}
    config = read_config(Sample, values)
    assert shown_config(config) == {
        "apiSecret": "**********",
        "env": {"MY_TOKEN": "***", "A": "1"},
    }
    assert "hunter2" not in repr(config)
    assert secret_values(config) == ["hunter2hunter2"]


def test_only_what_was_set_is_shown() -> None:
    assert shown_config(read_config(Sample, {"model": "m"})) == {"model": "m"}
