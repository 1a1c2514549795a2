"""All-reduces over PCIe: the referees are NCCL's own figures of other messages, and published runs on such GPUs."""

from dataclasses import replace

import numpy as np
import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings, deployed, plan_replica
from service.engine.inputs import Layout
from service.engine.time.records import TOKENS
from service.performance.estimated import kernels_over_sound_link, over_sound_link
from service.performance.known import Knowledge
from service.performance.links import joined_by_pcie, published_pcie, slowest_link
from tests.conftest import shared_tables, shared_timers


@pytest.mark.parametrize(
    ("ranks", "message_bytes", "link_bytes_per_s", "seconds"),
    [
        (2, 2**22, 64e9, 129.3e-6),
        (2, 2**25, 64e9, 930.6e-6),
        (2, 2**22, 32e9, 221.5e-6),
        (4, 2**19, 64e9, 78.1e-6),
        (4, 2**22, 64e9, 245.4e-6),
        (8, 2**19, 64e9, 156.1e-6),
        (8, 2**22, 64e9, 345.5e-6),
        (8, 2**25, 64e9, 2_493.6e-6),
    ],
)
def test_nccl_takes_as_long_as_was_measured(
    ranks: int, message_bytes: int, link_bytes_per_s: float, seconds: float
) -> None:
    # aiconfigurator-core 0.12, nccl_perf: RTX PRO 6000 (PCIe 5.0) and, of two ranks at 32 GB/s, L40S.
    sent = np.array([2 * (ranks - 1) / ranks * message_bytes])

    assert published_pcie().seconds(sent, link_bytes_per_s, ranks)[0] == pytest.approx(seconds, rel=0.5)


def test_more_ranks_and_more_bytes_never_take_less() -> None:
    pcie = published_pcie()
    sent = np.array([1.0, 1e5, 1e8])
    seconds = [pcie.seconds(sent, 32e9, ranks).tolist() for ranks in (2, 4, 8)]

    assert all(row == sorted(row) for row in seconds)
    assert all(list(column) == sorted(column) for column in zip(*seconds, strict=True))


def test_bridged_gpus_have_pcie_beyond_their_bridge(catalog: Snapshot) -> None:
    # NVIDIA's data sheets: H100 NVL is bridged in pairs, H200 NVL in fours; PCIe 5.0 x16 carries 64 GB/s.
    pair, four = catalog.gpu("h100-nvl"), catalog.gpu("h200-nvl")

    assert [slowest_link(pair, ranks) for ranks in (2, 4, 8)] == [300e9, 64e9, 64e9]
    assert [joined_by_pcie(pair, ranks) for ranks in (2, 4, 16)] == [False, True, False]
    assert [slowest_link(four, ranks) for ranks in (4, 8)] == [450e9, 64e9]
    assert slowest_link(pair, 16) == 64e9  # eight network cards of 50 GB/s a node are not what limits a ring


@pytest.mark.parametrize(("ranks", "tokens_per_s"), [(4, 169.0), (8, 163.7)])
def test_l40s_reads_prompts_as_fast_as_tensorrt_llm_published(
    catalog: Snapshot, ranks: int, tokens_per_s: float
) -> None:
    # TensorRT-LLM v0.16 perf-overview: Llama 3.1 70B fp8 on L40S, 2,048 tokens in and 128 out, offline.
    layout, rules = Layout(tensor_parallel_size=ranks), rules_for("tensorrt-llm")
    stated = StatedSettings(weight_format="fp8", kv_cache_dtype="fp8")
    key = deployed(plan_replica(catalog.model("llama-3.1-70b"), catalog.gpu("l40s"), layout, stated, rules))
    timing = shared_timers().timer(key)
    published = 8_192 / ((2_048 + 128) * tokens_per_s / 128)

    assert timing is not None
    assert f"{ranks} ranks of l40s were measured over a slow link; times of 2" in timing.basis.note
    # Prompts are all but a sixteenth of the tokens.
    assert timing.steps.mixed_s(8_192, 1_024, 0, 0) == pytest.approx(published, rel=0.45)


def test_two_ranks_of_l40s_are_those_that_were_measured(catalog: Snapshot) -> None:
    stated, rules = StatedSettings(kv_cache_dtype="bf16"), rules_for("vllm")
    layout, model = Layout(tensor_parallel_size=2), catalog.model("llama-3.1-8b")
    key = deployed(plan_replica(model, catalog.gpu("l40s"), layout, stated, rules))
    four = replace(key, layout=Layout(tensor_parallel_size=4))

    assert over_sound_link(key) is key
    assert over_sound_link(four) == key
    # 8,192 tokens among four: 32 layers, two all-reduces of 64 MiB each at 5.1 GB/s would take 1.27 s.
    assert kernels_over_sound_link(four, shared_tables()).tokens[TOKENS.index(8_192.0)] < 0.8


@pytest.mark.parametrize(
    "layout",
    [
        Layout(tensor_parallel_size=4),
        Layout(tensor_parallel_size=4, pipeline_parallel_size=2),
        Layout(tensor_parallel_size=8, decode_context_parallel_size=2),
    ],
)
def test_rooflines_that_are_kept_tell_as_much_of_a_sound_link_as_new_ones(catalog: Snapshot, layout: Layout) -> None:
    stated, rules = StatedSettings(kv_cache_dtype="bf16"), rules_for("vllm")
    key = deployed(plan_replica(catalog.model("llama-3.1-8b"), catalog.gpu("l40s"), Layout(), stated, rules))
    spread = replace(key, layout=layout)
    kept, anew = Knowledge(shared_tables()).measured(spread), kernels_over_sound_link(spread, shared_tables())

    assert over_sound_link(spread) != spread
    assert (kept.decode, kept.tokens, kept.attention) == (anew.decode, anew.tokens, anew.attention)
