"""`binderclip jobs`: runs that belong together, whatever ran, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterator

import click

from binderclip.cli import history
from binderclip.cli.ending import STATES
from binderclip.cli.layout import Colour, Look, clipped
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.recording import job_store, left_out
from binderclip.cli.safe import safe_line
from binderclip.cli.terminal import Terminal
from binderclip.cli.words import age, brief_count, counted, duration, money
from binderclip.contract.ids import short
from binderclip.contract.job import Job, JobNode, JobRun, JobStatus
from binderclip.contract.wire import to_plain
from binderclip.jobs.documents import schemas
from binderclip.jobs.normalized import now_ms
from binderclip.jobs.store import JobStore
from binderclip.store.home import Home

_HEAD = ("JOB", "STATE", "RUNS", "STEPS", "TOKENS", "COST", "AGE", "WHAT")
_STATES: dict[JobStatus, tuple[str, Colour]] = {
    "running": ("running", "cyan"),
    "completed": ("completed", "green"),
    "stoppedByMaxSteps": ("step limit", "red"),
    "stoppedByInteractiveTool": ("waiting", "yellow"),
    "stoppedByError": ("stopped", "red"),
}
_STATE_COLUMN = 1


@click.group("jobs", invoke_without_command=True)
@click.option("--limit", default=20, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole records as JSON.")
@click.pass_context
def command(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List jobs, newest first; or show one as a chain or tree of its runs.

    A job is a task with all its runs, or a run with those that continued it. JOB is an id or its
    last characters; the newest job where it is left out.
    """
    if ctx.invoked_subcommand is None:
        _list(limit, as_json)


@command.command("list")
@click.option("--limit", default=20, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole records as JSON.")
def list_command(limit: int, as_json: bool) -> None:
    """List jobs, newest first."""
    _list(limit, as_json)


def _list(limit: int, as_json: bool) -> None:
    jobs = _current().list(limit)
    if as_json:
        print_json(jobs)
    elif jobs:
        rows = [_row(job) for job in jobs]
        print_table(_HEAD, rows, lambda row, column: _colours(jobs[row].status, column))
    else:
        click.echo("No jobs yet. Start a run: binderclip run --help")


@command.command("show")
@click.argument("job", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print job, runs and checkpoints as JSON.")
def show_command(job: str | None, as_json: bool) -> None:
    """Show a job, its runs and their checkpoints."""
    store = _current()
    found = _found(store, job)
    runs = store.runs(found.id)
    if as_json:
        checkpoints = [one for run in runs for one in store.checkpoints(run.id)]
        print_json({**to_plain(found), "runs": runs, "checkpoints": checkpoints})
        return
    terminal = Terminal()
    look = Look(terminal.colour, terminal.width)
    terminal.write(_heading(found, look) + "".join(_shown(run, look) for run in runs))


@command.command("tree")
@click.argument("job", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the tree as JSON.")
def tree_command(job: str | None, as_json: bool) -> None:
    """Show a job's runs, each below the one that it continues."""
    store = _current()
    found = _found(store, job)
    nodes = store.tree(found.id)
    if as_json:
        print_json(nodes)
        return
    terminal = Terminal()
    look = Look(terminal.colour, terminal.width)
    lines = "".join(f"{line}\n" for line in _branches(nodes, look, ""))
    terminal.write(_heading(found, look) + lines)


@command.command("rebuild")
def rebuild_command() -> None:
    """Make all jobs again from the files of the runs; the result is the same."""
    home = Home.from_env().ensure()
    history.finish_dead(home, list(home.run_ids()))
    done = job_store(home).rebuild(left_out)
    click.echo(f"{counted(done, 'run')} in {counted(len(JobStore(home).list()), 'job')}.")


@command.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of events, checkpoints and jobs."""
    print_json(schemas())


def _current() -> JobStore:
    """The store, with every run that ended since anybody looked."""
    home = Home.from_env().ensure()
    history.finish_dead(home, list(home.run_ids()))
    store = job_store(home)
    store.catch_up(left_out)
    return store


def _found(store: JobStore, named: str | None) -> Job:
    if named:
        return store.get(store.find(named))
    jobs = store.list(1)
    if not jobs:
        raise click.ClickException("There are no jobs yet.")
    return jobs[0]


def _row(job: Job) -> tuple[str, ...]:
    return (
        short(job.id),
        _STATES[job.status][0],
        str(len(job.runs)),
        str(job.total_steps),
        brief_count(job.usage.total_tokens) if job.usage.total_tokens else "–",
        money(job.cost_usd) if job.cost_usd is not None else "–",
        age((now_ms() - job.started_at) / 1000),
        clipped(safe_line(job.title or job.coordinator_expert_key), 80),
    )


def _colours(state: JobStatus, column: int) -> tuple[Colour, ...]:
    return (_STATES[state][1],) if column == _STATE_COLUMN else ("plain",)


def _heading(job: Job, look: Look) -> str:
    word, colour = _STATES[job.status]
    facts = [counted(len(job.runs), "run"), counted(job.total_steps, "step")]
    if job.usage.total_tokens:
        facts.append(f"{brief_count(job.usage.total_tokens)} tokens")
    if job.cost_usd is not None:
        facts.append(money(job.cost_usd))
    head = f"{look.paint('●', colour)} job {look.paint(short(job.id), 'bold')}  "
    title = f"{safe_line(job.title)}\n" if job.title else ""
    return f"{head}{look.paint(word, colour)} · {' · '.join(facts)}\n{title}\n"


def _shown(run: JobRun, look: Look) -> str:
    out = _line(run, look) + "\n"
    for label, text in _details(run):
        out += f"  {look.paint(f'{label:<11}', 'dim')}{safe_line(text)}\n"
    return out + "\n"


def _details(run: JobRun) -> Iterator[tuple[str, str]]:
    yield "id", run.id
    if run.model:
        yield "model", run.model
    if run.continues:
        yield "continues", short(run.continues)
    for checkpoint in run.checkpoints:
        yield "checkpoint", checkpoint.removeprefix(run.id[:-8])
    if run.error_message:
        yield "error", clipped(run.error_message, 200)


def _line(run: JobRun, look: Look) -> str:
    word, colour = STATES[run.status]
    took = duration((run.finished_at - run.started_at) / 1000)
    used = brief_count(run.usage.total_tokens) + " tokens" if run.usage.total_tokens else ""
    facts = [run.adapter_type, counted(run.steps, "step"), took, used]
    asked = safe_line((run.title or run.prompt or "").split("\n")[0][:200])
    told = " · ".join(fact for fact in facts if fact)
    head = (
        f"{look.paint(short(run.id), 'bold')} {look.paint(word, colour)} {look.paint(told, 'dim')}"
    )
    return f"{head}  {clipped(asked, 60)}".rstrip()


def _branches(nodes: tuple[JobNode, ...], look: Look, indent: str) -> Iterator[str]:
    """A continuation of one by one is a chain and stays in its column; only forks indent."""
    for at, node in enumerate(nodes):
        last = at == len(nodes) - 1
        yield indent + ("└ " if last else "├ ") + _line(node.run, look)
        below = indent + ("  " if last else "│ ")
        while len(node.children) == 1:
            node = node.children[0]
            yield below + "↳ " + _line(node.run, look)
        yield from _branches(node.children, look, below)
