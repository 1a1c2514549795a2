"""Ling 3, of whose configs no row of the referee holds any, against the totals of its checkpoints."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.inputs import Layout
from service.engine.layers import LatentAttention
from service.engine.memory.parameters import num_parameters
from service.questions.capacity import CapacityQuery
from service.questions.sources import PastedModels, Sources

NAME = "BailingMoeV3ForCausalLM"
# huggingface.co/inclusionAI/Ling-3.0-tiny and Ling-3.0-flash, config.json
TINY: dict[str, Any] = {
    "architectures": [NAME], "num_hidden_layers": 24, "hidden_size": 1536, "num_attention_heads": 16, "head_dim": 128,
    "intermediate_size": 4608, "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 512,
    "num_shared_experts": 1, "num_experts": 128, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
    "q_lora_rank": 256, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "layer_group_size": 4, "short_conv_kernel_size": 4, "no_kda_lora": True, "vocab_size": 157_184,
    "gated_attention_proj_granularity_type": "head_wise", "max_position_embeddings": 131_072,
}  # fmt: skip
FLASH: dict[str, Any] = TINY | {
    "num_hidden_layers": 42, "hidden_size": 2560, "num_attention_heads": 32, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "moe_shared_expert_intermediate_size": 768, "num_experts": 512, "q_lora_rank": None,
    "first_k_dense_replace": 2, "layer_group_size": 6,
}  # fmt: skip
VISION: dict[str, Any] = {
    "architectures": ["BailingMoeV3VLForConditionalGeneration"], "text_config": FLASH, "vision_config": {"depth": 27}
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "printed"),
    # huggingface.co, safetensors of inclusionAI/Ling-3.0-tiny, Ling-3.0-flash-VL
    [(TINY, 7_893_392_800), (VISION, 124_848_460_496)],
)
def test_parameters_are_the_printed_ones(config: dict[str, Any], printed: int) -> None:
    assert num_parameters(parse_architecture(config)) == printed


def test_a_checkpoint_with_a_prediction_module_prints_its_layer_projection_and_norms_too() -> None:
    model = parse_architecture(FLASH | {"num_nextn_predict_layers": 1})
    assert model.mtp is not None
    width = model.hidden_size
    stored = [matrix for part in model.mtp.body.layers[0].parts for matrix in part.matrices(width, Layout(), "")]
    layer = sum(matrix.elements for matrix in stored if "scale" not in matrix.module)

    # huggingface.co/inclusionAI/Ling-3.0-flash, safetensors: two norms of the layer, and three of the module
    assert num_parameters(model) + layer + (2 * width + 2 + 3) * width == 127_486_405_600


def test_latents_end_each_group_and_follow_the_last_whole_one() -> None:
    model = parse_architecture(TINY | {"num_hidden_layers": 10})

    latent = [layer.index for layer in model.layers if isinstance(layer.mixers[0], LatentAttention)]

    assert latent == [3, 7, 8, 9]  # vLLM 0.33 `bailing_moe_v3.py` (`_is_kda_layer`)


def test_low_rank_decays_are_refused_as_the_engine_does() -> None:
    with pytest.raises(UnsupportedModelError, match="no_kda_lora"):
        parse_architecture(TINY | {"no_kda_lora": False})


def test_a_checkpoint_of_experts_in_four_bits_is_as_heavy_as_its_files(catalog: Snapshot) -> None:
    sources = Sources(catalog=catalog, timers=None, pasted_models=PastedModels())
    module = 512 * 3 * 2_560 * 768 * 17 // 32  # experts of the prediction module, which is not loaded without a draft

    answer = CapacityQuery(model="inclusionAI/Ling-3.0-flash-fp4", gpu="b300", gpu_count=1).answer(sources).result

    # 70.4 GB of safetensors on huggingface.co
    assert answer.memory_per_gpu.weight_bytes + module == pytest.approx(70.4e9, rel=0.01)


def test_experts_beside_fp8_blocks_may_be_mxfp4() -> None:
    stored = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
        "routed_experts_quant_method": "mxfp4",
    }
    plain, four = (parse_architecture(TINY | extra).layers[-1].mlp for extra in ({}, {"quantization_config": stored}))

    assert [part.matrices(1536, Layout(), "")[0].scheme for part in (plain, four)] == ["", "mxfp4"]
