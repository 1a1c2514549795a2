"""Groups of compressed-tensors, as RedHatAI's checkpoints on huggingface.co state them."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import UnsupportedModelError
from service.engine.formats.compressed_tensors import compressed_tensors
from service.engine.formats.matrix import Matrix
from service.engine.formats.scheme import MOST_GROUPS, Quantization
from service.engine.formats.stored import matrix_bytes


def group(bits: int, kind: str, targets: list[str], **further: Any) -> dict[str, Any]:
    return {"targets": targets, "weights": {"num_bits": bits, "type": kind, **further}}


def read(*groups: dict[str, Any], **further: Any) -> Quantization:
    stated = {"config_groups": {f"group_{number}": each for number, each in enumerate(groups)}, **further}
    return compressed_tensors(ConfigReader(stated), ("lm_head",))


BY_TOKEN = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}


@pytest.mark.parametrize(
    ("stated", "scheme", "block"),
    [
        (group(8, "float", ["Linear"], strategy="channel"), "fp8-channel", 0),  # FP8-dynamic
        (group(8, "int", ["Linear"], strategy="channel") | {"input_activations": BY_TOKEN}, "int8-both", 0),  # w8a8
        (group(8, "int", ["Linear"], strategy="channel"), "int8-group", 0),  # quantized.w8a16
        (group(4, "int", ["Linear"], group_size=128), "int4-group", 128),  # quantized.w4a16
        (group(4, "float", ["Linear"], group_size=16), "nvfp4", 16),  # NVFP4
        (group(4, "float", ["Linear"], group_size=32), "mxfp4", 32),
        (group(8, "float", ["Linear"], strategy="group", group_size=32), "mxfp8", 32),
        (group(8, "int", ["Linear"], strategy="group", group_size=128), "int8-group", 128),
        (group(8, "float", ["Linear"], strategy="block", block_structure=[128, 128]), "fp8-block", 128),
    ],
)
def test_bits_and_type_are_a_scheme(stated: dict[str, Any], scheme: str, block: int) -> None:
    stored = read(stated)

    assert (stored.scheme, stored.block, stored.is_compressed_tensors) == (scheme, block, True)


W4A8 = group(4, "int", ["Linear"], strategy="group", group_size=128, symmetric=True)


def test_integers_beside_fp8_activations_hold_wider_scales() -> None:
    # cutlass.py: `cutlass_pack_scale_fp8` makes eight bytes of a group's scale; `weight_chan_scale` is fp32 a row
    beside = read(W4A8 | {"input_activations": BY_TOKEN}, format="pack-quantized")
    matrix = Matrix(module="model.layers.0.mlp.down_proj", rows=4_096, columns=14_336)

    assert matrix_bytes(matrix, beside, 2) == 4_096 * 14_336 // 2 + 4_096 * 112 * 8 + 4_096 * 4


@pytest.mark.parametrize(
    ("weights", "activations"),
    [
        ({}, BY_TOKEN | {"type": "int"}),
        ({}, BY_TOKEN | {"strategy": "tensor"}),
        ({}, BY_TOKEN | {"dynamic": False}),
        ({"group_size": 64}, BY_TOKEN),
        ({"symmetric": False}, BY_TOKEN),
    ],
)
def test_other_activations_beside_integers_are_refused(weights: dict[str, Any], activations: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match="4 bits of int beside"):
        read({**W4A8, "weights": W4A8["weights"] | weights, "input_activations": activations})


def test_two_groups_speak_for_what_their_targets_match() -> None:
    stored = read(
        group(8, "float", ["re:.*self_attn.*"], strategy="channel"), group(4, "float", ["Linear"], group_size=16)
    )

    assert stored.weight_format == "nvfp4"
    assert stored.of("model.layers.0.self_attn.q_proj").scheme == "fp8-channel"
    assert stored.of("model.layers.0.mlp.down_proj").scheme == "nvfp4"


def test_a_group_of_the_attention_itself_belongs_to_the_cache() -> None:
    stored = read(
        group(4, "int", ["Linear"], group_size=128),
        group(8, "float", ["LlamaAttention"]),
        kv_cache_scheme={"num_bits": 8},
    )

    assert stored.kv_cache_dtype == "fp8"
    assert stored.of("model.layers.0.mlp.down_proj").scheme == "int4-group"


def test_bits_without_a_rule_and_too_many_groups_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="3 bits of int"):
        read(group(3, "int", ["Linear"]))
    with pytest.raises(UnsupportedModelError, match="groups of 64"):
        read(group(8, "float", ["Linear"], strategy="group", group_size=64))
    with pytest.raises(UnsupportedModelError, match=f"more than {MOST_GROUPS}"):
        read(*[group(8, "int", [f"name{number}"]) for number in range(MOST_GROUPS + 1)])


def test_sparse_weights_and_mixed_operands_are_refused() -> None:
    # vLLM pull request 36799; w4a8 runs on capability 9.0 alone, or as 8 bits: vLLM 0.33 `compressed_tensors.py`.
    packed = group(4, "int", ["Linear"], group_size=128)

    with pytest.raises(UnsupportedModelError, match="sparse weights"):
        read(packed, format="marlin-24")
    with pytest.raises(UnsupportedModelError, match="sparse weights"):
        read(packed, sparsity_config={"format": "sparse-24-bitmask", "targets": ["Linear"]})
    with pytest.raises(UnsupportedModelError, match="beside activations"):
        read({**packed, "input_activations": {"num_bits": 8, "type": "int"}})
    assert read(packed, sparsity_config={}).scheme == "int4-group"
