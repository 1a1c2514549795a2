"""Builds and writes the contract."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.api.problems import FieldProblem, Problem

UNUSED_SCHEMAS = ("HTTPValidationError", "ValidationError")


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
    return schema


def rendered(app: FastAPI) -> str:
    """Return the contract as it is committed: sorted, indented, with a final newline."""
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
