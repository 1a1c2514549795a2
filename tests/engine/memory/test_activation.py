"""What the profiling run needs beside weights: towers as public logs print them, layers as the engine runs them."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.answers.replica import plan_replica
from service.engine.arithmetic import GIB
from service.engine.engines.device import device_of
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture
from service.engine.memory.activation import (
    Working,
    expert_workspace_elements,
    widest_layer_elements,
    working_of,
)
from service.engine.memory.plan import ledger_of

SEQS, ONE = 8, Layout()


def working(architecture: Architecture, layout: Layout = ONE, version: str | None = None) -> Working:
    settings = EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="auto",
        max_model_len=16_000,
        max_num_batched_tokens=8_192,
        max_num_seqs=SEQS,
    )
    return working_of(architecture, layout, settings, rules_for("vllm", version))


# model, batched tokens, items, tokens of each; the line "Encoder cache will be initialized with a budget of ...,
# and profiled with ... items of the maximum feature size" of public logs (vLLM 0.11 to 0.23).
PROFILED = {
    "Qwen3.6 27B, 65,536": ("qwen3.6-27b", 65_536, 4, 16_384),
    "Qwen3.6 35B-A3B, 4,096": ("qwen3.6-35b-a3b", 4_096, 1, 16_384),
    "Gemma 4 26B-A4B, 2,048": ("gemma-4-26b-a4b-it", 2_048, 1, 2_496),
    "Gemma 4 26B-A4B, 16,384": ("gemma-4-26b-a4b-it", 16_384, 6, 2_496),
    # vLLM 0.28 `models/gemma4_unified.py`: "num_frames * (_VIDEO_MAX_SOFT_TOKENS + 2 + 6)".
    "Gemma 4 12B, 2,048": ("gemma-4-12b-it", 2_048, 1, 2_496),
    "Gemma 3 27B, 8,192": ("gemma-3-27b-it", 8_192, 31, 260),
}


@pytest.mark.parametrize(("model", "batched", "items", "each"), PROFILED.values(), ids=PROFILED)
def test_a_vision_tower_is_profiled_with_its_largest_item(
    catalog: Snapshot, model: str, batched: int, items: int, each: int
) -> None:
    architecture = catalog.model(model).architecture

    assert working(architecture).encoder_tokens(batched) == items * each
    assert working(replace(architecture, encoder=None)).encoder_tokens(batched) == 0


@pytest.mark.parametrize(
    ("model", "gpu", "version", "tokens"),
    [
        # Start-up of 2026-04-19, v0.19.2rc1: "Encoder cache will be initialized with a budget of 2496 tokens" beside
        # 'compile_ranges_endpoints': [2048]; "Forcing --disable_chunked_mm_input" is said from 0.20 on.
        ("gemma-4-26b-a4b-it", "rtx-5090", "0.19.2", 2_048),
        ("gemma-4-26b-a4b-it", "rtx-5090", "0.20.2", 2_496),
        ("gemma-4-12b-it", "gb10", "0.26.0", 2_496),
        ("gemma-3-27b-it", "rtx-5090", "0.19.2", 2_048),
    ],
)
def test_a_step_holds_an_item_whose_tokens_see_each_other(
    catalog: Snapshot, model: str, gpu: str, version: str, tokens: int
) -> None:
    rules = rules_for("vllm", version)
    plan = plan_replica(catalog.model(model), catalog.gpu(gpu), Layout(), StatedSettings(max_model_len=8_192), rules)

    assert plan.settings.max_num_batched_tokens == tokens


@pytest.mark.parametrize(
    ("model", "gpu", "version", "length", "pool_gib", "printed"),
    [
        # The same start-up: "Available KV cache memory: 8.29 GiB", "98,304 tokens per request: 6.73x".
        ("gemma-4-26b-a4b-it", "rtx-5090", "0.19.2", 98_304, 8.29, 6.73),
        # vllm-openai:v0.26.0-aarch64: "36.19 GiB", "Maximum concurrency for 262,144 tokens per request: 12.39x"
        ("gemma-4-12b-it", "gb10", "0.26.0", 262_144, 36.19, 12.39),
    ],
)
def test_windows_hold_the_steps_that_start_ups_print(
    catalog: Snapshot, model: str, gpu: str, version: str, length: int, pool_gib: float, printed: float
) -> None:
    stated = StatedSettings(max_model_len=length, kv_cache_dtype="fp8", kv_cache_memory_bytes=int(pool_gib * (1 << 30)))
    plan = plan_replica(catalog.model(model), catalog.gpu(gpu), Layout(), stated, rules_for("vllm", version))

    assert plan.kv_cache.max_concurrency == pytest.approx(printed, abs=0.0051)


def test_ranks_share_a_tower_and_deep_stacks_add_outputs(catalog: Snapshot) -> None:
    architecture = catalog.model("qwen3-vl-8b-instruct").architecture
    assert architecture.encoder is not None
    without = replace(architecture, encoder=replace(architecture.encoder, outputs=1))
    alone, four = (working(architecture, Layout(tensor_parallel_size=tp)).peak_bytes(8, SEQS) for tp in (1, 4))

    # Qwen3-VL-8B: 16,384 tokens, 4,096 wide, and three deep stacks beside the output.
    assert alone - working(without).peak_bytes(8, SEQS) == 16_384 * 4_096 * 3 * 2
    # 4 patches x (2 x 4,304 + 3 x 1,152) split, 4 x 2 x 1,152 whole.
    assert alone - four == 16_384 * 2 * (4 * 12_064 - 12_064)


def test_the_first_version_with_qwen3_vl_kept_room_for_the_longest_video(catalog: Snapshot) -> None:
    # Public log of vLLM 0.11.0, Qwen3-VL-30B-A3B on four RTX 3090: "Encoder cache will be initialized with a budget
    # of 153600 tokens", 14.77 GiB of weights, 2.31 GiB for the cache; four vectors of 2,048 for each token.
    architecture = catalog.model("qwen3-vl-30b-a3b-instruct").architecture
    kept = [working(architecture, version=version).kept_bytes(2_048) for version in ("0.11.0", "0.11.1")]

    assert kept[0] - kept[1] == (153_600 - 16_384) * 4 * 2_048 * 2


# model, elements per token on one of two ranks: the widest part's halves, and the residual stream in and out
WIDEST = {
    "Llama 3.1 8B, feed-forward": ("llama-3.1-8b-instruct", 3 * 14_336 // 2 + 2 * 4_096),
    "DeepSeek-V3, latents of all heads": ("deepseek-v3", 128 * 2 * 576 // 2 + 2 * 7_168),
    "Granite 4.0 H Small, Mamba 2": ("granite-4.0-h-small", (5 * 8_192 + 6 * 2 * 128 + 128) // 2 + 2 * 4_096),
}


@pytest.mark.parametrize(("model", "elements"), WIDEST.values(), ids=WIDEST)
def test_the_widest_part_decides(catalog: Snapshot, model: str, elements: int) -> None:
    assert widest_layer_elements(catalog.model(model).architecture, Layout(tensor_parallel_size=2)) == elements


def test_no_layer_of_the_catalog_works_in_nothing(catalog: Snapshot) -> None:
    silent = [
        (entry.id, mixer)
        for entry in catalog.entries.models
        if catalog.refusal(entry.id) is None
        for mixer in catalog.model(entry.id).architecture.mixers
        if not mixer.is_empty and not mixer.live(1).per_token
    ]

    assert silent == []


def test_experts_copy_each_token_for_each_choice(catalog: Snapshot) -> None:
    # Mixtral 8x7B (arXiv:2401.04088): two of eight experts, 14,336 columns, 4,096 wide.
    architecture = catalog.model("mixtral-8x7b-v0.1").architecture

    assert expert_workspace_elements(architecture, Layout()) == 2 * 3 * 14_336
    assert expert_workspace_elements(architecture, Layout(tensor_parallel_size=2)) == 2 * 3 * 7_168
    assert expert_workspace_elements(catalog.model("llama-3.1-8b").architecture, Layout()) == 0


def test_an_earlier_context_is_expanded_in_chunks(catalog: Snapshot) -> None:
    # vLLM 0.33 `mla_attention.py`: at most 65,536 tokens of (128 + 128) x 128 heads and one latent, in two bytes.
    architecture = catalog.model("deepseek-v3").architecture

    assert working(architecture).forward_bytes(8, SEQS) == 65_536 * (128 * 256 + 576) * 2


def test_one_row_of_the_vocabulary_is_sampled_for_each_sequence(catalog: Snapshot) -> None:
    assert working(catalog.model("llama-3.1-8b").architecture).sampled_logits(8_192, SEQS) == 8 * 128_256


def test_deep_stacks_have_buffers_beside_the_weights(catalog: Snapshot) -> None:
    """Qwen3-VL-30B-A3B on an H100 NVL, a published start-up of vLLM 0.13.0: "Model loading took 58.2299 GiB"."""
    model, h100 = catalog.model("qwen3-vl-30b-a3b-instruct"), catalog.gpu("h100-nvl")
    settings = EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="auto",
        max_model_len=8_192,
        max_num_batched_tokens=8_192,
        max_num_seqs=256,
    )

    rules = rules_for("vllm", "0.13.0")
    ledger = ledger_of(model, model.checkpoints[0], h100, ONE, settings, rules)

    assert ledger.memory(8_192, 256).weight_bytes / (1 << 30) == pytest.approx(58.2299, rel=0.0005)
    # Three buffers of 8,192 tokens, 2,048 wide; without images, and in SGLang, none.
    assert working(model.architecture, ONE, "0.13.0").loaded_bytes(8_192) == 3 * 8_192 * 2_048 * 2
    sglang = rules_for("sglang", None)
    assert working_of(model.architecture, ONE, settings, sglang, device_of(h100, sglang)).loaded_bytes(8_192) == 0
    assert working_of(model.architecture, ONE, replace(settings, is_text_only=True), rules).loaded_bytes(8_192) == 0


@pytest.mark.parametrize(
    ("max_model_len", "tokens"),
    [
        (128_000, 114_688),  # vLLM 0.23: "Encoder cache will be initialized with a budget of 114688 tokens"
        (
            32_768,
            32_768,
        ),  # vLLM 0.11 of Qwen2.5-Omni, which has the same tower: "a budget of 32768 tokens" (issue 25970)
        (8_192, 16_384),
    ],
)
def test_a_video_has_as_many_pictures_as_the_context_holds(catalog: Snapshot, max_model_len: int, tokens: int) -> None:
    settings = EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="bf16",
        max_model_len=max_model_len,
        max_num_batched_tokens=8_192,
        max_num_seqs=256,
    )
    profiled = working_of(catalog.model("qwen2.5-vl-7b").architecture, Layout(), settings, rules_for("vllm"))

    assert profiled.encoder_tokens(8_192) == tokens


def test_what_a_video_takes_was_printed(client: TestClient) -> None:
    """Qwen2.5-VL 7B of vLLM 0.23 on an A100 of 79.25 GiB: "Available KV cache memory: -14.28 GiB"."""
    asked: dict[str, Any] = {"model": "qwen2.5-vl-7b", "gpu": "a100-80gb", "engine_version": "0.23.0"}
    told = client.get("/capacity", params={**asked, "max_model_len": 128_000, "gpu_memory_utilization": 0.22}).json()

    assert not told["feasible"]
    assert told["memory_per_gpu"]["shortfall_bytes"] / GIB == pytest.approx(14.28, rel=0.02)
