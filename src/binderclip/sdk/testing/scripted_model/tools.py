"""Translates a script's neutral calls into the tools that the client itself declared.

One script fits every client: names and argument names are looked up, required rest is filled in.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, TypeAlias

from .exchange import Asked, DeclaredTool, ToolUse
from .script import Call, Edit, Json, Read, Shell, Tool, Write

Wanted: TypeAlias = dict[str, str]

# Compared without case and punctuation; the earlier name wins where a client has several.
_NAMES: dict[type, tuple[str, ...]] = {
    Shell: (
        *("bash", "execcommand", "shellcommand", "shell", "localshell", "runshellcommand"),
        *("execute", "executecommand", "runcommand", "runcommands", "terminal", "executebash"),
    ),
    Read: ("read", "readfile", "view", "viewfile", "readfiles", "readtextfile"),
    Write: ("write", "writefile", "create", "createfile", "writetofile"),
    Edit: ("edit", "replace", "editfile", "strreplace", "searchreplace", "replaceinfile"),
}
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "command": ("command", "cmd", "commands", "script"),
    "path": (
        *("filepath", "absolutepath", "path", "targetfile", "filename", "file"),
        *("paths", "files"),
    ),
    "content": ("content", "contents", "filetext", "text", "newtext"),
    "old": ("oldstring", "oldtext", "oldstr", "old", "search"),
    "new": ("newstring", "newtext", "newstr", "new", "replace"),
}


_REPLACE = (
    "import pathlib, sys; file = pathlib.Path(sys.argv[1]); "
    "file.write_text(file.read_text().replace(sys.argv[2], sys.argv[3], 1))"
)


class NoSuchTool(LookupError):
    """The client declared nothing that can do what the script asks for."""


def translate(call: Call, asked: Asked) -> ToolUse:
    """The call of one of the client's own tools that does what `call` says."""
    if isinstance(call, Tool):
        return ToolUse(asked.tool(call.name) or DeclaredTool(call.name), call.arguments)
    tool = _find(_NAMES[type(call)], asked)
    if tool is not None:
        return ToolUse(tool, _arguments(tool, _wanted(call)))
    if isinstance(call, Shell):
        names = ", ".join(tool.name for tool in asked.tools) or "none"
        raise NoSuchTool(f"the client declared no tool for a shell command; it has: {names}")
    patcher = asked.tool("apply_patch")
    if patcher is not None and not isinstance(call, Read):
        return ToolUse(patcher, _patch_arguments(patcher, _patch(call)))
    return translate(Shell(_command(call)), asked)


def smallest_instance(schema: Json) -> Any:
    """The smallest value that satisfies the common parts of a JSON schema."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return smallest_instance(schema[several][0])
    kind = _kind(schema)
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: smallest_instance(properties.get(name, {})) for name in schema.get("required", ())
        }
    if kind == "array":
        return [smallest_instance(schema.get("items", {}))] * schema.get("minItems", 0)
    return {"integer": 1, "number": 1, "boolean": False, "null": None}.get(kind, "scripted")


def _kind(schema: Json) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return str(kind[0] if isinstance(kind, list) else kind).lower()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _find(names: tuple[str, ...], asked: Asked) -> DeclaredTool | None:
    declared = {_plain(tool.name): tool for tool in asked.tools if tool.kind != "custom"}
    return next((declared[name] for name in names if name in declared), None)


def _wanted(call: Shell | Read | Write | Edit) -> Wanted:
    return {name: getattr(call, name) for name in call.__struct_fields__}


def _arguments(tool: DeclaredTool, wanted: Wanted) -> Json:
    if tool.kind == "local_shell":
        return {"command": ["bash", "-lc", wanted["command"]]}
    properties = tool.parameters.get("properties", {})
    arguments = _matched(properties, wanted)
    for name in tool.parameters.get("required", ()):
        if name not in arguments:
            arguments[name] = _required(name, properties.get(name, {}), wanted)
    return arguments


def _matched(properties: Json, wanted: Wanted) -> Json:
    known = {_plain(name): name for name in properties}
    arguments: Json = {}
    for role, value in wanted.items():
        name = next((known[other] for other in _ARGUMENTS[role] if other in known), None)
        if name is not None:
            arguments[name] = _shaped(role, value, properties[name])
        elif not properties:
            arguments[role] = value
    return arguments


def _shaped(role: str, value: str, schema: Json) -> Any:
    if _kind(schema) != "array":
        return value
    items = schema.get("items", {})
    if _kind(items) == "object":
        return [_matched(items.get("properties", {}), {role: value})]
    # A list that is one command takes a program and its arguments; "commands" takes whole lines.
    is_argv = role == "command" and "commands" not in str(schema.get("description", "")).lower()
    return ["bash", "-lc", value] if is_argv else [value]


def _required(name: str, schema: Json, wanted: Wanted) -> Any:
    items = schema.get("items", {})
    if _kind(schema) == "array" and _kind(items) == "object":
        return [_matched(items.get("properties", {}), wanted)]
    if "timeout" in name.lower():
        return 120_000 if "milli" in str(schema).lower() else 120
    return smallest_instance(schema)


def _patch(call: Write | Edit) -> str:
    if isinstance(call, Write):
        change = f"*** Add File: {call.path}\n{_prefixed('+', call.content)}"
    else:
        lines = _prefixed("-", call.old) + _prefixed("+", call.new)
        change = f"*** Update File: {call.path}\n@@\n{lines}"
    return f"*** Begin Patch\n{change}*** End Patch"


def _prefixed(sign: str, text: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    return "".join(f"{sign}{line}\n" for line in lines)


def _patch_arguments(patcher: DeclaredTool, patch: str) -> Json | str:
    if patcher.kind == "custom":
        return patch
    return {next(iter(patcher.parameters.get("properties", {})), "input"): patch}


def _command(call: Read | Write | Edit) -> str:
    path = shlex.quote(call.path)
    if isinstance(call, Read):
        return f"cat {path}"
    if isinstance(call, Write):
        return f"printf %s {shlex.quote(call.content)} > {path}"
    return shlex.join(["python3", "-c", _REPLACE, call.path, call.old, call.new])
