"""Neutral calls become calls of the tools that a client declared."""

from typing import Any

import pytest

from binderclip.sdk.testing.scripted_model import Edit, Read, Shell, Tool, Write
from binderclip.sdk.testing.scripted_model.exchange import Asked, DeclaredTool, ToolKind
from binderclip.sdk.testing.scripted_model.script import Call
from binderclip.sdk.testing.scripted_model.tools import NoSuchTool, smallest_instance, translate

TEXT = {"type": "string"}


def tool(name: str, kind: ToolKind = "function", /, **properties: Any) -> DeclaredTool:
    required = list(properties)
    return DeclaredTool(name, {"properties": properties, "required": required}, kind)


def called(call: Call, *tools: DeclaredTool) -> tuple[str, Any]:
    use = translate(call, Asked(model="m", stream=True, tools=tools))
    return use.tool.name, use.arguments


@pytest.mark.parametrize(
    ("call", "declared", "arguments"),
    [
        (Shell("ls"), tool("Bash", command=TEXT), {"command": "ls"}),
        (Shell("ls"), tool("exec_command", cmd=TEXT), {"cmd": "ls"}),
        (
            Shell("ls"),
            tool("shell", command={"type": "array", "items": TEXT}),
            {"command": ["bash", "-lc", "ls"]},
        ),
        (
            Shell("ls"),
            tool("run_commands", commands={"type": "array", "description": "Commands to run"}),
            {"commands": ["ls"]},
        ),
        (
            Shell("ls"),
            DeclaredTool("local_shell", {}, "local_shell"),
            {"command": ["bash", "-lc", "ls"]},
        ),
        (
            Shell("ls"),
            tool("run_shell_command", command=TEXT, is_background={"type": "boolean"}),
            {"command": "ls", "is_background": False},
        ),
        (Read("a"), tool("read_file", absolute_path=TEXT), {"absolute_path": "a"}),
        (Read("a"), tool("read", filePath=TEXT), {"filePath": "a"}),
        (
            Read("a"),
            tool("read_files", files={"type": "array", "items": {"properties": {"path": TEXT}}}),
            {"files": [{"path": "a"}]},
        ),
        (
            Write("a", "b"),
            tool("create", path=TEXT, file_text=TEXT),
            {"path": "a", "file_text": "b"},
        ),
        (
            Edit("a", "b", "c"),
            tool("replace", file_path=TEXT, old_string=TEXT, new_string=TEXT),
            {"file_path": "a", "old_string": "b", "new_string": "c"},
        ),
        (
            Edit("a", "b", "c"),
            tool(
                "edit",
                path=TEXT,
                edits={
                    "type": "array",
                    "items": {"properties": {"oldText": TEXT, "newText": TEXT}},
                },
            ),
            {"path": "a", "edits": [{"oldText": "b", "newText": "c"}]},
        ),
    ],
)
def test_a_call_takes_the_names_of_the_declared_tool(
    call: Call, declared: DeclaredTool, arguments: Any
) -> None:
    assert called(call, tool("other", x=TEXT), declared) == (declared.name, arguments)


def test_a_required_time_limit_leaves_room_for_the_command() -> None:
    seconds = tool("Execute", command=TEXT, timeout={"type": "integer"})
    assert called(Shell("ls"), seconds)[1]["timeout"] == 120
    limit = {"type": "integer", "description": "in milliseconds"}
    assert (
        called(Shell("ls"), tool("Execute", command=TEXT, timeout=limit))[1]["timeout"] == 120_000
    )


def test_without_a_writing_tool_the_patch_tool_is_used() -> None:
    patcher = DeclaredTool("apply_patch", {}, "custom")
    name, patch = called(Write("/w/a", "x\n\ny\n"), patcher)
    assert name == "apply_patch"
    assert patch == "*** Begin Patch\n*** Add File: /w/a\n+x\n+\n+y\n*** End Patch"
    assert "*** Update File: /w/a\n@@\n-x\n+z\n" in called(Edit("/w/a", "x", "z"), patcher)[1]
    as_function = tool("apply_patch", patchText=TEXT)
    assert list(called(Write("/w/a", "x"), as_function)[1]) == ["patchText"]


def test_without_any_file_tool_the_shell_is_used() -> None:
    bash = tool("Bash", command=TEXT)
    assert called(Read("/w/a b"), bash) == ("Bash", {"command": "cat '/w/a b'"})
    assert called(Write("/w/a", "x\n"), bash) == ("Bash", {"command": "printf %s 'x\n' > /w/a"})
    assert called(Edit("/w/a", "x", "y"), bash)[1]["command"].endswith("/w/a x y")


def test_without_a_shell_the_script_is_told_which_tools_there_are() -> None:
    with pytest.raises(NoSuchTool, match=r"it has: search, fetch"):
        called(Read("a"), tool("search"), tool("fetch"))


def test_an_exact_tool_is_called_as_it_is_even_if_unknown() -> None:
    assert called(Tool("Nope", {"x": 1}), tool("Bash")) == ("Nope", {"x": 1})


def test_the_smallest_instance_satisfies_the_schema() -> None:
    schema = {
        "type": "object",
        "required": ["kind", "title", "score", "tags", "maybe", "ok", "fixed"],
        "properties": {
            "kind": {"enum": ["b", "c"]},
            "title": TEXT,
            "score": {"type": ["number", "null"]},
            "tags": {"type": "ARRAY", "items": {"type": "integer"}, "minItems": 2},
            "maybe": {"anyOf": [{"type": "null"}, TEXT]},
            "ok": {"type": "boolean"},
            "fixed": {"const": 7},
            "optional": TEXT,
        },
    }
    assert smallest_instance(schema) == {
        "kind": "b",
        "title": "scripted",
        "score": 1,
        "tags": [1, 1],
        "maybe": None,
        "ok": False,
        "fixed": 7,
    }
