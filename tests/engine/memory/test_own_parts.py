"""What SGLang's ranks hold whole of a tower, and to what they pad experts, against its sources."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import EngineName
from service.engine.memory.own_parts import as_held, kernels_as_run

# K2.5's config: `vt_num_hidden_layers` 27, `vt_hidden_size` 1152, `vt_intermediate_size` 4304. SGLang 0.5.9 to 0.5.23
# `models/kimi_k25.py` makes its `MLP2` of `nn.Linear`, and its attention of `VisionAttention`, which ranks split; the
# bias of the second matrix is whole in either engine.
FEED_FORWARD = 27 * (2 * 1_152 * 4_304 + 4_304)


@pytest.mark.parametrize(
    ("engine", "version", "beyond_vllm"),
    [("sglang", "0.5.9", 7 * FEED_FORWARD // 8), ("sglang", "0.5.23", 7 * FEED_FORWARD // 8), ("vllm", "0.33", 0)],
)
def test_sglang_s_ranks_hold_k2_5_s_feed_forward_parts_whole(
    catalog: Snapshot, engine: EngineName, version: str, beyond_vllm: int
) -> None:
    model = catalog.model("kimi-k2.5").architecture
    towers = [model.encoder, as_held(model, rules_for(engine, version).plan).encoder]
    split, spread = [tower.parameters(8) for tower in towers if tower is not None]

    assert spread - split == pytest.approx(beyond_vllm, abs=8)


@pytest.mark.parametrize("name", ["qwen3.5-397b-a17b", "llama-3.1-8b"])
def test_other_towers_are_split_as_vllm_s(catalog: Snapshot, name: str) -> None:
    model = catalog.model(name).architecture

    assert as_held(model, rules_for("sglang", "0.5.23").plan).encoder is model.encoder
    assert as_held(model, rules_for("vllm", "0.33").plan) is model


# SGLang `layers/moe/fused_moe_triton/layer.py` ("round_up(self.intermediate_size_per_partition, 128)", since 0.5.8);
# 0.5.23 `layers/quantization/modelopt_quant.py` (64 for gated experts in NVFP4)
@pytest.mark.parametrize(
    ("version", "gpu", "name", "hf_id", "padded"),
    [
        ("0.5.23", "b200", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", (("none", 128),)),
        ("0.5.8", "b200", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", (("none", 128),)),
        ("0.5.7", "b200", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", ()),
        ("0.5.23", "h100", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", ()),
        ("0.5.23", "b200", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-FP8", (("fp8-block", 128),)),
        ("0.5.23", "b200", "qwen3-235b-a22b", "nvidia/Qwen3-235B-A22B-NVFP4", (("nvfp4", 64),)),
        ("0.5.22", "b200", "qwen3-235b-a22b", "nvidia/Qwen3-235B-A22B-NVFP4", (("nvfp4", 128),)),
        ("0.5.14", "b200", "glm-4.5-air", "zai-org/GLM-4.5-Air", ()),
        ("0.5.23", "b200", "glm-4.5-air", "zai-org/GLM-4.5-Air", (("none", 128),)),
        ("0.5.23", "b200", "glm-4.5-air", "zai-org/GLM-4.5-Air-FP8", ()),
        ("0.5.23", "b200", "olmoe-1b-7b", "allenai/OLMoE-1B-7B-0924", ()),
    ],
)
def test_sglang_pads_experts_of_some_classes(
    catalog: Snapshot, version: str, gpu: str, name: str, hf_id: str, padded: tuple[tuple[str, int], ...]
) -> None:
    model, device = catalog.model(name), device_of(catalog.gpu(gpu), rules_for("sglang", version))
    stored = next(checkpoint.quantization for checkpoint in model.checkpoints if checkpoint.hf_id == hf_id)

    assert kernels_as_run(model.architecture, stored, device).storage.inner_of == padded
