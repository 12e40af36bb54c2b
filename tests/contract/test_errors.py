"""The exception tree is the one that its docstring draws."""

from __future__ import annotations

import re

import pytest

from binderclip.contract import errors
from binderclip.contract.errors import BinderclipError, ConfigError


def all_errors(kind: type[BinderclipError] = BinderclipError) -> list[type[BinderclipError]]:
    own = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [kind, *(deeper for child in own for deeper in all_errors(child))]


def drawn() -> list[tuple[int, str, str]]:
    lines = re.findall(r"^    ( *)(\w+)(?: +(\w+))?$", str(errors.__doc__), re.M)
    return [(len(indent) // 2, name, code) for indent, name, code in lines]


def depth(kind: type[BinderclipError]) -> int:
    return kind.__mro__.index(BinderclipError)


def test_the_docstring_draws_the_tree_with_its_codes() -> None:
    tree = [(depth(kind), kind.__name__, kind.code) for kind in all_errors()]
    root = (0, "BinderclipError", "error")
    assert [root, *drawn()[1:]] == tree
    assert drawn()[0][1] == "BinderclipError"


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_says_when_it_is_raised(kind: type[BinderclipError]) -> None:
    assert kind.__doc__
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)


def test_an_error_carries_message_hint_and_fields() -> None:
    problem = ConfigError("bad", hint="do this", fields={"model": "unknown"})
    assert (str(problem), problem.message, problem.hint) == ("bad", "bad", "do this")
    assert problem.fields == {"model": "unknown"}
    assert ConfigError("bad").fields == {}
