"""What a run that has not begun waits for, in words."""

from __future__ import annotations

from binderclip.cli.show import Show, TextShow
from binderclip.contract.run import RunView, StateChange


def waiting(view: RunView) -> str:
    """Why a run has not begun, as far as its own row tells."""
    if view.status != "queued":
        return "begins"
    if view.waiting_for:
        return f"waits {view.waiting_for}"
    return f"waits until {view.not_before}" if view.not_before else "waits for its turn"


def tell(show: Show, view: RunView, why: str) -> None:
    """Say it: a notice for people, a state for programs."""
    change = StateChange(state="queued", at=view.created_at, reason=why, actor="binderclip")
    show.state(change)
    if isinstance(show, TextShow):
        show.notice(f"Queued: {why}.")
