"""Layers over pipeline stages, as engines deal them out."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import EngineName, EngineSettings, Layout, StageRule
from service.engine.memory.separate_pools import separate_pools
from service.engine.memory.stages import pipeline_stages
from service.engine.memory.weights import rank_weights

ENGINES: tuple[tuple[EngineName, str], ...] = (("vllm", "0.33"), ("sglang", "0.5.23"))
# vLLM tests/distributed/test_pipeline_partition.py (`test_uneven_auto_partition`)
PARTITIONS = {
    (2, 2): [(0, 1), (1, 2)],
    (3, 2): [(0, 2), (2, 3)],
    (3, 3): [(0, 1), (1, 2), (2, 3)],
    (4, 3): [(0, 1), (1, 3), (3, 4)],
    (5, 3): [(0, 2), (2, 4), (4, 5)],
}


@pytest.mark.parametrize(("case", "stages"), PARTITIONS.items(), ids=str)
def test_what_remains_spares_the_last_stage_and_then_the_first(
    case: tuple[int, int], stages: list[tuple[int, int]]
) -> None:
    assert pipeline_stages(*case) == stages


@pytest.mark.parametrize(
    ("rule", "stages"),
    [
        # SGLang 0.5.6 to 0.5.23 `distributed/utils.py`: "the last N partitions will have one extra layer".
        ("last", [(0, 15), (15, 30), (30, 46), (46, 62)]),
        # 0.4.6 to 0.5.5: "the last partition will have the remaining layers".
        ("rest_last", [(0, 15), (15, 30), (30, 45), (45, 62)]),
    ],
)
def test_sglang_gives_what_remains_to_the_last_stages(rule: StageRule, stages: list[tuple[int, int]]) -> None:
    assert pipeline_stages(62, 4, rule) == stages


def test_the_last_stage_holds_more_experts_under_sglang(catalog: Snapshot) -> None:
    """DeepSeek V3's 61 layers on two stages: 30 and 31, of which the first three have no experts."""
    facts, layout = catalog.model("deepseek-v3"), Layout(tensor_parallel_size=8, pipeline_parallel_size=2)
    experts = {
        version: rank_weights(
            facts.architecture, layout=layout, quantization=facts.checkpoints[0].quantization,
            device=device_of(catalog.gpu("h200"), rules_for(engine, version)),
        ).by_component["experts"]
        for engine, version in ENGINES
    }  # fmt: skip

    assert experts["0.5.23"] / experts["0.33"] == pytest.approx(31 / 30, rel=1e-3)


def test_pools_follow_the_stage_that_keeps_the_most(catalog: Snapshot) -> None:
    architecture, layout = catalog.model("gpt-oss-120b").architecture, Layout(pipeline_parallel_size=8)
    settings = EngineSettings(
        gpu_memory_utilization=0.9, kv_cache_dtype="bf16", max_model_len=8_192, max_num_batched_tokens=8_192,
        max_num_seqs=64, stage_rule="rest_last",
    )  # fmt: skip

    # 36 layers, every other one with a window: eight on the last of eight stages, where each could have five.
    assert separate_pools(architecture, layout, settings, 1 << 30).full_bytes_per_token == 4 * 2 * 8 * 64 * 2
