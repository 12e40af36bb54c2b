"""The fields of a configuration class: what is declared, how a value is read, what it should be.

A value is never repeated in words about it: it could be a secret (D8).
"""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from binderclip.contract.config import FieldType

_REQUIRED: Any = object()
_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


class Secret:
    """A value that is stored encrypted, never shown, and masked in every log."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return "**********" if self._value else ""

    def __repr__(self) -> str:
        return f"Secret('{self}')"


class _Declared:
    """What stands behind a field's name in its class."""

    __slots__ = ("before", "default", "factory", "meta", "options")

    def __init__(
        self,
        default: Any,
        factory: Callable[[], Any] | None,
        meta: dict[str, Any],
        before: Callable[[Any], Any] | None,
        options: dict[str, Any],
    ) -> None:
        self.default = default
        self.factory = factory
        self.meta = meta
        self.before = before
        self.options = options


def Field(
    default: Any = _REQUIRED,
    *,
    default_factory: Callable[[], Any] | None = None,
    description: str | None = None,
    title: str | None = None,
    alias: str | None = None,
    group: str | None = None,
    textarea: bool = False,
    dangerous: bool = False,
    before: Callable[[Any], Any] | None = None,
    **limits: Any,
) -> Any:
    """A field of a configuration: its default, its words in form, help and docs, its limits.

    Without a default it is required. `before` sees a value first and may turn it into another.
    Limits are `ge`, `gt`, `le`, `lt`, `min_length`, `max_length` and `pattern`.
    """
    unknown = set(limits) - {"ge", "gt", "le", "lt", "min_length", "max_length", "pattern"}
    if unknown:
        raise TypeError(f"Field takes no {', '.join(sorted(unknown))}")
    options = {
        "description": description,
        "title": title,
        "alias": alias,
        "group": group,
        "textarea": textarea,
        "dangerous": dangerous,
    }
    return _Declared(default, default_factory, limits, before, options)


def dangerous(**field: Any) -> Any:
    """A field that takes a safety away: off by default, marked in form, help and docs (A12)."""
    return Field(dangerous=True, **field)


class Option:
    """One field of a configuration class, with its type."""

    def __init__(self, name: str, annotation: Any, declared: Any) -> None:
        if not isinstance(declared, _Declared):
            declared = Field(declared)
        self.name = name
        self.annotation = annotation
        self.alias: str = declared.options["alias"] or camel(name)
        self.title: str | None = declared.options["title"]
        self.description: str | None = declared.options["description"]
        self.group: str | None = declared.options["group"]
        self.textarea: bool = declared.options["textarea"]
        self.dangerous: bool = declared.options["dangerous"]
        self.limits: dict[str, Any] = declared.meta
        self._declared: _Declared = declared
        self._type = _limited(annotation, declared.meta)

    @property
    def required(self) -> bool:
        return self._declared.default is _REQUIRED and self._declared.factory is None

    def default(self) -> Any:
        """The value of a field that was not set."""
        if self._declared.factory is not None:
            return self._declared.factory()
        return copy.copy(self._declared.default)

    def read(self, value: Any) -> Any:
        """The value by the declared type, or `BadValue`."""
        if self._declared.before is not None:
            value = self._declared.before(value)
        try:
            return msgspec.convert(value, self._type, dec_hook=_secret)
        except msgspec.ValidationError as problem:
            if isinstance(value, str) and form_of(self.annotation)[0] in ("number", "toggle"):
                return self._from_text(value)
            raise BadValue(f"must be {self.wanted()}", _place(str(problem))) from None

    def _from_text(self, text: str) -> Any:
        """Numbers and switches may come as text, as environment files write them."""
        try:
            return msgspec.convert(text, self._type, strict=False)
        except msgspec.ValidationError:
            raise BadValue(f"must be {self.wanted()}") from None

    def wanted(self) -> str:
        """What the value should be, in words."""
        limits = [f"{_LIMIT_WORDS[name]} {limit}" for name, limit in self.limits.items()]
        return " ".join([_words(self.annotation), *limits])

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        made: dict[str, Any] = msgspec.json.schema(self._type, schema_hook=_secret_schema)
        if self.title or self.description:
            words = {"title": self.title, "description": self.description}
            made = {**made, **{key: text for key, text in words.items() if text}}
        if not self.required and not isinstance(self.default(), Secret):
            made["default"] = msgspec.to_builtins(self.default())
        return made


class BadValue(Exception):
    """A value that a field cannot have; `place` is where in it, if it has parts."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place


_LIMIT_WORDS = {
    "ge": "of at least",
    "gt": "greater than",
    "le": "of at most",
    "lt": "less than",
    "min_length": "with a length of at least",
    "max_length": "with a length of at most",
    "pattern": "that matches the pattern",
}


def options_of(kind: type) -> dict[str, Option]:
    """The fields of a configuration class by their wire name, those of its bases first."""
    found = kind.__dict__.get("_options")
    if found is None:
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = {
            name: Option(name, hint, getattr(kind, name, _REQUIRED))
            for name, hint in hints.items()
            if not name.startswith("_") and typing.get_origin(hint) is not ClassVar
        }
        found = {option.alias: option for option in fields.values()}
        kind._options = found  # type: ignore[attr-defined]
    return typing.cast("dict[str, Option]", found)


def camel(name: str) -> str:
    """`timeout_sec` as it stands on the wire: `timeoutSec`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def form_of(annotation: Any) -> tuple[FieldType, tuple[Any, ...]]:
    """The form primitive of a type, and its options if it is a choice."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return form_of(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return form_of(_without_none(annotation)[0])
    if origin is Literal:
        return "select", typing.get_args(annotation)
    if annotation is bool:
        return "toggle", ()
    if annotation in (int, float):
        return "number", ()
    if annotation is Secret:
        return "secret", ()
    if (origin or annotation) in (list, tuple, Sequence):
        return "list", ()
    return ("keyvalue", ()) if (origin or annotation) is dict else ("text", ())


def _without_none(annotation: Any) -> list[Any]:
    return [part for part in typing.get_args(annotation) if part is not type(None)]


def _limited(annotation: Any, limits: dict[str, Any]) -> Any:
    """The type with its limits, which an absent value does not have."""
    if not limits:
        return annotation
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return Annotated[annotation, msgspec.Meta(**limits)]
    parts = [_limited(part, limits) for part in _without_none(annotation)]
    return typing.Union[(*parts, None)]


def _words(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return _words(_without_none(annotation)[-1])
    if origin is Literal:
        return "one of " + ", ".join(repr(value) for value in typing.get_args(annotation))
    kind = form_of(annotation)[0]
    if kind == "list":
        return "a list"
    if kind == "keyvalue":
        return "an object"
    return _WORDS.get(annotation, "a text")


def _place(message: str) -> str:
    """Where in a list or an object msgspec found the problem: `A` of "… - at `$.A`"."""
    path = message.rpartition(" - at `$")[2].rstrip("`") if " - at `$" in message else ""
    return path.replace("[...]", "").strip(".").strip("[]")


def _secret(kind: type, value: Any) -> Any:
    if kind is Secret and isinstance(value, Secret | str):
        return value if isinstance(value, Secret) else Secret(value)
    raise TypeError("no such value")


def _secret_schema(kind: type) -> dict[str, Any]:
    if kind is Secret:
        return {"type": "string", "format": "password", "writeOnly": True}
    return {}
