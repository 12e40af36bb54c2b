"""The system's git, run so that nothing in a repository can make it run something else (D11).

No hooks, filters, drivers, prompts or network; people's own config counts for identity only.
It also runs on remote hosts: Python 3.9, standard library.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

OLDEST = (2, 38)
"""The first git whose `merge-tree` merges without a working directory."""
NAME = "binderclip"
EMAIL = "binderclip@localhost"
_PATIENCE_SEC = 3600.0
_QUIET = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.editor=:",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.alternateRefsCommand=",
    "core.splitIndex=false",
    "core.checkStat=default",
    "core.trustctime=true",
    "core.safecrlf=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "merge.renames=false",
    "merge.directoryRenames=false",
    "submodule.recurse=false",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "fetch.prune=false",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
    # Bundles are made for one journey: packing them tighter costs more than it saves.
    "pack.compression=1",
    "pack.window=4",
    "core.bigFileThreshold=16m",
)
_DRAWING = ("diff", "show", "log")
_DRIVERS = re.compile(r"(filter|merge)\.(.+)\.[^.]+", re.S | re.I)
_NEUTRAL = {
    "filter": ("clean=", "smudge=", "process=", "required=false"),
    # A driver that always fails leaves a conflict, which a person sees.
    "merge": ("driver=false",),
}


class GitFailed(Exception):
    """A git command ended badly; the message is what git said."""

    def __init__(self, words: Sequence[str], status: int, said: str) -> None:
        super().__init__(f"git {words[0]}: {said.strip() or f'exit status {status}'}")
        self.words = tuple(words)
        self.status = status
        self.said = said


class Git:
    """Git in one directory; `index` names another index file than the repository's."""

    def __init__(
        self, directory: str | Path, *, index: str | None = None, drivers: bool = True
    ) -> None:
        self.directory = str(directory)
        self._index = index
        self._settings: tuple[str, ...] = ()
        self._neutral: tuple[str, ...] | None = None if drivers else ()

    def with_index(self, path: str) -> Git:
        """The same repository with an index of its own."""
        return self._like(path, self._settings)

    def with_settings(self, *settings: str) -> Git:
        """The same with other settings, each `name=value`."""
        return self._like(self._index, settings)

    def _like(self, index: str | None, settings: tuple[str, ...]) -> Git:
        git = Git(self.directory, index=index)
        git._neutral, git._settings = self._neutral, settings
        return git

    def __call__(
        self,
        *words: str,
        stdin: bytes | None = None,
        ok: Iterable[int] = (0,),
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a command and return what it printed; GitFailed if it ends with another status."""
        return self.ended(*words, stdin=stdin, ok=ok, env=env).stdout

    def ended(
        self,
        *words: str,
        stdin: bytes | None = None,
        ok: Iterable[int] = (0,),
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command whose exit status matters."""
        done = subprocess.run(
            self.command(*words),
            input=b"" if stdin is None else stdin,
            capture_output=True,
            env={**self.environment(), **(env or {})},
            timeout=_PATIENCE_SEC,
        )
        if done.returncode not in ok:
            raise GitFailed(words, done.returncode, done.stderr.decode("utf-8", "replace"))
        return done

    def text(self, *words: str, stdin: bytes | None = None) -> str:
        """What a command printed, without the newline at its end."""
        return os.fsdecode(self(*words, stdin=stdin)).rstrip("\n")

    def maybe(self, *words: str) -> str | None:
        """What a command printed, or None where it found nothing (exit status 1 or 128)."""
        done = self.ended(*words, ok=(0, 1, 128))
        return os.fsdecode(done.stdout).rstrip("\n") if done.returncode == 0 else None

    def yes(self, *words: str) -> bool:
        """Whether a command that answers by its exit status said yes."""
        return self.ended(*words, ok=(0, 1)).returncode == 0

    def names(self, *words: str) -> list[str]:
        """The names that a command with `-z` printed."""
        return [os.fsdecode(name) for name in self(*words).split(b"\0") if name]

    def resolve(self, name: str) -> str | None:
        """The id of a commit, or None if there is none of that name."""
        return self.maybe(
            "rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}"
        )

    def command(self, *words: str) -> list[str]:
        """The whole command line, for those who start it themselves."""
        settings = [*_QUIET, *_trusted(), *self._neutralized(), *self._settings]
        options = [part for setting in settings for part in ("-c", setting)]
        verb, *rest = words
        if verb in _DRAWING:
            rest = ["--no-ext-diff", "--no-textconv", *rest]
        return ["git", "-C", self.directory, "--no-pager", *options, verb, *rest]

    def environment(self) -> dict[str, str]:
        """The environment of our git: nothing of the caller's GIT_* variables."""
        env = clean_environment(os.environ)
        if self._index is not None:
            env["GIT_INDEX_FILE"] = self._index
        return env

    def _neutralized(self) -> tuple[str, ...]:
        if self._neutral is None:
            self._neutral = ()
            names = self(
                "config",
                "--null",
                "--name-only",
                "--get-regexp",
                r"^(filter|merge)\.",
                ok=(0, 1, 128),
            )
            found = {m.group(1, 2) for n in names.split(b"\0") if (m := _named(n))}
            self._neutral = tuple(
                f"{kind.lower()}.{name}.{setting}"
                for kind, name in sorted(found)
                for setting in _NEUTRAL[kind.lower()]
            )
        return self._neutral


def _named(name: bytes) -> re.Match[str] | None:
    return _DRIVERS.fullmatch(os.fsdecode(name))


def clean_environment(env: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git asks nobody, reaches nothing and is told nothing by others."""
    kept = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        # Bundles are files; no other way to fetch is open.
        "GIT_ALLOW_PROTOCOL": "file",
        **identity(NAME, EMAIL),
    }


def identity(name: str, email: str, date: str | None = None) -> dict[str, str]:
    """Variables that say who commits, and when if it is not now."""
    told = {}
    for role in ("AUTHOR", "COMMITTER"):
        told[f"GIT_{role}_NAME"], told[f"GIT_{role}_EMAIL"] = name, email
        if date is not None:
            told[f"GIT_{role}_DATE"] = date
    return told


def person(directory: str | Path) -> tuple[str, str]:
    """Who commits here, by the config of the repository and of the person."""
    found = []
    for key, fallback in (("user.name", NAME), ("user.email", EMAIL)):
        own = Git(directory, drivers=False).maybe("config", "--get", key)
        found.append(own or _people(key)[-1:] or fallback)
    name, email = (item[0] if isinstance(item, list) else item for item in found)
    return name, email


def version() -> tuple[int, ...] | None:
    """The version of the system's git, or None if there is none."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True).stdout
    except OSError:
        return None
    numbers = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
    return tuple(int(part or 0) for part in numbers.groups()) if numbers else None


@lru_cache(maxsize=1)
def _trusted() -> tuple[str, ...]:
    """Foreign-owned repositories that the person trusts; git asks for them in its own config."""
    return tuple(f"safe.directory={path}" for path in _people("safe.directory"))


def _people(key: str) -> list[str]:
    """Values of a key in the config of the person and the machine, whatever else it says."""
    env = {n: v for n, v in os.environ.items() if not n.startswith("GIT_") or "CONFIG" in n}
    values = []
    for scope in ("--system", "--global"):
        command = ["git", "config", scope, "--null", "--get-all", key]
        done = subprocess.run(command, capture_output=True, env=env, cwd="/")
        values += [os.fsdecode(value) for value in done.stdout.split(b"\0") if value]
    return values
