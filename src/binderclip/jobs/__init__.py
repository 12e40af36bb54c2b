"""One history for all runtimes: standard events, checkpoints, jobs, export (contract 12)."""

from binderclip.jobs.documents import Kept, read_checkpoint, read_event, read_job, schemas
from binderclip.jobs.external import ParsedOutput, parse_external_output
from binderclip.jobs.normalized import (
    create_complete_run_event,
    create_normalized_checkpoint,
    create_runtime_init_event,
)

__all__ = [
    "Kept",
    "ParsedOutput",
    "create_complete_run_event",
    "create_normalized_checkpoint",
    "create_runtime_init_event",
    "parse_external_output",
    "read_checkpoint",
    "read_event",
    "read_job",
    "schemas",
]
