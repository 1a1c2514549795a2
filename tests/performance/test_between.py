"""Step times of copies of the attention between those that were measured."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Layout
from service.engine.time.steps import Deployed
from service.performance.between import neighbours
from tests.conftest import shared_timers

# Kernels are between those of both; where bytes over bandwidth bound a step of one of them, the bound is not.
SLACK = 0.005


def deployed(catalog: Snapshot, model: str, layout: Layout) -> Deployed:
    facts = catalog.model(model)
    return Deployed(
        model=facts,
        checkpoint=own_checkpoint(facts),
        gpu=catalog.gpu("h200"),
        layout=layout,
        kv_cache_dtype="bf16",
        rules=rules_for("vllm"),
    )


@pytest.mark.parametrize("model", ["deepseek-v3", "qwen3-30b-a3b"])
@pytest.mark.parametrize("copies", [3, 7])
def test_seven_ranks_take_times_between_those_of_four_and_eight(catalog: Snapshot, model: str, copies: int) -> None:
    timers, layout = shared_timers(), Layout(data_parallel_size=copies, expert_parallel=True)
    pair = neighbours(layout)
    assert pair is not None
    between, *ends = (timers.timer(deployed(catalog, model, each)) for each in (layout, *pair))

    assert between is not None
    assert between.basis.is_measured
    assert "times lie between those of" in between.basis.note
    for requests in (1, 64, 512):
        low, high = sorted(end.steps.decode_s(requests, 2_000) for end in ends if end is not None)
        assert low * (1 - SLACK) <= between.steps.decode_s(requests, 2_000) <= high * (1 + SLACK)


def test_layers_of_latents_take_the_times_of_kernels_that_were_measured_for_them(catalog: Snapshot) -> None:
    # aiconfigurator-core 0.12, mla_generation_module_perf.parquet of h200_sxm, vllm 0.24.0: 0.54 ms for 256 requests of
    # 2,049 tokens and 128 heads, 61 layers; 58 layers of experts take 1.1 ms of 2,048 tokens (moe_perf.parquet).
    layout = Layout(data_parallel_size=8, expert_parallel=True)
    key = deployed(catalog, "deepseek-v3", layout)
    timing = shared_timers().timer(replace(key, rules=rules_for("vllm")))

    assert timing is not None
    assert 0.05 < timing.steps.decode_s(256, 2_049) < 0.3


def test_powers_of_two_have_no_neighbours() -> None:
    assert neighbours(Layout(data_parallel_size=8)) is None
    assert neighbours(Layout()) is None
