"""Our git runs nothing that a repository names, asks nobody, and reaches nothing."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from binderclip.workspaces import git as module
from binderclip.workspaces.far import MODULES as SENT
from binderclip.workspaces.git import Git, GitFailed, person, version
from tests.workspaces.conftest import commit, plain_git


def trap(directory: Path, name: str) -> tuple[str, Path]:
    """A command that leaves a mark when somebody runs it."""
    script, mark = directory.parent / name, directory.parent / f"{name}.ran"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    return str(script), mark


def test_no_hook_filter_driver_or_monitor_of_the_repository_runs(repository: Path) -> None:
    """D11: an agent can write a repository's config."""
    script, mark = trap(repository, "trap")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    settings = {
        "core.fsmonitor": script,
        "core.hooksPath": str(hook.parent),
        "diff.external": script,
        "filter.Odd.Name.clean": script,
        "filter.Odd.Name.smudge": script,
        "filter.Odd.Name.required": "true",
        "diff.odd.textconv": script,
        "merge.odd.driver": f"{script} %A",
        "core.pager": script,
        "gpg.program": script,
        "commit.gpgSign": "true",
    }
    (repository / ".gitattributes").write_text("* filter=Odd.Name diff=odd merge=odd\n")
    git = Git(repository)
    git("add", "-A")
    git("commit", "-qm", "attributes")
    for key, value in settings.items():
        plain_git(repository, "config", key, value)
    (repository / "a").write_text("changed\n")
    git = Git(repository)
    git("status", "--porcelain")
    git("diff", "HEAD")
    git("add", "-A")
    git("commit", "-qm", "changed")
    git("checkout", "-q", "HEAD~1")
    git("merge-tree", "--write-tree", "HEAD", "main", ok=(0, 1))
    assert not mark.exists()


def test_variables_of_the_caller_do_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D11: GIT_* is cleaned."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    assert Git(repository).text("rev-parse", "--show-toplevel") == str(repository)


def test_only_files_can_be_fetched_from(repository: Path) -> None:
    """W7: no remote is needed, so none can be reached."""
    for address in ("https://127.0.0.1:1/x", "ssh://127.0.0.1:1/x", "ext::sh -c true"):
        with pytest.raises(GitFailed, match="not allowed"):
            Git(repository)("fetch", address)


def test_a_failure_says_what_git_said(repository: Path) -> None:
    with pytest.raises(GitFailed, match=r"git checkout: .*nowhere") as failed:
        Git(repository)("checkout", "nowhere")
    assert failed.value.status == 1


def test_a_person_is_known_by_the_repository_then_by_their_own_config(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D11: people's config counts for identity only."""
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Eve\n\temail = eve@example.org\n[core]\n\tbare = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert person(repository) == ("Eve", "eve@example.org")
    plain_git(repository, "config", "user.name", "Ada")
    assert person(repository) == ("Ada", "eve@example.org")
    assert Git(repository).text("rev-parse", "--is-bare-repository") == "false"


def test_ids_are_resolved_and_options_are_not_names(repository: Path) -> None:
    head = commit(repository)
    assert Git(repository).resolve("main") == head
    assert Git(repository).resolve("--all") is None
    assert Git(repository).resolve("nothing") is None


def test_the_git_of_this_machine_can_merge_without_a_directory() -> None:
    found = version()
    assert found is not None
    assert found >= module.OLDEST


@pytest.mark.parametrize("name", SENT)
def test_a_module_that_is_sent_to_other_machines_parses_as_python_3_9(name: str) -> None:
    """W6: the remote side needs Python 3.9 and its standard library, nothing else."""
    path = Path(module.__file__).with_name(f"{name}.py")
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in found}
    own = {f"binderclip.workspaces.{other}" for other in SENT} | {"binderclip.workspaces"}
    outside = {name.partition(".")[0] for name in names if name not in own}
    assert outside - {"binderclip"} <= sys.stdlib_module_names
    assert {name for name in names if name.startswith("binderclip.sup")} | own >= {
        name for name in names if name.startswith("binderclip")
    }
