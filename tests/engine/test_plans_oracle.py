"""Plans, weights and refusals of the catalog's models as vLLM 0.33.0's own planner has them on a simulated GPU.

Each row of `planned_0_33.csv` is a deployment of a checkpoint for contexts of 8,192 tokens with 40 GiB of cache on each
GPU: blocks, their tokens, the tokens of the log line, and the parameters of the fullest rank as they are instantiated.
No kernel ran. A row without figures is one that vLLM refuses to start.
"""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import (
    EngineError,
    Layout,
    MemoryPlan,
    ModelFacts,
    StatedSettings,
    check_layout,
    plan_replica,
    rank_weights,
)

with Path(__file__).with_name("planned_0_33.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
FIGURES = ("num_gpu_blocks", "block_size", "tokens", "rank_bytes")
POOL_BYTES = 40 << 30
# A step for which the planner did not find how long an item of sound is: `_get_min_mm_batched_tokens` ("Failed to
# determine min multimodal batched tokens"). vLLM 0.26 prints of this model what follows from a video's 2,496 tokens.
STEPS = {("gemma-4-12b-it", "a100-sxm-80gb"): 2_048}


def deployed(row: Mapping[str, str], catalog: Snapshot) -> MemoryPlan:
    """Return the plan of a row.

    Raises:
        EngineError: we refuse it.
    """
    layout = Layout(
        tensor_parallel_size=int(row["tp"]),
        pipeline_parallel_size=int(row["pp"]),
        expert_parallel=row["expert_parallel"] == "1",
    )
    stated = StatedSettings(
        kv_cache_dtype=row["kv_cache_dtype"],  # type: ignore[arg-type]
        block_size=int(row["stated_block"]) if row["stated_block"] else None,
        max_model_len=8_192,
        max_num_batched_tokens=STEPS.get((row["model"], row["gpu"])),
        kv_cache_memory_bytes=POOL_BYTES,
    )
    model, gpu = alone(catalog.model(row["model"]), row["checkpoint"]), catalog.gpu(row["gpu"])
    plan = plan_replica(model, gpu, layout, stated, rules_for("vllm", "0.33"), input_tokens=1, output_tokens=1)
    check_layout(plan.model.architecture, plan.checkpoint.quantization, layout, plan.device)
    return plan


def alone(model: ModelFacts, hf_id: str) -> ModelFacts:
    """Return a model whose own checkpoint is this one."""
    return replace(
        model, checkpoints=tuple(replace(each, is_default=each.hf_id == hf_id) for each in model.checkpoints)
    )


def figures(row: Mapping[str, str], catalog: Snapshot) -> tuple[str, ...]:
    """Return ours beside a row's; empty ones where we refuse."""
    try:
        plan = deployed(row, catalog)
    except EngineError:
        return ("",) * len(FIGURES)
    weights = rank_weights(
        plan.model.architecture, layout=plan.layout, quantization=plan.checkpoint.quantization, device=plan.device
    )
    cache = plan.kv_cache
    return tuple(map(str, (cache.num_gpu_blocks, cache.block_size, cache.tokens, weights.param_bytes)))


@pytest.mark.parametrize("gpu", sorted({row["gpu"] for row in ROWS}))
def test_plans_are_the_engine_s_own(gpu: str, catalog: Snapshot) -> None:
    rows = [row for row in ROWS if row["gpu"] == gpu]

    answers = [(row, figures(row, catalog)) for row in rows]
    differing = {
        " ".join(row[name] for name in list(row)[:8]): (ours, theirs)
        for row, ours in answers
        if ours != (theirs := tuple(row[name] for name in FIGURES))
    }
    assert differing == {}
