"""What the config of an ssh environment may say; it is checked when it is saved and when used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from binderclip.contract.errors import ConfigError

POLICIES = ("verify", "accept-new")
_PLAIN = re.compile(r"[A-Za-z0-9_.@:%\[\]-]+")
_LONGEST_LEASE_SEC = 7 * 86_400


def check(config: Mapping[str, Any]) -> None:
    """Refuse a config that cannot work; ConfigError says of each field what it has to be."""
    known = ", ".join(RULES)
    problems = dict.fromkeys(sorted({*config} - {*RULES}), f"unknown field; known are {known}")
    for key, (fits, wanted) in RULES.items():
        value = config.get(key)
        if not fits(value) if value is not None else key == "host":
            problems[key] = wanted
    if problems:
        told = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise ConfigError(f"The environment's config is wrong: {told}.", fields=problems)


def _name(value: Any) -> bool:
    # What begins with a dash would be an option of ssh.
    return isinstance(value, str) and bool(_PLAIN.fullmatch(value)) and value[0] != "-"


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _path(value: Any) -> bool:
    return _text(value) and value.startswith(("/", "~/"))


def _paths(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_path, value))


def _inside(value: Any) -> bool:
    return _text(value) and value[0] not in "/~" and ".." not in value.split("/")


def _all_inside(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_inside, value))


def _port(value: Any) -> bool:
    return type(value) is int and 0 < value < 65536


def _lease(value: Any) -> bool:
    return type(value) in (int, float) and 1 <= value <= _LONGEST_LEASE_SEC


RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "host": (_name, "must be the name or address of the machine"),
    "port": (_port, "must be a number from 1 to 65535"),
    "user": (_name, "must be the name of a user"),
    "identityFile": (_path, "must be the whole path of a key file, or begin with ~/"),
    "knownHosts": (lambda value: value in POLICIES, f"must be one of {', '.join(POLICIES)}"),
    "knownHostsFile": (_path, "must be a whole path, or begin with ~/"),
    "remoteRoot": (_path, "must be a whole path on that machine, or begin with ~/"),
    "python": (_text, "must be the name or the path of Python on that machine"),
    "path": (_paths, "must be a list of directories on that machine, each a whole path"),
    "inPlace": (_path, "must be the whole path of a checkout on that machine"),
    "leaseSec": (_lease, f"must be seconds, from 1 to {_LONGEST_LEASE_SEC}"),
    "paths": (_all_inside, "must be a list of paths inside the repository"),
    "control": (_path, "must be the whole path of a private directory for ssh's own socket"),
}
