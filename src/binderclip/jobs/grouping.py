"""Which job a run belongs to: its task's, that of the run it goes on from, or its own."""

from __future__ import annotations

from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import FULL_ID, derived_id
from binderclip.contract.run import RunOrder
from binderclip.contract.session import HEARTBEAT
from binderclip.store.home import Home
from binderclip.store.runfile import read_order


def job_of(home: Home, order: RunOrder) -> str:
    """The id of the run's job; a function of what the runs were asked, never of when one looks."""
    seen = {order.id}
    while True:
        told = _told(order)
        if told is not None:
            return told
        before = order.continues or order.retry_of
        if before is None or before in seen:
            return derived_id("job", order.id)
        seen.add(before)
        try:
            order = read_order(home, before)
        except BinderclipError:
            # Its files were removed; its id still names the same job.
            return derived_id("job", before)


def _told(order: RunOrder) -> str | None:
    if order.job_id:
        return order.job_id if FULL_ID.fullmatch(order.job_id) else derived_id("job", order.job_id)
    if order.scheduled and order.task_key and order.task_key != HEARTBEAT:
        return derived_id("task", order.task_key)
    return None
