"""What SGLang keeps for images, against its own constants and planner."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout
from service.engine.memory.images import kept_for_images, sees_in_sglang

MIB = 1 << 20


# SGLang 0.5.18 `environ.py`: SGLANG_VLM_CACHE_SIZE_MB = 100, SGLANG_MM_FEATURE_CACHE_MB = 1024. Its planner of 0.5.23
# gave Qwen3-VL-32B on eight H100 229,376 tokens of 32 KiB of 8 GiB: 7 GiB.
@pytest.mark.parametrize(
    ("model", "gpu", "version", "requests", "kept"),
    [
        ("qwen2.5-vl-7b-instruct", "h100", "0.5.23", 64, 100 * MIB),
        ("qwen2.5-vl-7b-instruct", "h100", "0.5.17", 64, 0),
        ("qwen3-vl-32b-instruct", "h100", "0.5.23", 64, 8 * 1_024 * MIB - 229_376 * 32 * 1_024),
        ("qwen3-vl-32b-instruct", "h100", "0.5.23", 400, 3 * 1_024 * MIB),
        ("qwen3-vl-32b-instruct", "h100", "0.5.19", 64, 100 * MIB),
        ("qwen3-vl-32b-instruct", "b200", "0.5.23", 64, 100 * MIB),
        ("gemma-3-27b-it", "h100", "0.5.23", 64, 0),
        ("qwen3-32b", "h100", "0.5.23", 64, 0),
    ],
)
def test_memory_is_kept_by_version_class_and_gpu(
    catalog: Snapshot, model: str, gpu: str, version: str, requests: int, kept: int
) -> None:
    architecture, rules = catalog.model(model).architecture, rules_for("sglang", version)
    layout = Layout(tensor_parallel_size=8)

    assert kept_for_images(architecture, catalog.gpu(gpu), layout, rules, requests) == kept


def test_over_servers_features_stay_in_the_host(catalog: Snapshot) -> None:
    architecture, rules = catalog.model("qwen3-vl-32b-instruct").architecture, rules_for("sglang", "0.5.23")
    layout = Layout(tensor_parallel_size=8, pipeline_parallel_size=2)

    assert kept_for_images(architecture, catalog.gpu("h100"), layout, rules, 64) == 100 * MIB


def test_nothing_is_kept_by_vllm(catalog: Snapshot) -> None:
    architecture = catalog.model("qwen2.5-vl-7b-instruct").architecture

    assert sees_in_sglang(architecture)
    assert kept_for_images(architecture, catalog.gpu("h100"), Layout(), rules_for("vllm"), 64) == 0
