"""The conformance suite passes a good adapter and names what is wrong with a bad one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from binderclip.sdk import CliAdapter, Manifest
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.testing.conformance import Requirement, check_adapter, requirements

SAMPLE = Path(__file__).parent / "sample_agent"


@pytest.mark.parametrize("requirement", requirements(load_adapter_from(str(SAMPLE))), ids=str)
def test_the_sample_agent_conforms(requirement: Requirement) -> None:
    requirement()


def test_what_an_adapter_does_not_have_is_left_out() -> None:
    """Optional parts are skipped by detection."""
    sample = requirements(load_adapter_from(str(SAMPLE)))
    numbers = [requirement.number for requirement in sample]
    assert numbers.count(20) == 4
    assert numbers.count(27) == 1

    class Bare(CliAdapter):
        """Use when testing. Don't use when not."""

        manifest = Manifest(id="bare", label="Bare")

    assert max(requirement.number for requirement in requirements(Bare())) < 20


def problems_after(tmp_path: Path, name: str, old: str, new: str) -> list[str]:
    """What the suite says about the sample agent after one change in one of its files."""
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample_agent"))
    text = (folder / name).read_text("utf-8")
    assert text.count(old) == 1
    (folder / name).write_text(text.replace(old, new), "utf-8")
    return check_adapter(load_adapter_from(str(folder)))


CODE = "__init__.py"
READ_TEXT = '        text = as_string(event.get("text"))\n'
SECRET = 'env["SAMPLE_SECRET"] = call.config.api_secret.get_secret_value()'
SECRET_IN_ARGV = "argv.append(call.config.api_secret.get_secret_value())"
STDIN = "*call.config.extra_args], env=env, stdin=call.prompt)"
RESUMED = 'if call.session:\n            argv += ["--resume", call.session["sessionId"]]'
RESUMED_UNSEEN = 'argv += (call.request.runtime.session_params or {"sessionId": ""}).values()'
BELIEVED = f'{READ_TEXT}        self.facts.unknown_session |= text.startswith("No session ")\n'
OUTLIVES = (
    f"{READ_TEXT}        text += globals().setdefault('seen', []).append(1) or str(len(seen))\n"
)
UNKNOWN_EVENT = "        handler = getattr(self"
UNKNOWN_EVENT_FORGETS = (
    "        if not hasattr(self, f\"_on_{event.get('type')}\"):\n"
    "            self.facts.session_id = None\n" + UNKNOWN_EVENT
)
DEFECTS = {
    "another id than the folder": (1, "adapter.toml", '"sample_agent"', '"other"'),
    "a doc that does not route": (2, "doc.md", "Don't use when", "Avoid when"),
    "a field without a description": (3, CODE, ', description="Act without asking."', ""),
    "a field of any type": (5, CODE, "skip_permissions: bool", "skip_permissions: Any"),
    "a danger that is on": (6, CODE, "dangerous(default=False", "dangerous(default=True"),
    "a secret in argv": (11, CODE, SECRET, SECRET_IN_ARGV),
    "the prompt in argv": (12, CODE, STDIN, "call.prompt], env=env)"),
    "no prompt at all": (12, CODE, STDIN, "], env=env)"),
    "a session passed on unseen": (13, CODE, RESUMED, RESUMED_UNSEEN),
    "another transcript": (20, CODE, "[Assistant(ts=ts, text=text)]", "[]"),
    "negative usage": (21, CODE, 'output=count(tokens.get("out"))', "output=-1"),
    "a result without its call": (22, CODE, "def _on_call", "def _on_calls"),
    "state that outlives a run": (23, CODE, READ_TEXT, OUTLIVES),
    "a run that junk can change": (25, CODE, UNKNOWN_EVENT, UNKNOWN_EVENT_FORGETS),
    "an exception on a strange value": (26, CODE, READ_TEXT, '        text = "" + event["text"]\n'),
    "a strange value in an entry": (26, CODE, READ_TEXT, '        text = event.get("text")\n'),
    "an agent that is believed": (27, CODE, READ_TEXT, BELIEVED),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(tmp_path: Path, defect: str) -> None:
    """A2, A8, D8, F1, S4, T4: each requirement catches what it is for."""
    number, name, old, new = DEFECTS[defect]
    found = problems_after(tmp_path, name, old, new)
    assert any(line.startswith(f"{number:02d} ") for line in found), found
