"""Giving skills to a runtime: links in a directory that is not the agent's cwd (K1).

An entry that somebody else made is never overwritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from binderclip.contract.errors import ConfigError

SKILL_FILE = "SKILL.md"
LONGEST_HEAD = 64 * 1024

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FIELD = re.compile(r"(name|description)\s*:\s*(.*)")
_BLOCK_MARKS = frozenset(("|", ">", "|-", ">-", "|+", ">+"))


def link_skills(skills: Sequence[Path], into: Path) -> list[Path]:
    """Link each skill's folder into a directory, and give the links that lead to them now.

    A link is replaced only if it leads nowhere or into the skills of some binderclip, such as
    one installed before; every other entry of that name stays, and its skill is left out.
    """
    for skill in skills:
        check_skill(skill)
    into.mkdir(parents=True, exist_ok=True)
    links = (_linked(skill.absolute(), into / skill.name) for skill in skills)
    return [link for link in links if link is not None]


def skill_summary(path: Path) -> tuple[str, str]:
    """Name and description from a skill's front matter; the folder's name and "" if it has none."""
    try:
        with (path / SKILL_FILE).open("rb") as file:
            head = file.read(LONGEST_HEAD).decode("utf-8", "replace")
    except OSError:
        return path.name, ""
    found = _front_matter(head.removeprefix("\ufeff").splitlines())
    return found.get("name") or path.name, found.get("description", "")


def check_skill(path: Path) -> None:
    """Refuse a folder that is no skill, or whose name could lead elsewhere."""
    if not _NAME.fullmatch(path.name) or len(path.name) > 64:
        raise ConfigError(
            f"The skill name {path.name!r} is not usable.",
            hint="Name the folder in lower case with hyphens, such as code-review.",
        )
    if not (path / SKILL_FILE).is_file():
        raise ConfigError(
            f"{path} has no {SKILL_FILE}.", hint="A skill is a folder with that file in it."
        )


def _linked(skill: Path, link: Path) -> Path | None:
    if link.exists() and link.resolve() == skill.resolve():
        return link
    free = not link.is_symlink() and not link.exists()
    return _point(link, skill) if free or _may_replace(link) else None


def _may_replace(link: Path) -> bool:
    if not link.is_symlink():
        return False
    return not link.exists() or link.resolve().parent.parts[-2:] == ("binderclip", "skills")


def _point(link: Path, skill: Path) -> Path:
    """Make or move the link in one step, so that a runtime that starts now finds one of both."""
    part = link.with_name(f".{link.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    part.symlink_to(skill, target_is_directory=True)
    part.replace(link)
    return link


def _front_matter(lines: list[str]) -> dict[str, str]:
    """The two fields we need from a block of YAML, read leniently and without a YAML parser."""
    if not lines or lines[0].strip() != "---":
        return {}
    found: dict[str, str] = {}
    key = ""
    for line in lines[1:]:
        if line.strip() in ("---", "..."):
            break
        match = _FIELD.match(line)
        if match:
            key = match[1]
            found[key] = "" if match[2].strip() in _BLOCK_MARKS else _unquoted(match[2].strip())
        elif key and line[:1].isspace():
            found[key] = f"{found[key]} {line.strip()}".strip()
        else:
            key = ""
    return found


def _unquoted(text: str) -> str:
    quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text
