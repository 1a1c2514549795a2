"""The cache plan against what vLLM 0.33 itself computed, row by row, through the public endpoint."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.calibration.logs.oracle_rows import oracle_configs
from tests.conftest import referee_rows

ROWS = referee_rows("vllm_kv_oracle.jsonl")
CONFIGS = oracle_configs(ROWS)
FIRST_KINDS = frozenset({"full_attention", "sliding_window", "chunked_local_attention", "mla_attention"})


def by_config(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row["config"], []).append(row)
    return grouped


CASES = by_config(ROWS)


def question(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "model_config": CONFIGS[row["config"]],
        "gpu": "h100",
        "tensor_parallel_size": row["tp"],
        # What "auto" became may stand in a file beside the config, which the row does not have.
        "kv_cache_dtype": "fp8" if row["cache_dtype"].startswith("fp8") else row["kv_cache_dtype"],
        "kv_cache_memory_bytes": row["available_kv_bytes"],
        "max_model_len": row["max_model_len"],
        "max_num_batched_tokens": row["max_num_batched_tokens"],
        "max_num_seqs": row["max_num_seqs"],
    }


def ask(client: TestClient, row: dict[str, Any]) -> Any:
    # Published configs may hold Infinity, which json.dumps writes and the service reads.
    return client.post("/capacity", content=json.dumps(question(row)), headers={"content-type": "application/json"})


@pytest.mark.parametrize("config", CASES)
def test_capacity_equals_the_engine(client: TestClient, config: str) -> None:
    for row in CASES[config]:
        response = ask(client, row)

        assert response.status_code == 200, response.text
        cache = response.json()["kv_cache"]
        assert cache["num_gpu_blocks"] == row["num_gpu_blocks"]
        assert cache["block_size"] == row["block_size"]
        assert cache["bytes_per_block"] == row["bytes_per_block"]
        if row["fits"]:
            assert cache["tokens"] == row["kv_cache_size_tokens"]
            assert cache["max_concurrency"] == pytest.approx(row["max_concurrency"], rel=1e-12)
        else:
            assert cache["estimated_max_model_len"] == row["estimated_max_model_len"]


def test_every_row_is_compared(record_property: Callable[[str, object], None]) -> None:
    kinds = Counter(
        "first families" if {spec["kind"] for spec in row["layer_specs"]} <= FIRST_KINDS else "later families"
        for rows in CASES.values()
        for row in rows
    )
    record_property("compared", f"oracle: {kinds.total()} rows {dict(kinds)}, none left out")

    assert kinds.total() == len(ROWS)
    assert kinds["first families"] >= 787
