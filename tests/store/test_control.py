"""Rows of the control plane: companies, agents, tasks, environments, costs, activity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from binderclip.contract.agent import Agent, Budget
from binderclip.contract.company import LOCAL_COMPANY, Environment
from binderclip.contract.errors import Conflict, NotFound
from binderclip.contract.ids import floor_id, new_id
from binderclip.contract.run import Usage
from binderclip.contract.task import Comment, Task
from binderclip.store.activity import Activities
from binderclip.store.agents import Agents
from binderclip.store.companies import Companies
from binderclip.store.costs import Costs, period_start
from binderclip.store.database import Database
from binderclip.store.environments import Environments
from binderclip.store.home import Home
from binderclip.store.operations import Operations
from binderclip.store.runs import RunStore
from binderclip.store.tasks import Tasks
from tests.store.fabricate import ENDED, order, outcome, result

NOW = "2026-03-01T12:00:00.000Z"
LATER = "2026-03-01T13:00:00.000Z"


@pytest.fixture
def db(any_home: Home) -> Iterator[Database]:
    with Database.open(any_home) as database:
        yield database


@pytest.fixture
def connection(db: Database) -> Iterator[Connection]:
    with db.writing() as connection:
        yield connection


def task(title: str = "work", **fields: Any) -> Task:
    return Task(id="", company_id=LOCAL_COMPANY, identifier="", title=title, **fields)


def agent(name: str = "Ada", **fields: Any) -> Agent:
    asked = {"company_id": LOCAL_COMPANY, "adapter_type": "process", **fields}
    return Agent(id="", name=name, **asked)


def test_every_database_has_the_local_company(connection: Connection) -> None:
    assert [company.id for company in Companies(connection).list()] == [LOCAL_COMPANY]


def test_a_company_is_made_and_changed(connection: Connection) -> None:
    made = Companies(connection).create("Acme", NOW)
    changed = Companies(connection).change(made.id, LATER, network="none")
    assert (changed.name, changed.network, changed.updated_at) == ("Acme", "none", LATER)
    with pytest.raises(NotFound):
        Companies(connection).get("nobody")


def test_an_agent_is_found_by_its_name_and_by_the_end_of_its_id(connection: Connection) -> None:
    made = Agents(connection).create(agent("Ada"), NOW)
    Agents(connection).create(agent("Bo"), NOW)
    agents = Agents(connection)
    assert agents.find(LOCAL_COMPANY, "Ada").id == made.id
    assert agents.find(LOCAL_COMPANY, made.id[-8:]).id == made.id
    for text in ("Cy", "%", "", "____________"):
        with pytest.raises(NotFound):
            agents.find(LOCAL_COMPANY, text)


def test_agents_are_paged_and_archived_ones_are_left_out(connection: Connection) -> None:
    agents = Agents(connection)
    made = sorted(agents.create(agent(f"a{n}"), NOW).id for n in range(5))
    first = agents.list(LOCAL_COMPANY, limit=2)
    rest = agents.list(LOCAL_COMPANY, limit=9, before=first[-1].id)
    assert [each.id for each in (*first, *rest)] == made[::-1]
    agents.change(made[0], LATER, status="archived")
    assert len(agents.list(LOCAL_COMPANY)) == 4
    assert [each.id for each in agents.list(status="archived")] == [made[0]]


def test_an_unknown_field_is_a_mistake(connection: Connection) -> None:
    made = Agents(connection).create(agent(), NOW)
    with pytest.raises(TypeError, match="colour"):
        Agents(connection).change(made.id, NOW, colour="red")


def test_tasks_are_numbered_in_their_company(connection: Connection) -> None:
    other = Companies(connection).create("Other", NOW)
    tasks = Tasks(connection)
    names = [tasks.create(task(), NOW).identifier for _ in range(2)]
    foreign = tasks.create(Task(id="", company_id=other.id, identifier="", title="x"), NOW)
    assert (names, foreign.identifier) == (["T-1", "T-2"], "T-1")
    assert tasks.find(LOCAL_COMPANY, "t-2").identifier == "T-2"
    assert tasks.find(other.id, foreign.id[-6:]).id == foreign.id
    with pytest.raises(NotFound):
        tasks.find(LOCAL_COMPANY, "T-9")


def test_tasks_are_filtered_and_paged(connection: Connection) -> None:
    tasks = Tasks(connection)
    parent = tasks.create(task("parent"), NOW)
    child = tasks.create(task("a 100% Child", parent_id=parent.id, status="done"), NOW)
    tasks.create(task("other", status="backlog"), NOW)

    def titles(**options: Any) -> list[str]:
        return sorted(found.title for found in tasks.list(LOCAL_COMPANY, **options))

    assert titles(status="done") == titles(parent_id=parent.id) == titles(text="100% c")
    assert titles(status="done,backlog") == ["a 100% Child", "other"]
    assert titles(text="%%") == []
    assert child.completed_at == NOW
    assert tasks.change(child.id, LATER, status="todo").completed_at is None


def test_a_blocker_of_another_company_does_not_exist(connection: Connection) -> None:
    other = Companies(connection).create("Other", NOW)
    foreign = Task(id="", company_id=other.id, identifier="", title="x")
    theirs = Tasks(connection).create(foreign, NOW)
    with pytest.raises(NotFound):
        Tasks(connection).create(task(blocked_by=(theirs.id,)), NOW)


def test_comments_are_read_in_order_after_one(connection: Connection) -> None:
    tasks = Tasks(connection)
    about = tasks.create(task(), NOW)
    said = [
        tasks.comment(Comment(id=floor_id(n), task_id=about.id, author="person", body=str(n)), NOW)
        for n in range(1, 4)
    ]
    assert tasks.comments(about.id) == said
    assert tasks.comments(about.id, after=said[0].id, limit=1) == [said[1]]
    with pytest.raises(NotFound):
        tasks.comment(Comment(id="", task_id="none", author="person", body=""), NOW)


def test_an_environment_in_use_stays(connection: Connection) -> None:
    environments = Environments(connection)
    box = Environment(id="", company_id=LOCAL_COMPANY, name="box", kind="ssh", config={"host": "h"})
    made = environments.create(box, NOW)
    assert environments.list(LOCAL_COMPANY) == [made]
    with pytest.raises(Conflict, match="already"):
        environments.create(box, NOW)
    user = Agents(connection).create(agent(environment_id=made.id), NOW)
    with pytest.raises(Conflict, match="in use"):
        environments.remove(made.id)
    Agents(connection).change(user.id, NOW, environment_id=None)
    environments.remove(made.id)
    assert environments.list() == []


def test_the_gate_of_a_run_follows_its_last_finalize(connection: Connection) -> None:
    """W2, W4: pending while it runs, failed after a failure, open after a retry or a waiver."""
    operations = Operations(connection)
    assert operations.gate_of_run("r") == "open"
    operations.begin("r", "t", "worktree_prepare", NOW)
    assert operations.gate_of_run("r") == "pending"
    first = operations.begin("r", "t", "workspace_finalize", NOW, branch="b")
    ended = operations.end(first.id, "failed", LATER, "no space", tried=1)
    assert (ended.error, ended.detail) == ("no space", {"branch": "b", "tried": 1})
    assert operations.gate_of_run("r") == operations.gate_of_task("t") == "failed"
    second = operations.begin("r", "t", "workspace_finalize", NOW)
    with pytest.raises(Conflict, match="failed"):
        operations.waive(second.id, "person", "why", LATER)
    operations.end(second.id, "succeeded", LATER)
    assert operations.gate_of_run("r") == operations.gate_of_task("t") == "open"


def test_the_trail_is_kept_by_subject(connection: Connection) -> None:
    trail = Activities(connection)
    trail.note(LOCAL_COMPANY, "person", "created", ("task", "t"), NOW, title="x")
    trail.note(LOCAL_COMPANY, "agent:a", "changed", ("agent", "a"), NOW)
    assert len(trail.list(LOCAL_COMPANY)) == 2
    (only,) = trail.list(subject=("task", "t"))
    assert (only.verb, only.detail) == ("created", {"title": "x"})


def test_costs_are_summed_by_day_agent_adapter_and_model(db: Database) -> None:
    """D10: what is unknown is counted apart, never as zero."""
    store = RunStore(db)
    for ended in (outcome(), outcome(), outcome(result=result(cost_usd=None, usage=None))):
        asked = order()
        store.create(asked)
        store.finish(asked.id, ended)
    with db.reading() as connection:
        (line,) = Costs(connection).lines("c1", agent_id="a1", since="2026-03-01")
        assert Costs(connection).lines(until="2026-02-28") == []
    assert (line.day, line.agent_id, line.model) == (ENDED[:10], "a1", "opus")
    assert (line.runs, line.runs_of_unknown_cost) == (3, 1)
    assert (line.input_tokens, line.cached_input_tokens, line.output_tokens) == (20, 10, 14)
    assert line.cost_usd == 0.0246


def test_spending_counts_from_the_beginning_of_the_period(db: Database) -> None:
    store = RunStore(db)
    day = 86_400.0
    now = 1_772_366_400.0
    for moment in (now - 40 * day, now - 1, now):
        asked = order(id=new_id(moment), scheduled=True, task_key=str(moment))
        store.create(asked)
        told = result(usage=Usage(output_tokens=5), cost_usd=0.25)
        store.finish(asked.id, outcome(result=told))
    with db.reading() as connection:
        costs = Costs(connection)
        spent = {
            period: costs.spent("a1", Budget(period=period), now + 10)  # type: ignore[arg-type]
            for period in ("day", "month", "total")
        }
    assert {period: each.runs for period, each in spent.items()} == {
        "day": 2,
        "month": 2,
        "total": 3,
    }
    assert (spent["total"].usd, spent["total"].tokens) == (0.75, 15)
    assert period_start(Budget(period="total"), now) is None
