"""Cache plans of five versions of vLLM, as each version's own planner made them for models of the catalog.

`plans_by_version.csv`: what vLLM 0.14.1, 0.20.2, 0.26.0, 0.29.0 and 0.33.0 from the registry planned in November 2026
without a GPU: its classes built without weights as rank 0, on a platform that answers as each GPU does, then
`get_kv_cache_configs` over a pool of so many bytes. No kernel ran. Settings are those of a question; budget and cap of
a batch are what the version chose by itself where nobody stated them.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.testclient import TestClient

with Path(__file__).with_name("plans_by_version.csv").open(encoding="utf-8", newline="") as file:
    ROWS: Final = list(csv.DictReader(file))
VERSIONS: Final = sorted({row["engine_version"] for row in ROWS})


def question(row: dict[str, str]) -> dict[str, str]:
    named = {name: row[name] for name in ("engine_version", "gpu", "model", "kv_cache_memory_bytes")}
    return named | dict(setting.split("=") for setting in row["settings"].split(";"))


def differing(client: TestClient, version: str) -> Iterator[tuple[dict[str, str], Any]]:
    for row in ROWS:
        if row["engine_version"] != version:
            continue
        response = client.get("/capacity", params=question(row))
        cache = response.json().get("kv_cache", {})
        if any(str(cache.get(name)) != row[name] for name in ("num_gpu_blocks", "block_size", "tokens")):
            yield question(row), cache or response.text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_equals_the_versions_own(client: TestClient, version: str) -> None:
    assert list(differing(client, version)) == []


def test_every_version_has_plans_of_many_models() -> None:
    models = {version: {row["model"] for row in ROWS if row["engine_version"] == version} for version in VERSIONS}

    assert len(VERSIONS) == 5
    assert all(len(of_version) >= 35 for of_version in models.values())
