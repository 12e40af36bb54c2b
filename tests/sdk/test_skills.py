"""K1: skills reach a runtime by links, and nothing that somebody else made is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.contract.errors import ConfigError
from binderclip.sdk import link_skills, skill_summary


def make_skill(folder: Path, text: str = "---\nname: x\n---\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


def test_skills_are_linked_not_copied(tmp_path: Path) -> None:
    """K1: links, not copies."""
    one = make_skill(tmp_path / "mine" / "code-review")
    links = link_skills([one], tmp_path / "scratch" / ".claude" / "skills")
    assert links == [tmp_path / "scratch" / ".claude" / "skills" / "code-review"]
    assert links[0].is_symlink()
    assert links[0].resolve() == one.resolve()
    assert (links[0] / "SKILL.md").is_file()


def test_linking_again_changes_nothing(tmp_path: Path) -> None:
    one = make_skill(tmp_path / "mine" / "a")
    first = link_skills([one], tmp_path / "into")
    inode = first[0].lstat().st_ino
    assert link_skills([one], tmp_path / "into") == first
    assert first[0].lstat().st_ino == inode
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["a"]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_an_entry_of_somebody_else_stays(tmp_path: Path, kind: str) -> None:
    """K1: existing entries are never overwritten."""
    wanted = make_skill(tmp_path / "mine" / "a")
    theirs = make_skill(tmp_path / "theirs" / "a", "theirs")
    place = tmp_path / "into" / "a"
    if kind == "folder":
        make_skill(place, "theirs")
    elif kind == "file":
        place.parent.mkdir()
        place.write_text("theirs")
    else:
        place.parent.mkdir()
        place.symlink_to(theirs)
    assert link_skills([wanted], tmp_path / "into") == []
    kept = place if kind == "file" else place / "SKILL.md"
    assert kept.read_text() == "theirs"


def test_a_link_that_leads_nowhere_is_replaced(tmp_path: Path) -> None:
    """K1: a global link is replaced if it points nowhere."""
    wanted = make_skill(tmp_path / "mine" / "a")
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "a").symlink_to(tmp_path / "gone")
    (link,) = link_skills([wanted], tmp_path / "into")
    assert link.resolve() == wanted.resolve()


def test_a_link_into_another_binderclip_is_replaced(tmp_path: Path) -> None:
    """K1: the skill of an installation of before gives way to the one of now."""
    before = make_skill(tmp_path / "old" / "binderclip" / "skills" / "paperclip")
    now = make_skill(tmp_path / "new" / "binderclip" / "skills" / "paperclip")
    assert link_skills([before], tmp_path / "into") == link_skills([now], tmp_path / "into")
    assert (tmp_path / "into" / "paperclip").resolve() == now.resolve()
    assert (before / "SKILL.md").is_file()


@pytest.mark.parametrize("name", ["Upper", "..", "a b", "-flag", "a--b", "x" * 65, "é"])
def test_a_name_that_could_mislead_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="skill name"):
        link_skills([tmp_path / name], tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_a_folder_without_its_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no SKILL\.md"):
        link_skills([tmp_path / "empty"], tmp_path / "into")


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            "---\nname: review\ndescription: Use when asked.\n---\nBody",
            ("review", "Use when asked."),
        ),
        ("---\nname: \"q\"\ndescription: 'it: works'\n---\n", ("q", "it: works")),
        ("---\ndescription: >-\n  Two\n  lines.\nlicense: x\n  more\n---\n", ("a", "Two lines.")),
        ("---\nname: r\ndescription: one\n  two\n---\n", ("r", "one two")),
        ("\ufeff---\r\nname: crlf\r\n---\r\n", ("crlf", "")),
        ("---\nname: never closed", ("never closed", "")),
        ("# No front matter\nname: no\n", ("a", "")),
        ("", ("a", "")),
        ("---\nname:\n  nested: map\n: odd\n- list\n---\n", ("nested: map", "")),
    ],
)
def test_the_summary_is_read_tolerantly(
    tmp_path: Path, text: str, summary: tuple[str, str]
) -> None:
    """K2: name and description are what sits in the base prompt."""
    assert skill_summary(make_skill(tmp_path / "a", text)) == summary


def test_a_summary_of_nothing_is_the_folders_name(tmp_path: Path) -> None:
    assert skill_summary(tmp_path / "missing") == ("missing", "")
