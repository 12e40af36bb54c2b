"""The data directory: runs are found by id, by suffix, or with a message that helps."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from binderclip.contract.errors import RunNotFound, StoreError
from binderclip.contract.ids import new_id
from binderclip.store.home import Home

JANUARY, MARCH = 1_767_268_800.0, 1_772_366_400.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_environment_names_home_and_database(tmp_path: Path) -> None:
    env = {"BINDERCLIP_HOME": str(tmp_path), "BINDERCLIP_DATABASE_URL": "postgresql://db/x"}
    home = Home.from_env(env)
    assert (home.path, home.database_url) == (tmp_path, "postgresql://db/x")


def test_without_variables_home_is_below_the_persons_own() -> None:
    home = Home.from_env({})
    assert home.path == Path.home() / ".binderclip"
    assert home.database_url == f"sqlite:///{home.path}/binderclip.db"


def test_home_and_run_directories_are_for_their_owner_only(home: Home) -> None:
    run_id = new_id()
    attempt = home.make_attempt_dir(run_id, 1)
    steps = [home.path, home.runs, *(attempt, *attempt.parents[:2])]
    assert [mode(step) for step in steps] == [0o700] * len(steps)


def test_a_home_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made") as caught:
        Home(tmp_path / "file" / "home").ensure()
    assert caught.value.hint is not None and "BINDERCLIP_HOME" in caught.value.hint


def test_a_run_lives_in_the_month_of_its_id(home: Home) -> None:
    run_id = new_id(JANUARY)
    assert home.run_dir(run_id) == home.path / "runs" / "2026-01" / run_id
    assert home.attempt_dir(run_id, 2) == home.run_dir(run_id) / "attempt-2"


@pytest.mark.parametrize("text", ["", "../../etc", "x", "0199-xyz"])
def test_only_a_full_id_has_a_directory(home: Home, text: str) -> None:
    with pytest.raises(RunNotFound):
        home.run_dir(text)


def test_attempts_are_read_from_the_directories_in_order(home: Home) -> None:
    run_id = new_id()
    assert home.attempts(run_id) == []
    for number in (10, 2, 1):
        home.make_attempt_dir(run_id, number)
    (home.run_dir(run_id) / "attempt-x").mkdir()
    assert home.attempts(run_id) == [1, 2, 10]


def test_runs_are_listed_newest_first_across_months(home: Home) -> None:
    ids = [new_id(moment) for moment in (JANUARY, JANUARY + 60, MARCH, MARCH + 1)]
    for run_id in ids:
        home.make_run_dir(run_id)
    (home.runs / "2026-01" / "notes").mkdir()
    (home.runs / "README").write_text("")
    assert list(home.run_ids()) == ids[::-1]


def test_a_home_without_runs_lists_none(tmp_path: Path) -> None:
    assert list(Home(tmp_path / "nowhere").run_ids()) == []


def test_a_run_is_found_by_its_id_or_its_last_characters(home: Home) -> None:
    run_id = new_id()
    home.make_run_dir(run_id)
    for text in (run_id, run_id.upper(), run_id[-8:], f" {run_id[-4:]}\n"):
        assert home.find_run(text) == run_id


@pytest.mark.parametrize("text", ["abcdef12", "0199a6f4-5b1e-7c3d-8a2b-1234567890ab"])
def test_a_missing_run_says_how_to_list_them(home: Home, text: str) -> None:
    with pytest.raises(RunNotFound) as caught:
        home.find_run(text)
    assert text in caught.value.message
    assert caught.value.hint is not None and "binderclip runs" in caught.value.hint


def test_too_few_characters_name_no_run(home: Home) -> None:
    with pytest.raises(RunNotFound, match="too short"):
        home.find_run("abc")


def test_an_ambiguous_suffix_names_the_candidates(home: Home) -> None:
    ids = sorted(new_id(JANUARY + n)[:-4] + "beef" for n in range(7))
    for run_id in ids:
        home.make_run_dir(run_id)
    with pytest.raises(RunNotFound, match=r"7 runs .* and 2 more") as caught:
        home.find_run("beef")
    assert set(caught.value.fields.values()) == set(ids[2:])
