"""Builds and writes the contract."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.api.problems import FieldProblem, Problem
from service.questions.meanings import OF_BLOCK, meaning

UNUSED_SCHEMAS = ("HTTPValidationError", "ValidationError")
CONTRACT_NAMES = {"Lever": "LeverAnswer"}  # blocks of the engine that clients know by another name


ANSWER_BLOCKS = frozenset({"Layout"})  # of which every property is a common one


def install_openapi(app: FastAPI) -> None:
    """Serve a document in which every error is a problem document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
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
    return document


def _explain(block: str, component: dict[str, Any]) -> None:
    """Say what the properties of a block of an answer mean, where they do not say so themselves."""
    for name, shape in component.get("properties", {}).items():
        told = meaning(block, name)
        if told is not None and (block in OF_BLOCK or block in ANSWER_BLOCKS):
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
