"""Wakes an agent behind an HTTP endpoint: one request, its answer or stream, a status to poll."""

from binderclip.adapters.http.adapter import HttpAdapter


def create_adapter() -> HttpAdapter:
    return HttpAdapter()
