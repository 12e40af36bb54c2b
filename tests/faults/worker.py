"""A worker in a process of its own, to be killed: `worker.py HOME DATABASE_URL`.

With `DIE_AT=settle` it kills itself once, between a run's outcome and its rows.
"""

import os
import signal
import sys
from pathlib import Path

from binderclip.plugins.registry import load_adapter
from binderclip.runs import worker as module
from binderclip.runs.worker import Worker
from binderclip.store.database import Database
from binderclip.store.home import Home

COUNTING = str(Path(__file__).with_name("counting_adapter.py"))


def load(name):
    return load_adapter(COUNTING if name == "counting" else name)


def die(*_args, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("DIE_AT") == "settle":
    module.settle = die
with Database.open(Home(Path(sys.argv[1]), sys.argv[2])) as database:
    worker = Worker(database, load)
    worker.start()
    signal.sigwait({signal.SIGTERM})
    worker.stop()
