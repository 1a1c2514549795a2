"""Which classes SGLang and TensorRT-LLM have, as their sources tell."""

import pytest

from service.engine.families.registry import REGISTRY
from service.engine.families.served_by import SGLANG_LACKS, lacked_by


def test_every_class_that_sglang_lacks_is_one_of_ours() -> None:
    assert set(REGISTRY.families) >= SGLANG_LACKS


@pytest.mark.parametrize(
    ("name", "engines"),
    [
        ("JambaForCausalLM", {"sglang", "tensorrt-llm"}),  # the attention of Transformers cannot be exchanged
        ("MiniMaxText01ForCausalLM", {"sglang", "tensorrt-llm"}),  # removed
        ("SeedOssForCausalLM", set()),  # SGLang runs that of Transformers
        ("SmolLM3ForCausalLM", {"tensorrt-llm"}),  # AutoDeploy alone
        ("Qwen3MoeForCausalLM", set()),
    ],
)
def test_engines_lack_what_their_registries_do_not_name(name: str, engines: set[str]) -> None:
    assert lacked_by(name) == engines
