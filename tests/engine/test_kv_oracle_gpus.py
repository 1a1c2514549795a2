"""Plans, refusals and weights by GPU against what vLLM 0.33 itself computed, row by row, through the public endpoint."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from service.calibration.logs.oracle_rows import gpu_configs
from service.calibration.oracle_gpus import GPUS
from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.families import parse_architecture, stated_quantization
from service.engine.formats.quantization import parse_quantization, standard_quantization
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights
from tests.conftest import referee_rows

ROWS = referee_rows("vllm_kv_oracle_gpus.jsonl")
CASES: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "hf_quant_config.json beside config.json": {},
    "compressed-tensors with several groups": {},
    "max_num_batched_tokens=2048": {},
    "block_size=64": {"block_size": 64},
    "expert_parallel": {"expert_parallel": True},
    "decode_context_parallel": {"decode_context_parallel_size": 2},
    "quantization=fp8 at load": {"quantization": "fp8"},
    "prefix caching off": {"enable_prefix_caching": False},
}


CONFIGS = gpu_configs(ROWS, referee_rows("vllm_kv_oracle.jsonl"))


def title(row: dict[str, Any]) -> str:
    return (
        f"{row['gpu']} {row['config'].removesuffix('_config.json')} {row['tp']} {row['kv_cache_dtype']} {row['case']}"
    )


KNOWN = [row for row in ROWS if row["config"] in CONFIGS]
PLANNED = {title(row): row for row in KNOWN if row["ok"]}
REFUSED = {title(row): row for row in KNOWN if not row["ok"]}


def ask(client: TestClient, row: dict[str, Any]) -> Any:
    question = {
        "model_config": CONFIGS[row["config"]],
        "gpu": GPUS[row["gpu"]],
        "tensor_parallel_size": row["tp"],
        "kv_cache_dtype": row["kv_cache_dtype"],
        "kv_cache_memory_bytes": row["available_kv_bytes"],
        "max_model_len": row.get("max_model_len") or row["requested_max_model_len"],
        "max_num_batched_tokens": row.get("max_num_batched_tokens", 8_192),
        "max_num_seqs": row.get("max_num_seqs", 1_024),
        **CASES[row["case"]],
    }
    return client.post("/capacity", content=json.dumps(question), headers={"content-type": "application/json"})


@pytest.mark.parametrize("case", PLANNED)
def test_the_plan_on_each_gpu_equals_the_engines(client: TestClient, case: str) -> None:
    row = PLANNED[case]

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


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_engine_refuses_to_start_is_refused(client: TestClient, case: str) -> None:
    response = ask(client, REFUSED[case])

    assert response.status_code == 422, response.text
    assert response.json()["errors"]


@pytest.mark.parametrize("case", PLANNED)
def test_weights_on_each_gpu_are_those_the_engine_instantiates(catalog: Snapshot, case: str) -> None:
    row = PLANNED[case]
    config = CONFIGS[row["config"]]
    at_load = row["case"] == "quantization=fp8 at load"
    weights = rank_weights(
        parse_architecture(config),
        layout=Layout(
            tensor_parallel_size=row["tp"],
            expert_parallel=row["case"] == "expert_parallel",
            decode_context_parallel_size=2 if row["case"] == "decode_context_parallel" else 1,
        ),
        quantization=standard_quantization("fp8") if at_load else parse_quantization(stated_quantization(config)),
        device=device_of(catalog.gpu(GPUS[row["gpu"]]), rules_for("vllm", "0.33")),
    )

    assert weights.param_bytes == pytest.approx(row["weights"]["param_bytes"], rel=1e-4)


def test_rows_whose_config_is_not_at_hand_are_named(record_property: Callable[[str, object], None]) -> None:
    unknown = Counter(row["config"] for row in ROWS if row["config"] not in CONFIGS)
    record_property("compared", f"oracle by GPU: {len(KNOWN)} of {len(ROWS)} rows; without a config: {dict(unknown)}")

    assert all(name.startswith("mg_") for name in unknown)
    assert len(PLANNED) + len(REFUSED) == len(KNOWN)
