"""`adapters new`: a folder that passes its own tests, to be changed step by step."""

from __future__ import annotations

import json
import re
from pathlib import Path

from binderclip.contract.errors import AdapterLoadError
from binderclip.contract.manifest import TYPE_NAME, humanised
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.testing.fixtures import cases_of, observed

TEMPLATE = Path(__file__).with_name("template")
SKILL = Path(".agents") / "skills" / "create-agent-adapter" / "SKILL.md"


def write_adapter(name: str, folder: Path) -> Path:
    """Write the folder of a new adapter below another one; its path."""
    type = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    if not TYPE_NAME.fullmatch(type):
        raise AdapterLoadError(f"{name!r} cannot be a type.", hint="Take words, such as my-agent.")
    target = folder.absolute() / type
    if target.exists():
        raise AdapterLoadError(f"{target} exists already.", hint="Choose another name or place.")
    words = {"__TYPE__": type, "__LABEL__": humanised(type), "__CLASS__": _class_name(type)}
    for source in sorted(TEMPLATE.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            _write(source, target, words)
    _expect(target)
    return target


def _write(source: Path, target: Path, words: dict[str, str]) -> None:
    place = source.relative_to(TEMPLATE)
    name = place.with_name(place.name.removesuffix(".tmpl"))
    path = target / (SKILL if name.name == "SKILL.md" else name)
    text = source.read_text("utf-8")
    for word, value in words.items():
        text = text.replace(word, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    if text.startswith("#!"):
        path.chmod(0o755)


def _expect(target: Path) -> None:
    """Write what the sample recordings become; an author reviews his own."""
    adapter = load_adapter_from(str(target))
    for case in cases_of(adapter):
        told = json.dumps(observed(adapter, case), indent=1, ensure_ascii=False) + "\n"
        (case.folder / "expected.json").write_text(told, "utf-8")


def _class_name(type: str) -> str:
    return "".join(word.capitalize() for word in type.split("_"))
