"""Starts that vLLM refused, by what it said: the cache a longest request needs, and the longest that would fit.

To serve at least one request with the models's max seq len (N), (X GiB KV cache is needed, which is larger than the
available KV cache memory (Y GiB). Based on the available memory, the estimated maximum model length is M.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, StatedSettings, plan_replica
from service.engine.memory.results import KvCache

GIB = 1 << 30
HALF_A_DIGIT = 0.005 * GIB  # Two digits are printed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What an engine said as it refused to start."""

    model: str
    version: str
    length: int  # N [tokens]
    needed_gib: float  # X
    available_gib: float  # Y
    longest: int = 0  # M; 0 where none was said [tokens]
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    gpu: str = "h200"  # of its generation; a pool that is given does not ask for its size
    stated: dict[str, Any] = field(default_factory=dict)


REPORTS = {
    # GitHub issues and pull requests.
    "vllm-project/vllm 16118": Refused(
        model="llama-4-scout-17b-16e-instruct",
        version="0.8.3",
        length=1_048_576,
        needed_gib=24.0,
        available_gib=9.97,
        tensor_parallel_size=8,
    ),
    "vllm-project/vllm 20148": Refused(
        model="gemma-2-9b", version="0.9.1", length=8_192, needed_gib=2.63, available_gib=1.64, longest=5_088
    ),
    "vllm-project/recipes 12": Refused(
        model="qwen3-coder-480b",
        version="0.10.1",
        length=262_144,
        needed_gib=62.0,
        available_gib=48.66,
        longest=205_728,
    ),
    "vllm-project/vllm 25350": Refused(
        model="qwen3-30b-a3b-instruct-2507",
        version="0.10.2",
        length=221_000,
        needed_gib=10.12,
        available_gib=5.59,
        longest=122_080,
        stated={"kv_cache_dtype": "fp8"},
    ),
    "vllm-project/vllm 27508": Refused(
        model="gpt-oss-120b",
        version="0.11",
        length=131_072,
        needed_gib=4.54,
        available_gib=1.71,
        stated={"max_num_batched_tokens": 1_024},
    ),
    "vllm-project/vllm 38516": Refused(
        model="qwen3-4b", version="0.18", length=40_960, needed_gib=5.62, available_gib=4.89, longest=35_600
    ),
    "kaito-project/kaito 2132": Refused(
        model="mistral-small-4-119b",
        version="0.20",
        length=1_048_576,
        needed_gib=22.5,
        available_gib=17.39,
        longest=810_208,
        tensor_parallel_size=2,
    ),
    "vllm-project/vllm 44376": Refused(
        model="deepseek-v4-flash",
        version="0.22",
        length=30_000,
        needed_gib=6.66,
        available_gib=5.44,
        longest=13_528,
        tensor_parallel_size=2,
        stated={"kv_cache_dtype": "fp8", "block_size": 256, "max_num_batched_tokens": 16_384},
    ),
    # Logs and notes in repositories.
    "RedHatAI/Qwen3.6-35B-A3B-NVFP4 on an RTX 5090, 2026-04-19": Refused(
        model="qwen3.6-35b-a3b",
        version="0.19.2",
        length=98_304,
        needed_gib=1.06,
        available_gib=0.47,
        longest=35_632,
        stated={"kv_cache_dtype": "fp8", "max_num_batched_tokens": 32_768, "enable_prefix_caching": True},
    ),
    "Gemma 4 31B over two stages of RTX 3090, 2026-06-01": Refused(
        model="gemma-4-31b-it",
        version="0.21",
        length=33_024,
        needed_gib=3.22,
        available_gib=1.95,
        longest=4_624,
        pipeline_parallel_size=2,
        stated={"max_num_batched_tokens": 4_096, "language_model_only": True},
    ),
    "meta-llama/Llama-3.1-8B-Instruct on a Mac": Refused(
        model="llama-3.1-8b", version="0.22", length=131_072, needed_gib=16.0, available_gib=8.99, longest=73_680
    ),
    # Latents of fp8 lie unpacked there, and are read row by row.
    "GLM 5.2 on MI308X": Refused(
        model="glm-5.2",
        version="0.29",
        gpu="mi300x",
        length=1_048_576,
        needed_gib=46.58,
        available_gib=1.23,
        tensor_parallel_size=8,
        stated={"kv_cache_dtype": "fp8"},
    ),
    # Before 0.24 every layer has an indexer, the 57 that reuse a selection too, and the one that drafts.
    "GLM 5.2 with five drafts on MI300X, 2026-07-02": Refused(
        model="glm-5.2",
        version="0.23",
        gpu="mi300x",
        length=1_048_576,
        needed_gib=54.62,
        available_gib=48.82,
        tensor_parallel_size=8,
        stated={"kv_cache_dtype": "fp8", "num_speculative_tokens": 5, "speculative_method": "mtp"},
    ),
    "Qwen3-235B-A22B over four GPUs": Refused(
        model="qwen3-235b-a22b-instruct-2507",
        version="0.11",
        length=262_144,
        needed_gib=11.75,
        available_gib=8.03,
        tensor_parallel_size=4,
    ),
    # The checkpoint itself asks for a cache of fp8.
    "nvidia/MiniMax-M2.5-NVFP4 on an H200": Refused(
        model="minimax-m2.5",
        version="0.19",
        length=131_072,
        needed_gib=15.5,
        available_gib=5.98,
        stated={"weight_format": "nvfp4"},
    ),
    "Qwen3.6-35B-A3B with two drafts": Refused(
        model="qwen3.6-35b-a3b",
        version="0.28",
        length=262_144,
        needed_gib=3.04,
        available_gib=1.89,
        longest=153_216,
        stated={"kv_cache_dtype": "fp8", "num_speculative_tokens": 2, "speculative_method": "mtp"},
    ),
    "Qwen3.8-27B with two drafts on an RTX 5090, 2026-08-23": Refused(
        model="qwen3.8-27b",
        version="0.28",
        length=196_608,
        needed_gib=7.0,
        available_gib=6.42,
        longest=177_600,
        stated={
            "kv_cache_dtype": "fp8",
            "max_num_batched_tokens": 2_048,
            "max_num_seqs": 1,
            "num_speculative_tokens": 2,
            "speculative_method": "mtp",
        },
    ),
    # A step of so many tokens holds that much of its window and of its compressor's.
    "DeepSeek V4 Pro with steps of 16,384 tokens": Refused(
        model="deepseek-v4-pro",
        version="0.21",
        length=1_048_576,
        needed_gib=14.88,
        available_gib=11.44,
        longest=411_904,
        tensor_parallel_size=8,
        stated={"kv_cache_dtype": "fp8", "block_size": 256, "max_num_batched_tokens": 16_384},
    ),
    "Gemma 4 26B A4B with steps of 8,192 tokens": Refused(
        model="gemma-4-26b-a4b",
        version="0.22",
        length=8_192,
        needed_gib=1.72,
        available_gib=0.6,
        longest=2_832,
        stated={"max_num_batched_tokens": 8_192},
    ),
    "GLM 5.3 with three drafts, each request over two GPUs": Refused(
        model="glm-5.3",
        version="0.28",
        length=917_504,
        needed_gib=23.38,
        available_gib=22.61,
        longest=886_912,
        tensor_parallel_size=8,
        decode_context_parallel_size=2,
        stated={"kv_cache_dtype": "fp8", "num_speculative_tokens": 3, "speculative_method": "mtp"},
    ),
}


def planned(catalog: Snapshot, report: Refused, pool_bytes: float) -> KvCache:
    """Return the pool of a deployment that was refused, had it so many bytes."""
    layout = Layout(
        tensor_parallel_size=report.tensor_parallel_size,
        pipeline_parallel_size=report.pipeline_parallel_size,
        decode_context_parallel_size=report.decode_context_parallel_size,
    )
    stated = StatedSettings(max_model_len=report.length, kv_cache_memory_bytes=int(pool_bytes), **report.stated)
    rules = rules_for("vllm", report.version)
    return plan_replica(catalog.model(report.model), catalog.gpu(report.gpu), layout, stated, rules).kv_cache


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_start_is_refused_below_what_the_engine_said_it_needs(catalog: Snapshot, report: Refused) -> None:
    needed = report.needed_gib * GIB

    assert planned(catalog, report, needed - 1.1 * HALF_A_DIGIT).estimated_max_model_len < report.length
    assert planned(catalog, report, needed + 1.1 * HALF_A_DIGIT).estimated_max_model_len == report.length


@pytest.mark.parametrize("report", [each for each in REPORTS.values() if each.longest], ids=str)
def test_the_longest_request_is_the_engines_own(catalog: Snapshot, report: Refused) -> None:
    available = report.available_gib * GIB
    least, most = (
        planned(catalog, report, available + side * HALF_A_DIGIT).estimated_max_model_len for side in (-1, 1)
    )

    assert least <= report.longest <= most


def test_since_0_29_the_check_leaves_out_the_block_that_is_never_handed_out(catalog: Snapshot) -> None:
    """0.29 `v1/core/kv_cache_utils.py`: "Reserve the null block BlockPool permanently holds back"."""
    report = Refused(model="llama-3.1-8b", version="0.28", length=131_072, needed_gib=16.0, available_gib=8.99)
    newer = Refused(model="llama-3.1-8b", version="0.29", length=131_072, needed_gib=16.0, available_gib=8.99)

    assert planned(catalog, report, 16 * GIB).estimated_max_model_len == 131_072
    assert planned(catalog, newer, 16 * GIB).estimated_max_model_len == 131_072 - 16
