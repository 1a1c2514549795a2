"""What a slot of SGLang's pools takes on each stage, against its own planner of 0.5.23 (built without weights)."""

from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout
from service.engine.inputs import EngineSettings
from service.engine.memory.stage_slots import stage_slots


def settings(**changes: Any) -> EngineSettings:
    given = {"max_model_len": 8_192, "max_num_batched_tokens": 8_192, "max_num_seqs": 64, "kv_cache_dtype": "bf16"}
    return EngineSettings(gpu_memory_utilization=0.9, stage_rule="last", **{**given, **changes})


def full_bytes(catalog: Snapshot, model: str, layout: Layout, **changes: Any) -> list[int]:
    slots = stage_slots(catalog.model(model).architecture, layout, settings(**changes))
    return [stage.full_bytes for stage in slots]


def test_stages_keep_their_own_layers(catalog: Snapshot) -> None:
    """`cell` of MiniMax-M3 in two stages of two ranks: 37,632 and 38,400, whose first layers have no indexer."""
    layout = Layout(tensor_parallel_size=2, pipeline_parallel_size=2)

    assert full_bytes(catalog, "minimax-m3", layout) == [37_632, 38_400]


def test_a_class_that_does_not_say_which_layers_it_has_keeps_all(catalog: Snapshot) -> None:
    """`layers` of MiniMax-M2.5 in two stages: 0 to 62 in both."""
    staged, whole = (
        full_bytes(catalog, "minimax-m2.5", Layout(tensor_parallel_size=2, pipeline_parallel_size=stages))
        for stages in (2, 1)
    )

    assert staged == whole == [62 * 2 * 4 * 128 * 2]


def test_layers_that_read_anothers_cache_keep_one(catalog: Snapshot) -> None:
    """`cell` of Gemma 4 E2B: 35 layers, of which 20 share a cache in vLLM."""
    slots = stage_slots(catalog.model("gemma-4-e2b-it").architecture, Layout(), settings())

    assert slots[0].full_bytes == 7 * 2 * 512 * 2
    assert slots[0].window_bytes == 28 * 2 * 256 * 2


@pytest.mark.parametrize(
    ("model", "version", "own", "drafted"),
    [
        ("qwen3.5-4b", "0.5.23", 8, 8),  # 1,041,687 tokens; with a layer more 925,944
        ("qwen3.5-4b", "0.5.19", 8, 9),
        ("deepseek-v3", "0.5.23", 61, 62),  # `num_nextn_predict_layers` is stated
    ],
)
def test_drafts_count_where_the_config_states_them(
    catalog: Snapshot, model: str, version: str, own: int, drafted: int
) -> None:
    counts = rules_for("sglang", version).plan.counts_stated_drafts
    drafting = {"num_speculative_tokens": 3, "speculative_method": "mtp", "counts_stated_drafts": counts}
    plain, with_drafts = (full_bytes(catalog, model, Layout(), **stated)[0] for stated in ({}, drafting))

    assert with_drafts * own == plain * drafted
