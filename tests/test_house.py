"""Facts about the tree that rot unnoticed: version, lock, paths, docstrings, links, verbs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import binderclip
from docs.generate import MARK, commands_page, stale_pages, write_pages

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "binderclip"
VERBS = sorted(path for path in (ROOT / "script").iterdir() if path.is_file())
# What a runtime printed is kept as it was, whatever machine it was recorded on.
RECORDED = {"fixtures", "vectors", "recordings"}

# Spelt in pieces, so that this file does not find itself. Homes of invented people are fine.
MACHINE_PATH = re.compile(
    r"(?<![\w.~-])/(?:(?:work|root)/\w|(?:home|Users)/(?!(?:me|you|agent|user)\b)\w)"
)
OUTSIDE_TREE = re.compile(r"(?:\.\./|[\s\"'`(])" + "shared" + "/")
REGISTRY = re.compile(
    r"files\.python" + r"hosted|pypi\." + r"org/simple|registry\.npm" + r"js|\"resolved\": \"http"
)
OPEN_WORK = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def text_of(path: Path) -> str:
    """The text of a file; a binary file has none."""
    data = path.read_bytes()
    return "" if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def places(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if pattern.search(line):
            yield f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"


def modules() -> list[tuple[Path, ast.Module]]:
    return [
        (path, ast.parse(path.read_text("utf-8"), str(path)))
        for path in sorted(SOURCE.rglob("*.py"))
    ]


def names_everything(caught: ast.expr | None) -> bool:
    """Whether a handler or `suppress` catches every exception there is."""
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(
        isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in names
    )


def swallows_everything(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        empty = all(isinstance(step, (ast.Pass, ast.Continue)) for step in node.body)
        return empty and names_everything(node.type)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name == "suppress" and any(map(names_everything, node.args))
    return False


def swallowing_lines(tree: ast.AST) -> list[int]:
    return [getattr(node, "lineno", 0) for node in ast.walk(tree) if swallows_everything(node)]


def pages_of(part: str) -> list[Path]:
    return sorted((ROOT / "docs" / part).glob("**/*.md"))


def links_of(page: Path) -> list[str]:
    """Relative link targets of a page, without fragments; code blocks hold no links."""
    found = LINK.findall(FENCE.sub("", page.read_text("utf-8")))
    relative = [link for link in found if not re.match(r"[a-z]+:|#", link)]
    return [link.split("#")[0] for link in relative]


def test_the_version_has_its_place_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## \[([^\]]+)\]", changelog, re.M)
    assert headings, "CHANGELOG.md has no release headings"
    assert headings[0] in {"Unreleased", binderclip.__version__}


def test_every_locked_package_is_pinned_by_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    packages = re.split(r"\n(?=[a-z0-9])", lock.strip())
    unpinned = [text.split("\n")[0] for text in packages if not re.match(r"\S+==\S+", text)]
    unhashed = [text.split("\n")[0] for text in packages if "--hash=sha256:" not in text]
    assert (unpinned, unhashed) == ([], [])


def test_the_lock_names_no_index_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert re.findall(r"^-.*|^.*://.*|^.* @ .*", lock, re.M) == []


@pytest.mark.parametrize(
    "pattern", [MACHINE_PATH, OUTSIDE_TREE, REGISTRY], ids=["machine path", "outside", "registry"]
)
def test_no_tracked_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    files = [path for path in tracked_files() if not RECORDED & set(path.parts)]
    assert [place for path in files for place in places(path, pattern)] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE_PATH, "see /" + "home/somebody/notes"),
        (MACHINE_PATH, "cd /" + "root/project"),
        (OUTSIDE_TREE, "copied from ../sha" + "red/data.json"),
        (REGISTRY, "https://registry.npm" + "js.org/x"),
    ],
)
def test_a_planted_machine_name_is_found(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)
    assert not pattern.search("/ho" + "me/me/project, ~/work/x and src/shared.py are fine")


def test_every_module_with_code_says_what_it_is_for() -> None:
    silent = [path for path, tree in modules() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def test_no_handler_swallows_every_exception() -> None:
    found = [f"{path}:{line}" for path, tree in modules() for line in swallowing_lines(tree)]
    assert found == []


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("try:\n    f()\nexcept:\n    pass", [3]),
        ("try:\n    f()\nexcept (OSError, Exception):\n    pass", [3]),
        ("with contextlib.suppress(BaseException):\n    f()", [1]),
        ("try:\n    f()\nexcept ProcessLookupError:\n    pass", []),
        ("try:\n    f()\nexcept Exception as problem:\n    report(problem)", []),
    ],
)
def test_a_swallowed_exception_is_found_by_its_line(code: str, lines: list[int]) -> None:
    assert swallowing_lines(ast.parse(code)) == lines


def test_source_holds_no_open_work() -> None:
    files = [path for path in tracked_files() if path.is_relative_to(SOURCE)]
    assert [place for path in files for place in places(path, OPEN_WORK)] == []


@pytest.mark.parametrize("verb", [*VERBS, ROOT / ".ci" / "run"], ids=lambda verb: verb.name)
def test_a_verb_is_an_executable_strict_bash_script(verb: Path) -> None:
    assert os.access(verb, os.X_OK)
    assert "\nset -euo pipefail\n" in verb.read_text("utf-8")
    subprocess.run(["bash", "-n", str(verb)], check=True)


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").is_file()


def test_relative_links_of_the_documentation_resolve() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in links_of(page)
        if not (page.parent / link).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("part", ["tutorial", "how-to", "reference", "explanation"])
def test_the_index_links_every_page_of_its_part(part: str) -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in links_of(index)}
    # A page of the index may be an index itself: that of the adapters is generated.
    linked |= {
        (page.parent / link).resolve()
        for page in linked
        if page.suffix == ".md"
        for link in links_of(page)
    }
    assert [page for page in pages_of(part) if page.resolve() not in linked] == []


def test_the_index_has_four_parts() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    parts = re.findall(r"^## (.+)$", index, re.M)
    assert parts == ["Tutorial", "How-to", "Reference", "Explanation"]


def test_a_reference_page_is_stale_until_it_is_written(tmp_path: Path) -> None:
    texts = {"errors.md": MARK + "new"}
    gone, handwritten = tmp_path / "gone.md", tmp_path / "http.md"
    gone.write_text(MARK + "its source was removed")
    handwritten.write_text("written by a person")
    stale = [tmp_path / "errors.md", gone]
    assert stale_pages(tmp_path, texts) == stale
    assert write_pages(tmp_path, texts) == stale
    assert stale_pages(tmp_path, texts) == []
    assert sorted(tmp_path.iterdir()) == [tmp_path / "errors.md", handwritten]


def test_the_commands_page_lists_nested_commands_with_their_options() -> None:
    @click.group()
    def program() -> None:
        """Runs agents."""

    @program.command("run")
    @click.option("--json/--no-json", help="Print JSON | nothing else.")
    @click.argument("prompt", required=False)
    def run(json: bool, prompt: str | None) -> None:
        """Run an agent now."""

    page = commands_page(program)
    assert "### binderclip run\n\n```\nbinderclip run [OPTIONS] [PROMPT]\n```" in page
    assert "| `--json`, `--no-json` | Print JSON \\| nothing else. |" in page
