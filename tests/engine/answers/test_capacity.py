"""What the given GPUs carry, told at several loads and lengths."""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.answers.capacity import capacity
from service.engine.answers.size import size
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import Limits, StatedLayout
from tests.engine.conftest import Asked, arrivals, capacity_of, users


def test_the_curve_doubles_from_one_user_to_twice_the_slots(asked: Asked) -> None:
    question = asked(load=users(None), layout=StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1))
    answer = capacity(replace(capacity_of(question, 2), settings=replace(question.settings, max_num_seqs=48)))

    assert [point.concurrent_requests for point in answer.curve] == [
        2 * users for users in (1, 2, 4, 8, 16, 32, 64, 96)
    ]


def test_longer_contexts_hold_fewer_requests(asked: Asked) -> None:
    rows = capacity(capacity_of(asked(load=users(None)), 1)).table

    assert [row.context_tokens for row in rows] == [2_048, 8_192, 32_768, 131_072]
    held = [row.max_concurrent_requests for row in rows]
    assert held == sorted(held, reverse=True)


def test_a_pool_larger_than_the_gpu_is_what_binds_and_holds_nothing(asked: Asked) -> None:
    """The weights have room: `size` says so of the same question."""
    question = asked(load=users(4), settings=StatedSettings(kv_cache_memory_bytes=10**12))
    answer, sized = capacity(capacity_of(question, 1)), size(question)

    assert not answer.feasible
    assert answer.binding_constraint == sized.binding_constraint == "kv_cache"
    assert (answer.max_concurrent_requests, answer.max_model_len_fitting) == (0, 0)


@pytest.mark.parametrize("prompts", [1, 3, 5])
@pytest.mark.parametrize(
    "layout", [StatedLayout(), StatedLayout(pipeline_parallel_size=2), StatedLayout(data_parallel_size=2)]
)
def test_prompts_that_streams_do_not_share_evenly_are_no_more(asked: Asked, layout: StatedLayout, prompts: int) -> None:
    """One prompt over two stages was told as two at once, and as twice the rate."""
    question = asked("qwen3-32b", load=replace(users(32), num_prompts=prompts), layout=layout)
    answer = capacity(capacity_of(question, 2))

    assert answer.at_load is not None
    assert answer.latency is not None
    assert answer.at_load.concurrent_requests <= prompts * (1 + 1e-9)
    assert answer.at_load.requests_per_s <= prompts / answer.latency.end_to_end_s.mean * (1 + 1e-9)


def test_latency_is_told_beyond_what_is_carried(asked: Asked) -> None:
    question = capacity_of(asked(load=users(100_000), limits=Limits(ttft_s=0.5)), 1)
    answer = capacity(question)

    assert answer.latency is not None
    assert answer.at_load is not None
    assert answer.latency.ttft_s.mean > 100
    assert answer.at_load.concurrent_requests == pytest.approx(100_000, rel=0.05)
    assert answer.max_concurrent_requests < 1_000


def test_waits_that_nobody_limits_are_told_of_requests_of_stated_lengths(asked: Asked) -> None:
    # As many requests as any budget holds: steps of few tokens leave them the memory, and read prompts in many.
    question = capacity_of(asked("glm-4.6", "h200", load=users(216, 4_000, 500)), 8)
    told = [capacity(each) for each in (question, replace(question, limits=Limits(ttft_s=5.0, tpot_s=0.1)))]

    assert told[0].latency is not None
    assert told[0].latency.ttft_s.p95 > 5
    assert [any("no limit on latency was stated" in each for each in it.warnings) for it in told] == [True, False]


def test_limits_that_nobody_keeps_say_what_one_request_takes(asked: Asked) -> None:
    answer = capacity(capacity_of(asked(limits=Limits(ttft_s=1e-4)), 1))

    assert not answer.feasible
    assert answer.requests_per_s == 0
    assert answer.binding_constraint == "ttft"
    assert "ttft_s of at least" in answer.would_fit[0]


def test_weights_that_do_not_fit_say_what_is_missing(asked: Asked) -> None:
    answer = capacity(capacity_of(asked("llama-3.3-70b", load=users(1)), 1))

    # 141 GB of weights on 79 GiB.
    assert not answer.feasible
    assert answer.binding_constraint == "weights"
    assert answer.shortfall_bytes > 141e9 - 79 * 2**30
    assert answer.would_fit[0] == "gpu_count=2"
    assert "more memory on the GPU" in answer.would_fit[1]


@pytest.mark.parametrize(
    ("model", "gpu", "gpu_count", "limits"),
    [
        ("qwen3-coder-30b-a3b", "rtx-5090", 2, Limits()),
        ("llama-3.3-70b", "h100", 2, Limits(tpot_s=0.02)),
        ("llama-3.1-8b", "h100", 1, Limits(ttft_s=0.02)),
        ("deepseek-v3", "h100", 8, Limits()),
        ("llama-3.1-405b", "h100", 4, Limits(ttft_s=1.0, tpot_s=0.03)),
        ("gpt-oss-120b", "l40s", 1, Limits(tpot_s=0.02)),
    ],
)
def test_whatever_would_fit_does(asked: Asked, model: str, gpu: str, gpu_count: int, limits: Limits) -> None:
    """Referee: the same question with each change that was told; a limit a little tighter than the one told breaks.

    Two H100 were said to need 51 ms a token for Llama 3.3 70B, in two stages; side by side they write one in 27. Sixteen
    were named for Llama 3.1 405B, whatever time they take: they keep 1 s, and not 30 ms.
    """
    question = capacity_of(asked(model, gpu, load=users(1, 1_000, 200), limits=limits), gpu_count)
    answer = capacity(question)
    told = [sentence.split(":")[0] for sentence in answer.would_fit]
    changes: list[dict[str, Any]] = [
        dict(part.split("=") for part in each.removesuffix(" fits").split(" and ")) for each in told if "=" in each
    ]
    least = {each.split()[0]: float(each.split()[-1]) for each in told if " of at least " in each}

    assert not answer.feasible
    assert changes
    for change in changes:
        gpus = int(change.pop("gpu_count", gpu_count))
        changed = replace(question, gpu_count=gpus, settings=replace(question.settings, **change))
        assert capacity(changed).feasible
    if least:
        assert capacity(replace(question, limits=replace(limits, **least))).feasible
        tighter = {name: 0.97 * limit for name, limit in least.items()}
        assert not capacity(replace(question, limits=replace(limits, **tighter))).feasible


def test_a_stored_token_costs_what_its_bytes_take_to_read(asked: Asked) -> None:
    """A token's bytes over the memory's bandwidth at least, and by no more than kernels fall short of it."""
    answer = capacity(capacity_of(asked("llama-3.1-8b", "h100"), 1))
    floor_s = answer.kv_cache.bytes_per_token / 3.35e12

    assert answer.kv_read_s_per_token is not None
    assert floor_s <= answer.kv_read_s_per_token <= 2.5 * floor_s


def test_prompts_are_read_no_faster_than_the_gpu_multiplies(asked: Asked) -> None:
    answer = capacity(capacity_of(asked("llama-3.1-8b", "h100"), 1))
    most = 989.4e12 / (2 * 7.5e9)  # dense bf16 peak over two operations for each weight beside embeddings

    assert answer.prefill_tokens_per_s is not None
    assert 0.3 * most <= answer.prefill_tokens_per_s <= most


def test_without_times_neither_is_told(asked: Asked) -> None:
    answer = capacity(capacity_of(asked("llama-3.1-8b", "h100", timers=None), 1))

    assert (answer.kv_read_s_per_token, answer.prefill_tokens_per_s) == (None, None)


def test_more_than_is_carried_is_told_and_priced_by_what_is_answered(asked: Asked, catalog: Snapshot) -> None:
    question = replace(capacity_of(asked(load=users(None)), 1), offers=catalog.offers)
    most = capacity(question).requests_per_s
    assert most is not None
    beyond = capacity(replace(question, load=arrivals(50 * most)))
    crowded = capacity(replace(question, load=users(100_000), limits=Limits(ttft_s=0.5)))

    assert beyond.at_load is not None
    assert beyond.at_load.requests_per_s == pytest.approx(most, rel=0.15)
    assert beyond.at_load.requests_per_s + beyond.at_load.queue_growth_per_s == pytest.approx(50 * most)
    assert beyond.cost is not None
    assert beyond.cost.at_load is not None
    assert beyond.cost.at_load.requests_per_s == beyond.at_load.requests_per_s
    assert any("requests a second are asked for" in each and "more wait" in each for each in beyond.warnings)
    measured = capacity(replace(question, load=replace(arrivals(50 * most), num_prompts=100)))
    assert any("requests a second are asked for" in each and "more wait" not in each for each in measured.warnings)
    assert any(each.startswith("100,000 requests at once are asked for") for each in crowded.warnings)


def test_a_load_whose_lengths_nobody_states_is_told_to_fill_whole_contexts(asked: Asked) -> None:
    """Llama 3.1 serves 131,072 tokens (config.json): few mean users of such prompts by ten requests a second."""
    whole = replace(capacity_of(asked(load=arrivals(10.0)), 8), input_tokens=None, output_tokens=None)
    told = [each for each in capacity(whole).warnings if "whole context" in each]

    lengths = "130,560 tokens of prompt and 512 of answer"
    begins = "neither input_tokens nor output_tokens was stated: each request of the load fills a whole context"
    assert told == [f"{begins}, {lengths}"]
    for unasked in (replace(whole, load=users(None)), replace(whole, input_tokens=1_000)):
        assert not any("whole context" in each for each in capacity(unasked).warnings)


@pytest.mark.parametrize(("model", "is_idle"), [("llama-3.1-8b", True), ("qwen3-next-80b-a3b", False)])
def test_a_dtype_of_states_that_no_layer_keeps_is_told(asked: Asked, model: str, *, is_idle: bool) -> None:
    question = asked(model, "h200", load=users(4))
    stated = replace(question.settings, mamba_cache_dtype="float32")
    warned = [each for each in capacity(replace(capacity_of(question, 2), settings=stated)).warnings if "mamba" in each]

    assert [each.startswith("mamba_cache_dtype decides nothing") for each in warned] == [True] * is_idle
