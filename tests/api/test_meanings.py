"""What is told of properties is told of properties that there are."""

import json
from pathlib import Path
from typing import Any

from service.api.meanings import OF_ANY, OF_SHELL, shell_meaning

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS: dict[str, Any] = json.loads((ROOT / "openapi/openapi.json").read_text("utf-8"))["components"]["schemas"]


def test_every_meaning_is_that_of_a_property_of_the_contract() -> None:
    for block, meanings in OF_SHELL.items():
        assert set(meanings) <= set(SCHEMAS[block]["properties"]), block
    for name in OF_ANY:
        assert any(name in schema.get("properties", {}) for schema in SCHEMAS.values()), name


def test_a_block_s_own_words_come_before_those_of_any_block() -> None:
    assert shell_meaning("Written", "catalog_revision") == OF_SHELL["Written"]["catalog_revision"]
    assert shell_meaning("ModelList", "catalog_revision") == OF_ANY["catalog_revision"]
    assert shell_meaning("ModelList", "price") is None
