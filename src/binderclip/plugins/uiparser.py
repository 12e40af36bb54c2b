"""A package's `ui-parser.js`: found, checked, tried, and the reason kept if it is not used (U1-U5).

A package that declares none is no failure; a parser that cannot be used is refused once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from binderclip.contract.errors import AdapterError
from binderclip.plugins.described import ParserReport
from binderclip.plugins.parsing import JsParser

LARGEST = 50 * 1024
MAJOR = "1"
_CONDITIONS = ("browser", "import", "default", "node", "require")
_IMPORT = re.compile(r"""^\s*(?:import|export)\b[^;\n"'`(]*?(?:\bfrom\s*)?["']([^"']+)["']""", re.M)
_REQUIRE = re.compile(r"""\brequire\(\s*["']([^"']+)["']""")
_AWAIT = re.compile(r"^(?:(?:const|let|var)\s[^=\n]*=\s*|export\s[^=\n]*=\s*)?await\s", re.M)
PROBE = (
    "",
    "plain text",
    "[paperclip] a notice",
    '{"type":"assistant","text":"hello"}',
    '{"type":"tool_use","name":"shell","input":{"command":"ls"}}',
    '{"type":',
    "null",
    "\u250a $ ls \u2014 done 0.3s",
    "\ud83d\udcac \u2028 \u00e9",
)
"""Lines that every parser must survive."""
TS = "2000-01-01T00:00:00.000Z"


def declared_by_package(facts: dict[str, Any]) -> tuple[str | None, str | None]:
    """File and contract version that a `package.json` declares."""
    exports = facts.get("exports")
    file = _target(exports.get("./ui-parser")) if isinstance(exports, dict) else None
    own = facts.get("paperclip")
    version = own.get("adapterUiParser") if isinstance(own, dict) else None
    return file, str(version) if version is not None else None


def examine(
    folder: Path, file: str | None, version: str | None, lines: Sequence[str] = PROBE
) -> ParserReport:
    """Resolve and try a parser; the report says whether it is used, and why not."""
    if file is None:
        return ParserReport()
    path = (folder / file).resolve()
    known: dict[str, Any] = {"path": file, "version": version}
    if not path.is_relative_to(folder.resolve()):
        return _refused("its path leads outside of the package", known)
    if version is not None and version.split(".")[0] != MAJOR:
        return _refused(f"it speaks version {version} of the contract, not {MAJOR}.x", known)
    try:
        data = path.read_bytes()
        source = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        return _refused(f"{file} cannot be read: {problem}", known)
    known |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return _tried(source, known, lines)


def read_source(folder: Path, report: ParserReport) -> str | None:
    """The parser's text, if it may be used and is still what was examined."""
    if report.state != "ready" or report.path is None:
        return None
    try:
        data = (folder / report.path).resolve().read_bytes()
    except OSError:
        return None
    return data.decode("utf-8") if hashlib.sha256(data).hexdigest() == report.sha256 else None


def imports_of(source: str) -> list[str]:
    """Modules that the source wants; a parser may want none."""
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    code = re.sub(r"^\s*//.*$", "", code, flags=re.M)
    return _IMPORT.findall(code) + _REQUIRE.findall(code)


def _tried(source: str, known: dict[str, Any], lines: Sequence[str]) -> ParserReport:
    if known["size"] > LARGEST:
        return _refused(f"it has {known['size']} bytes, more than {LARGEST}", known)
    if wanted := imports_of(source):
        return _refused(f"it imports {wanted[0]!r}; a parser may import nothing", known)
    if _AWAIT.search(source):
        return _refused("it awaits at its top level", known)
    parser = JsParser(source)
    try:
        told = parser.load()
    except AdapterError as problem:
        reason = problem.message.removeprefix("ui-parser failed in load: ")
        return _refused(f"it cannot be loaded: {reason}", known)
    finally:
        parser.process.close()
    warnings = [*_name_warning(told), *_behaviour(source, lines)]
    if any(warning.startswith("it hangs") for warning in warnings):
        return _refused(warnings[-1], known)
    if known["version"] is None:
        warnings.append("package.json does not say which version of the contract it speaks")
    return ParserReport(
        state="ready",
        form=told["form"],
        exports=tuple(told["exports"]),
        warnings=tuple(warnings),
        **known,
    )


def is_deterministic(report: ParserReport) -> bool:
    return not any(warning.startswith("not deterministic") for warning in report.warnings)


def _name_warning(told: dict[str, Any]) -> list[str]:
    if told["use"] in ("createStdoutParser", "parseStdoutLine"):
        return []
    return [f"it exports {told['use']}; the contract's name is parseStdoutLine"]


def _behaviour(source: str, lines: Sequence[str]) -> list[str]:
    """Warnings from two fresh runs over the same lines."""
    outcomes = []
    warnings = []
    for _ in range(2):
        parser = JsParser(source)
        parser.prepare([("stdout", line, TS) for line in lines])
        answers = [answer for _, answer in parser._answers]
        parser.process.close()
        if parser.broken:
            return [f"it hangs or crashes on simple lines: {parser.broken}"]
        outcomes.append(json.dumps(answers))
    if outcomes[0] != outcomes[1]:
        warnings.append("not deterministic: two runs over the same lines differ")
    thrown = sum(isinstance(a, dict) and set(a) == {"error"} for a in answers)
    if thrown:
        warnings.append(f"it throws on {thrown} of {len(lines)} simple lines")
    return warnings


def _refused(reason: str, known: dict[str, Any]) -> ParserReport:
    return ParserReport(state="refused", reason=reason, **known)


def _target(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in (*_CONDITIONS, *value):
            if name != "types" and (found := _target(value.get(name))):
                return found
    return None
