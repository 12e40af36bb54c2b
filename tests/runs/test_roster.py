"""Agents: their configuration is checked, their secrets are sealed and never shown."""

from __future__ import annotations

import stat
from typing import Any

import pytest

from binderclip.contract.errors import AdapterNotFound, ConfigError, Conflict, NotFound, StoreError
from binderclip.store.activity import Activities
from binderclip.store.agents import Agents
from binderclip.store.companies import Companies
from binderclip.store.secrets import Secrets, replace_references
from tests.runs.company import NOTHING, Scene

VALUE = "hunter2-hunter2"


def open_secret(scene: Scene, name: str) -> str:
    with scene.db.reading() as connection:
        return Secrets(connection, scene.db.home).open("local", name)


def set_secret(scene: Scene, name: str, value: str = VALUE) -> None:
    with scene.db.writing() as connection:
        Secrets(connection, scene.db.home).set("local", name, value, scene.desk.now())


def test_an_agent_is_made_with_its_limits_written_down(scene: Scene) -> None:
    """F2: timeoutSec and graceSec are always written, empty fields left out, unknown ones kept."""
    agent = scene.agent(adapter_config={**NOTHING, "promptTemplate": "", "strange": 1})
    assert agent.adapter_config == {**NOTHING, "strange": 1, "timeoutSec": 14400.0, "graceSec": 15}
    with scene.db.reading() as connection:
        assert Agents(connection).get(agent.id) == agent
        assert [done.verb for done in Activities(connection).list("local")] == ["created"]


def test_a_bad_configuration_is_refused_by_field(scene: Scene) -> None:
    """F1: bad config names field and problem."""
    with pytest.raises(ConfigError) as caught:
        scene.agent(adapter_config={"command": "x", "timeoutSec": "soon"})
    assert "timeoutSec" in caught.value.fields


def test_an_unknown_adapter_is_refused(scene: Scene) -> None:
    """P6: it never runs as something else."""
    with pytest.raises(AdapterNotFound):
        scene.agent(adapter_type="nothing_local")


def test_names_are_taken_once(scene: Scene) -> None:
    agent = scene.agent(name="Ada")
    with pytest.raises(Conflict, match="Ada"):
        scene.agent(name="Ada")
    scene.roster.change_agent(agent.id, "person", status="archived")
    assert scene.agent(name="Ada").id != agent.id


def test_plain_secrets_are_sealed_and_named_instead(scene: Scene) -> None:
    """D7: secrets are stored encrypted; the configuration holds references only."""
    env: dict[str, Any] = {"API_KEY": VALUE, "COLOUR": "blue"}
    agent = scene.agent(adapter_config={**NOTHING, "env": env})
    name = f"agent/{agent.id}/env/API_KEY"
    assert agent.adapter_config["env"] == {"API_KEY": {"secret": name}, "COLOUR": "blue"}
    assert open_secret(scene, name) == VALUE
    same = scene.roster.change_agent(agent.id, "person", adapter_config=agent.adapter_config)
    assert same.adapter_config == agent.adapter_config


def test_a_secret_field_of_an_adapter_is_sealed(scene: Scene) -> None:
    config = {"url": "http://127.0.0.1:9/", "authToken": VALUE}
    agent = scene.agent(adapter_type="http", adapter_config=config)
    assert agent.adapter_config["authToken"] == {"secret": f"agent/{agent.id}/authToken"}


def test_a_reference_to_a_secret_that_is_not_there_is_refused(scene: Scene) -> None:
    config = {**NOTHING, "env": {"DATABASE": {"secret": "db"}}}
    with pytest.raises(ConfigError, match="'db'"):
        scene.agent(adapter_config=config)
    set_secret(scene, "db")
    assert scene.agent(adapter_config=config).adapter_config["env"] == config["env"]


def test_a_company_forbids_dangerous_flags(scene: Scene) -> None:
    """A12: a company can forbid them."""
    with scene.db.writing() as connection:
        Companies(connection).change("local", scene.desk.now(), forbid_dangerous=True)
    with pytest.raises(ConfigError, match="forbids dangerouslySkipPermissions"):
        scene.agent(
            adapter_type="claude_local", adapter_config={"dangerouslySkipPermissions": True}
        )


def test_the_key_of_the_secrets_is_private(scene: Scene) -> None:
    set_secret(scene, "one")
    key = scene.db.home.path / "secrets.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    set_secret(scene, "two")
    assert key.read_bytes() == before


def test_secrets_tell_their_names_only(scene: Scene) -> None:
    set_secret(scene, "key", "first value")
    set_secret(scene, "key", VALUE)
    with scene.db.reading() as connection:
        (view,) = Secrets(connection, scene.db.home).list("local")
    assert view.name == "key"
    assert VALUE not in repr(view)
    assert open_secret(scene, "key") == VALUE


def test_a_removed_secret_is_gone(scene: Scene) -> None:
    set_secret(scene, "key")
    with scene.db.writing() as connection:
        Secrets(connection, scene.db.home).remove("local", "key")
    with pytest.raises(NotFound):
        open_secret(scene, "key")


def test_without_its_key_a_secret_cannot_be_opened(scene: Scene) -> None:
    set_secret(scene, "key")
    path = scene.db.home.path / "secrets.key"
    path.unlink()
    with pytest.raises(StoreError, match="missing"):
        open_secret(scene, "key")
    set_secret(scene, "other")
    with pytest.raises(StoreError, match="cannot be opened"):
        open_secret(scene, "key")


@pytest.mark.parametrize(
    "reference",
    [
        {"secret": "n"},
        {"type": "secret_ref", "secretId": "n", "version": "latest"},
        {"type": "secret_ref", "name": "n"},
    ],
)
def test_references_are_replaced_wherever_they_stand(reference: dict[str, str]) -> None:
    config = {"env": {"A": reference}, "list": [reference, 1], "secret": "n", "text": "n"}
    assert replace_references(config, lambda name: f"<{name}>") == {
        "env": {"A": "<n>"},
        "list": ["<n>", 1],
        "secret": "n",
        "text": "n",
    }
