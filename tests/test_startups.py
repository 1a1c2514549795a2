"""Logged start-ups with drafts: compared where the drafter is the checkpoint's own, left out with a reason elsewhere."""

from typing import Any

import pytest

from service.calibration.logs.rows import Skipped
from service.calibration.startups import Comparison, compare_startup
from service.catalog.snapshot import Snapshot
from service.engine import GIB

# public log of vLLM 0.27.1: "Model loading took 29.36 GiB memory; GPU KV cache size: 549,184 tokens"
QWEN: dict[str, Any] = {
    "id": "qwen",
    "engine": "vllm",
    "engine_version": "0.27.1",
    "model": "Qwen3.8-27B-Unc-FP8",
    "quantization": "fp8",
    "gpu": "NVIDIA A100-SXM4-80GB",
    "tp": 1,
    "gpu_memory_utilization": 0.92,
    "max_model_len": 131_072,
    "spec_decode": "qwen3_5_mtp n=4",
    "weights_gib": 29.36,
    "kv_cache_tokens": 549_184,
}


def compared(row: dict[str, Any], catalog: Snapshot) -> dict[str, Comparison]:
    found = compare_startup(row, catalog)
    assert isinstance(found, list), found
    return {it.quantity: it for it in found}


@pytest.mark.parametrize("stated", ["qwen3_5_mtp n=4", "mtp n=4", "MTP (num_speculative_tokens=4)", "MTP (4)"])
def test_drafts_of_the_checkpoints_own_modules_are_compared(catalog: Snapshot, stated: str) -> None:
    found = compared({**QWEN, "spec_decode": stated}, catalog)

    assert abs(found["kv_cache_tokens"].error_fraction) <= 0.015


def test_the_loaded_modules_count_as_weights(catalog: Snapshot) -> None:
    # huggingface.co/Qwen/Qwen3.5-9B: of 9,653,104,368 parameters 243,290,624 are the draft layer's, 2 bytes each.
    row = {**QWEN, "model": "Qwen/Qwen3.5-9B", "quantization": None, "weights_gib": 18.0, "kv_cache_gib": 50.0}

    with_modules, without = (
        compared({**row, "spec_decode": drafts}, catalog)["weight_bytes"].predicted for drafts in ("mtp n=1", None)
    )

    assert with_modules - without == pytest.approx(2 * 243_290_624, rel=0.01)


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ("DFlash n=3", "drafter's weights"),
        ("DSpark k=5", "drafter's weights"),
        ("gemma-4-31B-it-assistant MTP n=4", "drafter's weights"),
        ("EAGLE/MTP", "drafter's weights"),
        ("mtp", "how many tokens"),
    ],
)
def test_drafts_that_nobody_can_know_are_left_out(catalog: Snapshot, stated: str, reason: str) -> None:
    found = compare_startup({**QWEN, "spec_decode": stated}, catalog)

    assert isinstance(found, Skipped)
    assert reason in found.reason


def test_a_pinned_pool_needs_no_utilization(catalog: Snapshot) -> None:
    # public log of vLLM 0.27.2, block size 1,600: 106,288 tokens. Its GPUs, of compute capability 7.5, run an fp8 cache
    # in a patched build alone; a pinned pool is split alike on any.
    row = {
        **QWEN,
        "model": "Qwen3.8-27B FP8",
        "gpu": "NVIDIA L40S x2",
        "tp": 2,
        "gpu_memory_utilization": None,
        "kv_cache_dtype": "fp8_e4m3",
        "max_model_len": 102_400,
        "max_num_seqs": 1,
        "spec_decode": "mtp n=3",
        "kv_cache_tokens": 106_288,
        "quote": "--kv-cache-memory-bytes 2300000000",
    }

    found = compared(row, catalog)

    assert found["kv_cache_tokens"].predicted == 106_288
    assert "kv_cache_bytes" not in found


def test_a_peak_below_a_sort_says_that_flashinfer_sampled(catalog: Snapshot) -> None:
    # llm-d-planner, docs/empirical-vllm-memory-results.md: 0.11.0 of an image with FlashInfer, 131,072 tokens x 1,024
    # sequences: sorting them would take 4.6 GiB, and 2.12 were printed.
    row = {
        "id": "mistral",
        "engine": "vllm",
        "engine_version": "0.11.0",
        "model": "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        "gpu": "NVIDIA H100",
        "gpu_total_gib": 79.18,
        "tp": 1,
        "gpu_memory_utilization": 0.95,
        "max_model_len": 16_000,
        "weights_gib": 44.76,
        "kv_cache_gib": 28.2,
    }

    of_image = compared({**row, "activation_peak_gib": 2.12}, catalog)
    of_package = compared(row, catalog)

    assert of_image["kv_cache_bytes"].error_fraction == pytest.approx(0, abs=0.01)
    assert of_package["kv_cache_bytes"].predicted == pytest.approx(28.2 * GIB - (38 - 14) * 131_072 * 1_024, rel=0.01)
