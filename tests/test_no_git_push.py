"""No code of binderclip pushes: commits travel as bundles, and a remote is never needed (W7)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("src", "script", ".ci")
OTHER_SUFFIXES = {".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ""}

ALLOWED = re.compile(r"(?:#|//)\s*binderclip:allow-git-push:\s*\S")
# Options may stand between, another command may not.
IN_TEXT = re.compile(r"\bgit\b(?:(?![;|&\n])[^'\"])*?\spush\b")
IN_LIST = re.compile(r"""(['"])git\1\s*,.*(['"])push\2|\bgit\w*\(\s*\[?\s*(['"])push\3""", re.I)
COMMENT = re.compile(r"(?:^|\s)(?:#|//).*$")


def words(nodes: list[ast.expr]) -> list[str]:
    """The literal strings of a sequence, those of lists inside it included."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, (ast.List, ast.Tuple)):
            found += words(node.elts)
    return found


def literal_text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "x".join(words(node.values))
    return ""


def callee(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def names_git(node: ast.expr) -> bool:
    """Whether the first word of a command is git: its name, its path, or a variable with it."""
    if isinstance(node, ast.Constant):
        return str(node.value).rpartition("/")[2] == "git"
    return "git" in ast.unparse(node).lower()


def pushes(node: ast.AST) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return "push" in words(node.elts) and names_git(node.elts[0])
    if isinstance(node, ast.Call):
        found = words(node.args)
        return "push" in found and ("git" in found or "git" in callee(node).lower())
    return bool(IN_TEXT.search(literal_text(node)))


def docstrings(tree: ast.AST) -> set[int]:
    """Strings that stand alone are prose."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def python_lines(text: str) -> Iterator[int]:
    tree, lines = ast.parse(text), text.split("\n")
    prose = docstrings(tree)
    for node in ast.walk(tree):
        if not pushes(node) or (id(node) in prose and not isinstance(node, ast.Call)):
            continue
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        if not any(ALLOWED.search(line) for line in lines[first - 1 : last]):
            yield first


def plain_lines(text: str) -> Iterator[int]:
    for number, line in enumerate(text.split("\n"), 1):
        code = COMMENT.sub("", line)
        if (IN_TEXT.search(code) or IN_LIST.search(code)) and not ALLOWED.search(line):
            yield number


def pushing_lines(path: Path) -> list[int]:
    if path.suffix == ".py":
        return sorted(set(python_lines(path.read_text("utf-8"))))
    if path.suffix in OTHER_SUFFIXES:
        return list(plain_lines(path.read_text("utf-8", "replace")))
    return []


def test_no_shipped_code_pushes() -> None:
    """W7: src/ and shipped scripts hold no push, in string or list form."""
    files = [path for part in SHIPPED for path in sorted((ROOT / part).rglob("*"))]
    code = [path for path in files if path.is_file() and "__pycache__" not in path.parts]
    assert [f"{path}:{line}" for path in code for line in pushing_lines(path)] == []


@pytest.mark.parametrize(
    ("name", "code", "lines"),
    [
        ("a.py", 'run(["git", "push"])', [1]),
        ("a.py", 'argv = [\n    "git",\n    "-C", where,\n    "push",\n]', [1]),
        ("a.py", 'x = ("/usr/bin/git", "push", "origin")', [1]),
        ("a.py", 'x = [GIT, "push"]', [1]),
        ("a.py", 'x = [*self.git_command, "push"]', [1]),
        ("a.py", 'os.system("git push origin main")', [1]),
        ("a.py", 'os.system(f"git -C {where} push")', [1]),
        ("a.py", 'run("git", "push")', [1]),
        ("a.py", '\nrun_git(where, "push")', [2]),
        ("a.py", 'self.git(["push", "--force"])', [1]),
        ("a.sh", "set -e\ngit -C x push origin", [2]),
        ("verb", "git push", [1]),
        ("a.mjs", 'spawn("git", ["push"])', [1]),
        ("a.py", '"""Never runs git push."""', []),
        ("a.py", "x = 1  # git push would need a remote", []),
        ("a.py", 'stack.push("git")', []),
        ("a.py", 'names = ["digit", "push"]', []),
        ("a.py", 'note = "git fetch; push it"', []),
        ("a.py", 'git("push")  # binderclip:allow-git-push: the operator asked', []),
        ("a.py", 'git("push")  # binderclip:allow-git-push:', [1]),
        ("a.sh", "# git push is for people", []),
        ("a.sh", "git push # binderclip:allow-git-push: release", []),
        ("a.md", "git push", []),
    ],
)
def test_a_push_is_found_in_every_form_unless_a_reason_is_given(
    tmp_path: Path, name: str, code: str, lines: list[int]
) -> None:
    """W7: string and list forms count, comments and docs do not, the opt-in needs a reason."""
    path = tmp_path / name
    path.write_text(code, "utf-8")
    assert pushing_lines(path) == lines
