"""Bytes of one matrix, against the tensors of published checkpoints."""

import pytest

from service.engine.formats.matrix import Matrix
from service.engine.formats.quantization import UNQUANTIZED, Quantization, parse_quantization
from service.engine.formats.stored import matrix_bytes

# matrix, how it is stored, bytes as the shapes of the published tensors give them, and where
PUBLISHED: dict[str, tuple[Matrix, Quantization, int]] = {
    # huggingface.co/openai/gpt-oss-120b: gate_up_proj_blocks 128 x 5760 x 90 x 16, gate_up_proj_scales 128 x 5760 x 90
    "gpt-oss, one expert": (
        Matrix(module="model.layers.0.mlp.experts.gate_up_proj", rows=5_760, columns=2_880, parts=2),
        parse_quantization({"quant_method": "mxfp4"}),
        5_760 * 90 * 16 + 5_760 * 90,
    ),
    # huggingface.co/deepseek-ai/DeepSeek-V3: weight 18432 x 7168, weight_scale_inv 144 x 56 in fp32
    "DeepSeek-V3, gate projection": (
        Matrix(module="model.layers.0.mlp.gate_proj", rows=18_432, columns=7_168),
        parse_quantization({"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}),
        18_432 * 7_168 + 144 * 56 * 4,
    ),
    # huggingface.co/TheBloke/Llama-2-7B-AWQ: qweight 4096 x 512 and qzeros 32 x 512 in int32, scales 32 x 4096 in fp16
    "Llama 2 7B AWQ, query projection": (
        Matrix(module="model.layers.0.self_attn.q_proj", rows=4_096, columns=4_096),
        parse_quantization({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}),
        4_096 * 512 * 4 + 32 * 512 * 4 + 32 * 4_096 * 2,
    ),
    # huggingface.co/Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8: qweight 2048 x 8192 in int32, scales 64 x 8192 in fp16; vLLM
    # 0.33 drops the zero points of symmetric weights while loading (`MarlinLinearKernel`)
    "Qwen 2.5 72B GPTQ of 8 bits, query projection": (
        Matrix(module="model.layers.0.self_attn.q_proj", rows=8_192, columns=8_192),
        parse_quantization({"quant_method": "gptq", "desc_act": False, "sym": True, "bits": 8, "group_size": 128}),
        2_048 * 8_192 * 4 + 64 * 8_192 * 2,
    ),
    # huggingface.co/nvidia/Llama-3.1-8B-Instruct-FP4: weight 4096 x 2048 bytes, weight_scale 4096 x 256, two of fp32
    "Llama 3.1 8B NVFP4, query projection": (
        Matrix(module="model.layers.0.self_attn.q_proj", rows=4_096, columns=4_096),
        parse_quantization({"quant_algo": "NVFP4", "quant_method": "modelopt"}),
        4_096 * 2_048 + 4_096 * 256 + 2 * 4,
    ),
    # huggingface.co/meta-llama/Llama-3.1-8B: 4096 x 4096 in bf16
    "Llama 3.1 8B, query projection": (
        Matrix(module="model.layers.0.self_attn.q_proj", rows=4_096, columns=4_096), UNQUANTIZED, 4_096 * 4_096 * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_matrix_takes_the_bytes_of_its_tensors(name: str) -> None:
    matrix, quantization, expected = PUBLISHED[name]

    assert matrix_bytes(matrix, quantization, 2) == expected


def test_what_is_left_out_keeps_the_model_s_dtype() -> None:
    head = Matrix(module="lm_head", rows=128_256, columns=4_096)
    quantization = parse_quantization(
        {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    )

    assert matrix_bytes(head, quantization, 2) == 128_256 * 4_096 * 2
