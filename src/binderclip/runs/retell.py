"""Transcripts that were lost, made again from the logs: they are a cache (D2)."""

from __future__ import annotations

from pathlib import Path

from binderclip.contract.errors import StoreError
from binderclip.runs.driver import driving
from binderclip.runs.recover import LoadAdapter
from binderclip.runs.transcript import Transcriber
from binderclip.store.home import Home
from binderclip.store.runfile import read_order
from binderclip.store.transcripts import NAME, read_transcript
from binderclip.supervisor.documents import INDEX
from binderclip.supervisor.launch import read_exit


def retell(home: Home, run_id: str, load: LoadAdapter) -> bool:
    """Write a run's transcripts again if one is missing or unreadable; tells whether it had to."""
    numbers = [n for n in home.attempts(run_id) if (home.attempt_dir(run_id, n) / INDEX).exists()]
    if all(_readable(home.attempt_dir(run_id, number) / NAME) for number in numbers):
        return False
    order = read_order(home, run_id)
    adapter = load(order.adapter_path or order.adapter_type)
    seq = 0
    with driving(home, run_id):
        for number in numbers:
            directory = home.attempt_dir(run_id, number)
            transcriber = Transcriber(adapter, directory, number, seq)
            exit = read_exit(str(directory))
            for _ in transcriber.finish(exit) if exit else transcriber.poll():
                continue
            seq = transcriber.seq
            transcriber.close()
    return True


def _readable(transcript: Path) -> bool:
    try:
        next(read_transcript(transcript), None)
    except StoreError:
        return False
    return transcript.exists()
