"""Making and changing agents: their configuration is checked by the adapter and holds no secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Connection

from binderclip.contract.agent import Agent
from binderclip.contract.company import Company
from binderclip.contract.errors import ConfigError
from binderclip.contract.ids import new_id
from binderclip.runs.control import Control, Nudge, nobody
from binderclip.runs.driver import Clock
from binderclip.runs.timers import next_beat
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.config import dangerous_fields, read_config
from binderclip.sdk.env import is_secret_name
from binderclip.store.agents import Agents
from binderclip.store.companies import Companies
from binderclip.store.database import Database
from binderclip.store.secrets import Secrets, replace_references, secret_name

LoadAdapter = Callable[[str], Adapter]
_WIDTH = {"none": 0, "allowlist": 1, "open": 2}
_PLACEHOLDER = "a-secret-that-is-set"


class Roster(Control):
    """The verbs on agents."""

    def __init__(
        self, db: Database, load: LoadAdapter, *, clock: Clock, nudge: Nudge = nobody
    ) -> None:
        super().__init__(db, clock=clock, nudge=nudge)
        self._load = load

    def create_agent(self, agent: Agent, actor: str) -> Agent:
        """Add an agent; plain secrets in its configuration are sealed and named instead."""
        agent = msgspec.structs.replace(agent, id=agent.id or new_id())
        adapter = self._load(agent.adapter_type)
        with self.db.writing() as connection:
            config = self._checked(connection, agent, adapter, agent.adapter_config)
            due = next_beat(agent.heartbeat_minutes, self.clock())
            made = msgspec.structs.replace(agent, adapter_config=config, next_beat_at=due)
            created = Agents(connection).create(made, self.now())
            self._note(connection, agent.company_id, actor, "created", ("agent", agent.id))
        return created

    def change_agent(self, id: str, actor: str, **fields: Any) -> Agent:
        """Set some fields; the configuration is replaced as a whole and checked again."""
        with self.db.writing() as connection:
            before = Agents(connection).get(id, lock=True)
            wanted = msgspec.structs.replace(before, **fields)
            if {"adapter_config", "adapter_type"} & set(fields):
                adapter = self._load(wanted.adapter_type)
                config = self._checked(connection, wanted, adapter, wanted.adapter_config)
                fields["adapter_config"] = config
            if "heartbeat_minutes" in fields or "status" in fields:
                fields["next_beat_at"] = next_beat(wanted.heartbeat_minutes, self.clock())
            if fields.get("status") == "active":
                fields.setdefault("paused_reason", None)
            after = Agents(connection).change(id, self.now(), **fields)
            names = sorted(fields)
            self._note(connection, after.company_id, actor, "changed", ("agent", id), fields=names)
        self.nudge()
        return after

    def _checked(
        self, connection: Connection, agent: Agent, adapter: Adapter, config: dict[str, Any]
    ) -> dict[str, Any]:
        """The configuration as it is kept: valid, within the company's policy, without secrets."""
        kept = {key: value for key, value in config.items() if value not in (None, "", [], {})}
        secrets = Secrets(connection, self.db.home)
        known = {secret.name for secret in secrets.list(agent.company_id)}
        values = read_config(adapter.Config, replace_references(kept, _told_by(known)))
        _refuse_beyond_policy(Companies(connection).get(agent.company_id), values)
        sealed = self._sealed(secrets, agent, adapter, kept)
        return {**sealed, "timeoutSec": values.timeout_sec, "graceSec": values.grace_sec}

    def _sealed(
        self, secrets: Secrets, agent: Agent, adapter: Adapter, config: dict[str, Any]
    ) -> dict[str, Any]:
        def seal(path: str, value: Any) -> Any:
            if not isinstance(value, str) or not value:
                return value
            name = f"agent/{agent.id}/{path}"
            secrets.set(agent.company_id, name, value, self.now())
            return {"secret": name}

        fields = {field.key for field in adapter.config_schema().fields if field.type == "secret"}
        secret_env = set(adapter.manifest.secret_env)
        sealed = {key: seal(key, item) if key in fields else item for key, item in config.items()}
        if isinstance(config.get("env"), dict):
            sealed["env"] = {
                key: seal(f"env/{key}", _plain(item))
                if (is_secret_name(key) or key in secret_env) and secret_name(item) is None
                else item
                for key, item in config["env"].items()
            }
        return sealed


def _plain(item: Any) -> Any:
    """The value of Paperclip's `{"type": "plain", "value": …}`."""
    return item["value"] if isinstance(item, dict) and "value" in item else item


def _told_by(known: set[str]) -> Callable[[str], str]:
    def told(name: str) -> str:
        if name not in known:
            raise ConfigError(
                f"The configuration names the secret {name!r}, which does not exist.",
                hint="Set the secret first.",
                fields={name: "unknown secret"},
            )
        return _PLACEHOLDER

    return told


def _refuse_beyond_policy(company: Company, config: Any) -> None:
    dangerous = dangerous_fields(config) if company.forbid_dangerous else []
    if dangerous:
        raise ConfigError(
            f"{company.name} forbids {', '.join(dangerous)}.",
            fields=dict.fromkeys(dangerous, "forbidden by the company"),
        )
    network = getattr(config, "network", None)
    if network in _WIDTH and _WIDTH[network] > _WIDTH[company.network]:
        raise ConfigError(
            f"{company.name} allows network {company.network} at most.",
            fields={"network": f"at most {company.network}"},
        )
