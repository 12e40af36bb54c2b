"""A2, C1, P6: an adapter's metadata, read without importing its code."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.contract.check import Check, Level, verdict
from binderclip.contract.errors import ContractError
from binderclip.contract.manifest import (
    Capabilities,
    Capture,
    Manifest,
    Model,
    humanised,
    read_manifest,
)
from binderclip.contract.wire import to_plain

FULL = """
id = "my_agent"
label = "My agent"
version = "3"
runtime = "mine"
command = "my-agent"
passEnv = ["MY_KEY"]
secretEnv = ["MY_LOGIN"]
usageTold = "step"
structured = false
models = [{ id = "m-1", label = "M 1" }]

[capture]
stdout = "pipe"

[capabilities]
supportsLocalAgentJwt = true
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "adapter.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_manifest_is_data(tmp_path: Path) -> None:
    """A2: id, label, models and flags from `adapter.toml`, in camelCase."""
    assert read_manifest(written(tmp_path, FULL)) == Manifest(
        id="my_agent",
        label="My agent",
        version="3",
        runtime="mine",
        command="my-agent",
        pass_env=("MY_KEY",),
        secret_env=("MY_LOGIN",),
        capture=Capture(stdout="pipe", stderr="pipe"),
        capabilities=Capabilities(supports_local_agent_jwt=True),
        usage_told="step",
        structured=False,
        models=(Model(id="m-1", label="M 1"),),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id = ", "cannot be used"),
        ('id = "x"', "label"),
        ('id = "x"\nlabel = "X"\nlable = "typo"', "lable"),
        ('id = "x"\nlabel = "X"\nusageTold = "often"', "usageTold"),
        ('id = "My-Agent"\nlabel = "X"', "snake_case"),
        ('id = "../x"\nlabel = "X"', "snake_case"),
    ],
)
def test_every_mistake_names_the_file_and_the_problem(tmp_path: Path, text: str, told: str) -> None:
    """P5: a bad manifest is refused with a reason."""
    path = written(tmp_path, text)
    with pytest.raises(ContractError, match=told) as caught:
        read_manifest(path)
    assert str(path) in caught.value.message


def test_a_missing_manifest_is_a_contract_error(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be used"):
        read_manifest(tmp_path / "adapter.toml")


@pytest.mark.parametrize(
    ("kind", "label"),
    [("my_k8s_agent", "My K8s Agent"), ("claude_local", "Claude Local"), ("__x_", "X")],
)
def test_unknown_types_get_a_readable_label(kind: str, label: str) -> None:
    """P6: shown with a humanised label."""
    assert humanised(kind) == label


def test_flags_have_the_contracts_defaults() -> None:
    """C1: all off, and the usual key for instructions."""
    assert to_plain(Capabilities()) == {
        "supportsLocalAgentJwt": False,
        "supportsInstructionsBundle": False,
        "instructionsPathKey": "instructionsFilePath",
        "requiresMaterializedRuntimeSkills": False,
        "supportsSkills": False,
    }


@pytest.mark.parametrize(
    ("levels", "status"),
    [
        ([], "pass"),
        (["info", "info"], "pass"),
        (["info", "warn"], "warn"),
        (["warn", "error", "info"], "fail"),
    ],
)
def test_the_worst_check_decides(levels: list[Level], status: str) -> None:
    """E1: fail on any error, warn on any warning, else pass."""
    assert verdict([Check(code="c", level=level, message="m") for level in levels]) == status
