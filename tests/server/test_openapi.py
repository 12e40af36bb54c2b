"""`/openapi.json` against the server it describes: no 500, no answer that it does not tell of."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.conftest import Served

CHECKS: list[CheckFunction] = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 8
# Streams do not end by themselves, and a live test would call a model.
LEFT_OUT = {"/api/events", "/api/runs/{run_id}/stream"}


@pytest.fixture(scope="module")
def document(served: Served) -> Any:
    return served.get("/openapi.json")


def test_every_route_says_what_it_answers(document: Any) -> None:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path}"
            told = [code for code in operation["responses"] if code.startswith("2")]
            assert told, f"{method} {path}"
            for code in told:
                content = operation["responses"][code].get("content")
                assert content or code == "204", f"{method} {path} {code}"


def test_the_document_names_only_schemas_that_it_holds(document: Any) -> None:
    known = set(document["components"]["schemas"])

    def references(value: Any) -> Any:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    named = {ref.rpartition("/")[2] for ref in references(document)}
    assert named - known == set()


@pytest.mark.slow
def test_nothing_that_is_asked_breaks_the_server_or_its_promises(
    served: Served, document: Any
) -> None:
    """schemathesis: no 500 and no answer outside the schema, for people and without a token."""
    served.ran("echo something; false")
    schema = schemathesis.openapi.from_dict(document)
    problems: list[str] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in LEFT_OUT:
            continue
        _try(served, operation, problems)
    assert not problems, "\n\n".join(problems)


def _try(served: Served, operation: Any, problems: list[str]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    def ask(case: Any) -> None:
        if operation.path.endswith("test-environment") and isinstance(case.body, dict):
            case.body["depth"] = "quick"
        try:
            response = case.call(base_url=served.address, headers=served.person)
            case.validate_response(response, checks=CHECKS)
        except (AssertionError, schemathesis.errors.SchemathesisError, BaseExceptionGroup) as found:
            problems.append(f"{operation.method} {operation.path}: {found}"[:2000])

    from hypothesis import given

    given(case=operation.as_strategy())(ask)()


def test_the_document_is_served_to_everybody_who_may_ask(served: Served) -> None:
    assert httpx.get(f"{served.address}/openapi.json").json()["openapi"].startswith("3.1")
