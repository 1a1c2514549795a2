"""Pools, shares of memory and parameters of SGLang 0.5.23, as its own planner made them for models of the catalog.

`plans_of_sglang.csv`: what SGLang 0.5.23 from the registry planned in November 2026 without a GPU: its arguments
resolved on a platform that answers as each GPU does, its classes built without weights as the first rank of each stage, then
`KVCacheConfigurator` over so many free bytes. No kernel ran, and nothing was loaded. Settings are those of a question;
what images keep for themselves is left out of the bytes. Tokens are those of the scarcest stage, parameters those of the
largest.

Parameters are left empty where ours are not the same: of GPTQ (its orders and zeros, 0.5 to 0.8 %), of NVFP4 experts
before Blackwell (a second set of scales, which loading keeps: `test_scales_of_fp4_experts_lie_there_twice`), of DeepSeek V4
(projections in 16 bits, which loading makes here), and of some towers. Pages of recurrent and latent models on B200 are
64 there and 1 here: those rows are not in the file.
"""

import csv
from pathlib import Path
from typing import Final

import pytest
from starlette.testclient import TestClient

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, rank_weights
from service.engine.engines.device import device_of
from service.engine.errors import EngineError

with Path(__file__).with_name("plans_of_sglang.csv").open(encoding="utf-8", newline="") as file:
    ROWS: Final = list(csv.DictReader(file))
VERSION: Final = "0.5.23"
GPUS: Final = sorted({row["gpu"] for row in ROWS})


def settings(row: dict[str, str]) -> dict[str, str]:
    return dict(setting.split("=") for setting in row["settings"].split(";"))


def question(row: dict[str, str]) -> dict[str, str]:
    return {"engine": "sglang", "engine_version": VERSION, "gpu": row["gpu"], "model": row["model"], **settings(row)}


@pytest.mark.parametrize("gpu", GPUS)
def test_pools_equal_the_engines_own(client: TestClient, gpu: str) -> None:
    differing = []
    for row in ROWS:
        if row["gpu"] == gpu:
            asked = {**question(row), "kv_cache_memory_bytes": row["kv_cache_memory_bytes"]}
            cache = client.get("/capacity", params=asked).json()["kv_cache"]
            # Sums in floating point lose the last page, or token, of a round amount.
            is_near = abs(cache["tokens"] - int(row["tokens"])) <= max(cache["block_size"], 2)
            if not is_near or str(cache["block_size"]) != row["page_size"]:
                differing.append((asked, cache["tokens"], row["tokens"]))

    assert differing == []


@pytest.mark.parametrize("gpu", GPUS)
def test_shares_equal_the_engines_own(client: TestClient, gpu: str) -> None:
    differing = []
    for row in ROWS[::4]:
        if row["gpu"] == gpu:
            notes = client.get("/capacity", params=question(row)).json()["assumptions"]
            share = next(note["value"] for note in notes if note["name"] == "gpu_memory_utilization")
            if share != pytest.approx(float(row["mem_fraction_static"]), abs=1e-6):
                differing.append((question(row), share, row["mem_fraction_static"]))

    assert differing == []


def test_parameters_equal_the_engines_own(catalog: Snapshot) -> None:
    published = {}
    for entry in catalog.entries.models:
        try:
            model = catalog.model(entry.id)
        except EngineError:
            continue
        published.update({checkpoint.hf_id: (model, checkpoint) for checkpoint in model.checkpoints})
    differing = []
    for row in (row for row in ROWS if row["param_bytes"]):
        (model, checkpoint), asked = published[row["model"]], settings(row)
        weights = rank_weights(
            checkpoint.architecture or model.architecture,
            layout=Layout(
                tensor_parallel_size=int(asked["tensor_parallel_size"]),
                pipeline_parallel_size=int(asked.get("pipeline_parallel_size", 1)),
                expert_parallel="expert_parallel" in asked,
            ),
            quantization=checkpoint.quantization,
            device=device_of(catalog.gpu(row["gpu"]), rules_for("sglang", VERSION)),
        )
        if weights.param_bytes != pytest.approx(int(row["param_bytes"]), rel=1e-3):
            differing.append((row["model"], asked, weights.param_bytes, row["param_bytes"]))

    assert differing == []


def test_many_models_are_compared() -> None:
    assert len({row["model"] for row in ROWS}) >= 250
    assert sum(bool(row["param_bytes"]) for row in ROWS) >= 320
