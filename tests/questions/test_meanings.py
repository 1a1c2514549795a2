"""Every property of every answer says what it means."""

import json
from typing import Any

from starlette.testclient import TestClient

from service.questions.meanings import COMMON, OF_BLOCK
from service.questions.registry import QUESTIONS


def reached(schemas: dict[str, Any], name: str, known: set[str]) -> set[str]:
    """Return the names of a schema and of all that it refers to."""
    if name not in known:
        known.add(name)
        for rest in json.dumps(schemas[name]).split("#/components/schemas/")[1:]:
            reached(schemas, rest.split('"')[0], known)
    return known


def test_every_property_of_an_answer_is_described_with_its_unit(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    blocks: set[str] = set()
    for question in QUESTIONS:
        reached(schemas, question.answer.__name__, blocks)

    assert len(blocks) > 20
    for block in sorted(blocks):
        for name, shape in schemas[block].get("properties", {}).items():
            assert shape.get("description"), f"{block}.{name}"
            if name.endswith(("_s", "_bytes", "_tokens", "_fraction")):
                assert "[" in shape["description"], f"{block}.{name} names no unit"
    assert set(OF_BLOCK) <= blocks


def test_no_meaning_is_told_twice() -> None:
    for block, meanings in OF_BLOCK.items():
        for name, told in meanings.items():
            assert COMMON.get(name) != told, f"{block}.{name}"
