"""Builds and writes the contract."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.access.matrix import row_of
from service.api.meanings import shell_meaning
from service.api.problems import FieldProblem, Problem, problem_responses
from service.questions.meanings import OF_BLOCK, meaning

UNUSED_SCHEMAS = ("HTTPValidationError", "ValidationError")
CONTRACT_NAMES = {"Lever": "LeverAnswer"}  # blocks of the engine that clients know by another name


TAGS = [
    {"name": "questions", "description": "How many GPUs, which ones, how much load: one at a time, or a thousand."},
    {"name": "workloads", "description": "Questions under a name, and what autoscalers, monitors and deployers read."},
    {"name": "catalog", "description": "Models, GPUs and offers, each with its source."},
    {"name": "measurements", "description": "Logs and benchmarks held against the prediction."},
    {"name": "health", "description": "The service itself."},
]
BEARER = {
    "type": "http", "scheme": "bearer", "description": "a key of this service, or a token of the provider it trusts",
}  # fmt: skip
ANSWER_BLOCKS = frozenset({"Layout"})  # of which every property is a common one


def install_openapi(app: FastAPI) -> None:
    """Serve a document in which every error is a problem document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=TAGS,
        servers=[{"url": app.state.settings.public_url or "/"}],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        contact={"name": "Sizer"},
    )
    components = schema["components"]["schemas"]
    for name in UNUSED_SCHEMAS:
        components.pop(name, None)
    for model in (Problem, FieldProblem):
        shape = model.model_json_schema(ref_template="#/components/schemas/{model}")
        shape.pop("$defs", None)
        components[model.__name__] = shape
    schema["components"]["schemas"] = dict(sorted(components.items()))
    document = _renamed(schema)
    for name, component in document["components"]["schemas"].items():
        _explain(name, component)
    settings = app.state.settings
    _lock(document, reads_need_key=settings.reads_need_key, is_limited=settings.key_requests_per_s is not None)
    for operation in _operations(document):
        _show_abridged(operation[2])
        _may_be_cut(operation[2])
    return document


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def _lock(document: dict[str, Any], *, reads_need_key: bool, is_limited: bool) -> None:
    """Say of each operation what opens it, as the matrix does, and what is told where it stays shut."""
    limited = [HTTPStatus.TOO_MANY_REQUESTS] if is_limited else []  # whoever states a key, where none is needed too
    document["components"]["securitySchemes"]["bearer"] = BEARER
    for method, path, operation in _operations(document):
        row = row_of(method, path)
        needed = None if row is None else row[0]
        is_open = needed is None or (needed == "read" and not reads_need_key)
        operation["security"] = [] if is_open else [{"apiKey": []}, {"bearer": []}]
        shut = [] if is_open else [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN]
        told = {str(status): problem for status, problem in problem_responses(*shut, *limited).items()}
        operation["responses"] = {**told, **operation["responses"]}


def _may_be_cut(operation: dict[str, Any]) -> None:
    """Say what any request may be told before anybody knows what it is for: it is none, or its address too long."""
    cut = problem_responses(HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    told = {str(status): problem for status, problem in cut.items()}
    operation["responses"] = dict(sorted({**told, **operation["responses"]}.items()))


def _show_abridged(operation: dict[str, Any]) -> None:
    """Show an abridged answer in words: as an example it would break its own schema."""
    for answer in operation["responses"].values():
        shown = answer.get("content", {}).get("application/json", {}).get("x-abridged")
        if shown is not None:
            answer["description"] = f"{answer['description'].rstrip('.')}. Abridged: `{json.dumps(shown)}`"


def _explain(block: str, component: dict[str, Any]) -> None:
    """Say what the properties of a block mean, where they do not say so themselves."""
    tell = meaning if block in OF_BLOCK or block in ANSWER_BLOCKS else shell_meaning
    for name, shape in component.get("properties", {}).items():
        told = tell(block, name)
        if told is not None:
            shape.setdefault("description", told)


def _renamed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the names that the contract had first."""
    text = json.dumps(schema)
    for name, contract_name in CONTRACT_NAMES.items():
        text = text.replace(f'"#/components/schemas/{name}"', f'"#/components/schemas/{contract_name}"')
    renamed: dict[str, Any] = json.loads(text)
    components = renamed["components"]["schemas"]
    for name, contract_name in CONTRACT_NAMES.items():
        components[contract_name] = components.pop(name) | {"title": contract_name}
    return renamed


def rendered(app: FastAPI) -> str:
    """Return the contract as it is committed: sorted, indented, with a final newline."""
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
