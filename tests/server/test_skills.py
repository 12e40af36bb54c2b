"""The skills of an agent by HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .conftest import Served


def agent(served: Served, type: str, config: dict[str, Any]) -> str:
    body = {"name": str(config["cwd"]), "adapterType": type, "adapterConfig": config}
    made: str = served.post("/api/agents", body, 201)["id"]
    return made


def test_an_agent_tells_the_skills_of_its_next_run(served: Served, tmp_path: Path) -> None:
    """K1, K2: what every run is handed, from where, and what the runtime finds by itself."""
    (tmp_path / ".claude/skills/deploy").mkdir(parents=True)
    (tmp_path / ".claude/skills/deploy/SKILL.md").write_text("---\nname: deploy\n---\n")
    made = agent(served, "claude_local", {"cwd": str(tmp_path)})
    told = served.get(f"/api/agents/{made}/skills")
    assert (told["supported"], told["problem"]) == (True, None)
    assert "deploy" in told["found"]
    names = {skill["name"]: skill for skill in told["handed"]}
    assert set(names) == {"paperclip", "paperclip-create-agent"}
    assert (Path(names["paperclip"]["source"]) / "SKILL.md").is_file()
    assert names["paperclip"]["description"]


def test_an_adapter_without_skills_hands_none(served: Served, tmp_path: Path) -> None:
    """C1: decided by the capability."""
    made = agent(served, "process", {"command": "true", "cwd": str(tmp_path)})
    told = served.get(f"/api/agents/{made}/skills")
    assert told == {"supported": False, "handed": [], "found": [], "problem": None}


def test_what_keeps_the_adapter_from_looking_is_told(served: Served, tmp_path: Path) -> None:
    """E2: an expected finding is an answer, not a failure."""
    place = tmp_path / "gone"
    place.mkdir()
    made = agent(served, "claude_local", {"cwd": str(place)})
    place.rmdir()
    told = served.get(f"/api/agents/{made}/skills")
    assert "gone" in told["problem"]
    assert told["handed"]
