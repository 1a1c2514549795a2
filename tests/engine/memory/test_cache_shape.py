"""The cache against figures printed in papers, model cards and documentation, to the byte."""

from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import Device, device_of
from service.engine.families import parse_architecture
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout
from service.engine.memory.cache_shape import CacheAsk, cache_shape, hybrid_block_size, steady_bytes
from service.engine.memory.results import KvCache
from service.engine.memory.shared_pool import plan_kv_cache

GIB = 1 << 30
PAGED_ATTENTION = "arXiv:2309.06180 section 3: 2 x layers x heads x width x bytes"
DEEPSEEK_HARDWARE = "arXiv:2505.09343 table 1, KB of 1,000 bytes"

# model, cache dtype, bytes per token, where it is printed
PER_TOKEN = {
    "Llama 2 7B": (
        "llama-2-7b",
        "fp16",
        524_288,
        "0.5 MB per token, developer.nvidia.com/blog/mastering-llm-techniques",
    ),
    "Qwen2.5-7B": ("qwen2.5-7b-instruct", "bf16", 57_344, f"28 layers, 4 heads of 128; {PAGED_ATTENTION}"),
    "Mistral 7B": ("mistral-7b-v0.3", "bf16", 131_072, f"32 layers, 8 heads of 128; {PAGED_ATTENTION}"),
    "Qwen2.5-72B": ("qwen2.5-72b", "bf16", 327_680, DEEPSEEK_HARDWARE),
    "Llama-3.1-405B": ("llama-3.1-405b-instruct", "bf16", 516_096, DEEPSEEK_HARDWARE),
    "Llama-3.1-405B, 1 byte": ("llama-3.1-405b-instruct", "fp8", 258_048, "half of the row above"),
    "DeepSeek-V3": ("deepseek-v3", "bf16", 70_272, DEEPSEEK_HARDWARE),
    "DeepSeek-V3, 1 byte": ("deepseek-v3", "fp8", 35_136, "half of the row above"),
    "gpt-oss-120b, full layers": (
        "gpt-oss-120b",
        "bf16",
        36_864,
        "18 full layers, 8 heads of 64; openai.com gpt-oss model card",
    ),
    "Llama 3.3 70B, 1 byte": (
        "llama-3.3-70b-instruct",
        "fp8",
        163_840,
        f"80 layers, 8 heads of 128; {PAGED_ATTENTION}",
    ),
}


def cache_of(
    catalog: Snapshot, model: str, dtype: KvCacheDtype, *, tensor_parallel_size: int = 1, pool: int = 40 * GIB
) -> KvCache:
    return plan_kv_cache(
        catalog.model(model).architecture,
        layout=Layout(tensor_parallel_size=tensor_parallel_size),
        settings=settings(dtype),
        available_bytes=pool,
    )


def settings(dtype: KvCacheDtype, max_model_len: int = 8_192) -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.92,
        kv_cache_dtype=dtype,
        max_model_len=max_model_len,
        max_num_batched_tokens=8_192,
        max_num_seqs=1_024,
    )


@pytest.mark.parametrize(("model", "dtype", "expected", "printed"), PER_TOKEN.values(), ids=PER_TOKEN)
def test_bytes_per_token_are_the_published_ones(
    catalog: Snapshot, model: str, dtype: KvCacheDtype, expected: int, printed: str
) -> None:
    assert cache_of(catalog, model, dtype).bytes_per_token == expected, printed


@pytest.mark.parametrize("tensor_parallel_size", [1, 2, 4, 8, 16])
def test_a_latent_is_the_same_on_every_rank(catalog: Snapshot, tensor_parallel_size: int) -> None:
    cache = cache_of(catalog, "deepseek-v3", "bf16", tensor_parallel_size=tensor_parallel_size)

    assert cache.bytes_per_token_per_gpu == 70_272


def test_a_window_stops_growing(catalog: Snapshot) -> None:
    shape = cache_shape(catalog.model("gpt-oss-120b").architecture, Layout(), "bf16", None)

    grown = steady_bytes(shape, 100_128) - steady_bytes(shape, 100_000)

    assert grown == 128 * 36_864
    assert steady_bytes(shape, 128) == 128 * 2 * 36_864  # while the windows fill, all 36 layers grow


def test_gemma_3_27b_needs_a_sixth_of_the_textbook_formula(catalog: Snapshot) -> None:
    # 10 full layers of 131,072 tokens and 52 windows of 1,024 tokens, 16 heads of 128 at 2 bytes.
    shape = cache_shape(catalog.model("gemma-3-27b-it").architecture, Layout(), "bf16", None)

    steady = steady_bytes(shape, 131_072)

    assert round(steady / GIB, 1) == 10.4
    assert round(62 * 2 * 16 * 128 * 2 * 131_072 / GIB) == 62


LLAMA_8B: dict[str, Any] = {  # huggingface.co/meta-llama/Llama-3.1-8B/blob/main/config.json
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
# layers, key-value heads, width, tokens, bytes
READINGS = {
    "4,096 tokens x 8 sequences of 32 layers": (32, 8, 128, 4_096 * 8, 4 * GIB),
    "8,192 tokens x 80 layers": (80, 8, 128, 8_192, 2_684_354_560),
    "64 requests of 6,000 tokens, 70B": (80, 8, 128, 64 * 6_000, 64 * 6_000 * 327_680),
}


@pytest.mark.parametrize(("layers", "heads", "width", "tokens", "expected"), READINGS.values(), ids=READINGS)
def test_readings_on_paper(layers: int, heads: int, width: int, tokens: int, expected: int) -> None:
    config = {**LLAMA_8B, "num_hidden_layers": layers, "num_key_value_heads": heads, "head_dim": width}

    shape = cache_shape(parse_architecture(config), Layout(), "bf16", None)

    assert steady_bytes(shape, tokens) == expected


# state bytes, token bytes, block that kernels accept, grid, block: the oracle's rows of Qwen3-Next-80B-A3B in bf16 and
# fp8, and of Kimi-Linear-48B-A3B, whose latents want whole 128s
INFLATED = {
    "Qwen3-Next, bf16": (1_097_728, 2_048, 16, 64, 576),
    "Qwen3-Next, fp8": (1_097_728, 1_024, 16, 64, 1_088),
    "Kimi Linear": (2_170_880, 1_152, 128, 0, 1_920),
}


@pytest.mark.parametrize(("state", "token", "block", "grid", "inflated"), INFLATED.values(), ids=INFLATED)
def test_blocks_are_inflated_until_a_page_holds_a_state(
    state: int, token: int, block: int, grid: int, inflated: int
) -> None:
    assert hybrid_block_size(block, token, state, checkpoint_grid=grid) == inflated


def test_the_stage_with_the_largest_blocks_counts(catalog: Snapshot) -> None:
    architecture = catalog.model("llama-3.1-8b").architecture
    whole, uneven = (
        cache_shape(architecture, Layout(pipeline_parallel_size=stages), "bf16", None) for stages in (1, 3)
    )

    # 32 layers over three stages are 10, 11 and 11.
    assert (len(whole.groups[0].specs), len(uneven.groups[0].specs)) == (32, 11)
    assert uneven.bytes_per_token == whole.bytes_per_token == 131_072


@pytest.mark.parametrize(
    ("version", "stated", "tokens"), [("1.2", None, 32), ("0.20", None, 32), ("0.15", None, 64), ("1.2", 8, 8)]
)
def test_blocks_of_tensorrt_llm_are_its_own(catalog: Snapshot, version: str, stated: int | None, tokens: int) -> None:
    """`KvCacheConfig.tokens_per_block` is 32; a log of 0.20 says "32 tokens per block", engines before had 64."""
    device = device_of(catalog.gpu("h100"), rules_for("tensorrt-llm", version))

    shape = cache_shape(catalog.model("llama-3.1-8b").architecture, Layout(), "bf16", stated, device=device)

    assert {spec.block_size for group in shape.groups for spec in group.specs} == {tokens}


def test_states_in_the_models_dtype_make_the_blocks_that_vllm_printed(catalog: Snapshot) -> None:
    """vLLM's issue 24280 of September 2025: "672 tokens for nvidia/NVIDIA-Nemotron-Nano-9B-v2".

    The 12B has the same heads and states. Configs that name fp32 were read from 0.13 on (pull request 29978); there
    `--mamba-ssm-cache-dtype bfloat16` makes the same blocks, and fp32 twice as long ones.
    """
    architecture, h100 = catalog.model("nvidia-nemotron-nano-12b-v2").architecture, catalog.gpu("h100")
    then, now = (device_of(h100, rules_for("vllm", version)) for version in ("0.10.2", "0.33"))
    narrow = CacheAsk(caches_prefixes=False, matrix_dtype="bfloat16")
    own = CacheAsk(caches_prefixes=False)

    def block(ask: CacheAsk, device: Device) -> int:
        return cache_shape(architecture, Layout(), "auto", None, ask=ask, device=device).block_size

    assert [block(own, then), block(narrow, now), block(own, now)] == [672, 672, 1_312]


def pool_of_tensorrt_llm(
    catalog: Snapshot, model: str, device: Device, available_bytes: int, limits: tuple[int, int, int]
) -> KvCache:
    """Return a pool under the longest context, the most requests and the most tokens of a step."""
    longest, most_requests, most_tokens = limits
    return plan_kv_cache(
        architecture=catalog.model(model).architecture,
        layout=Layout(),
        settings=EngineSettings(
            gpu_memory_utilization=0.9,
            kv_cache_dtype="bf16",
            max_model_len=longest,
            max_num_seqs=most_requests,
            max_num_batched_tokens=most_tokens,
        ),
        available_bytes=available_bytes,
        input_tokens=512,
        output_tokens=512,
        device=device,
    )


def test_windows_of_tensorrt_llm_fill_like_any_layer(catalog: Snapshot) -> None:
    """gpt-oss-120b under 1.1.0rc3 on a DGX Spark, as its log says.

    "kv size is 73728", "Allocated 5.95 GiB for max tokens in paged KV cache (86720)."
    `_torch/pyexecutor/resource_manager.py`: "Use max_seq_len as default max_attention_window".
    """
    spark = catalog.gpu("gb10")
    then, newer = (device_of(spark, rules_for("tensorrt-llm", version)) for version in ("1.1.0rc3", "1.3"))

    pool = pool_of_tensorrt_llm(catalog, "gpt-oss-120b", then, 86_720 * 73_728, (86_720, 64, 8_192))

    assert (pool.bytes_per_token, pool.tokens) == (73_728, 86_720)
    assert cache_shape(catalog.model("gpt-oss-120b").architecture, Layout(), "bf16", None, device=newer).longest_window


def test_tensorrt_llm_counts_the_tokens_of_its_pool_by_blocks(catalog: Snapshot) -> None:
    """Llama 3 8B under 1.2.0rc4 on an H200, contexts of 1025 tokens: faradawn/bench3 on GitHub.

    "tokens per block=32, primary blocks=28150", "Allocated 109.96 GiB for max tokens in paged KV cache (900800)."
    """
    device = device_of(catalog.gpu("h200"), rules_for("tensorrt-llm", "1.2.0rc4"))

    pool = pool_of_tensorrt_llm(catalog, "llama-3-8b-instruct", device, 900_800 * 131_072, (1_025, 32, 1_024))

    assert (pool.num_gpu_blocks, pool.tokens) == (28_150, 900_800)
