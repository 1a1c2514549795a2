"""torchao's checkpoints, as its own configurations are written, and the tensors that it makes of a layer."""

from typing import Any

import pytest

from service.engine import parse_quantization
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.formats.matrix import Matrix
from service.engine.formats.scheme import Quantization
from service.engine.formats.stored import matrix_bytes

DOWN, Q = "model.layers.3.mlp.down_proj", "model.layers.3.self_attn.q_proj"
BY_ROW = {"_type": "PerRow", "_version": 1, "_data": {"dim": -1}}
INT4 = {"_type": "Int4WeightOnlyConfig", "_version": 2, "_data": {"group_size": 128}}
INT8 = {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {"group_size": None, "granularity": BY_ROW}}
FLOAT8 = {"_type": "Float8DynamicActivationFloat8WeightConfig", "_version": 2, "_data": {"granularity": [BY_ROW] * 2}}


def read(made: object, **further: Any) -> Quantization:
    return parse_quantization({"quant_method": "torchao", "quant_type": {"default": made}, **further})


# torchao 0.18 of `nn.Linear(4096, 2048)` in bf16: the shapes and dtypes of what it holds
@pytest.mark.parametrize(
    ("made", "held"),
    [
        (INT8, 2_048 * 4_096 + 2_048 * 4 + 2_048),  # int8, a scale of fp32 and a zero point of int8 a row
        (INT8 | {"_type": "Int8DynamicActivationInt8WeightConfig"}, 2_048 * 4_096 + 2_048 * 4 + 2_048),
        ({"_type": "Float8WeightOnlyConfig", "_version": 2, "_data": {}}, 2_048 * 4_096 + 2_048 * 4),
        (INT4, 2_048 * 4_096 // 2 + 2 * 2_048 * 32 * 2),  # int4_tensor.py: `scale` and `zero_point` of bf16 a group
    ],
)
def test_a_layer_holds_what_the_library_makes_of_it(made: dict[str, Any], held: int) -> None:
    assert matrix_bytes(Matrix(module=DOWN, rows=2_048, columns=4_096), read(made), 2) == held


def test_tiles_fill_rows_up() -> None:
    # int4_tile_packed_to_4d_tensor.py: `find_multiple(orig_in_features, 1024)`; Qwen 2.5 7B: 18,944 columns
    tiled = INT4 | {"_data": {"group_size": 128, "int4_packing_format": "tile_packed_to_4d"}}
    whole, filled = (
        matrix_bytes(Matrix(module=DOWN, rows=3_584, columns=columns), read(made), 2)
        for made, columns in ((INT4, 19_456), (tiled, 18_944))
    )

    assert filled == whole


def test_what_is_no_linear_layer_stays_whole() -> None:
    stored = read(INT4, modules_to_not_convert=["self_attn", "layers.1"])

    whole = ("lm_head", "model.layers.3.mlp.experts.gate_up_proj", Q, "model.layers.1.mlp.down_proj")
    assert all(map(stored.keeps, whole))
    assert not any(
        map(stored.keeps, (DOWN, "model.layers.11.mlp.down_proj", "model.layers.3.mlp.shared_experts.up_proj"))
    )


@pytest.mark.parametrize("kind", ["ModuleFqnToConfig", "FqnToConfig"])
def test_modules_have_configurations_of_their_own(kind: str) -> None:
    field = "module_fqn_to_config" if kind.startswith("Module") else "fqn_to_config"
    own = {"_default": INT4, r"re:.*self_attn.*": FLOAT8, "model.layers.0.mlp": None}
    stored = read({"_type": kind, "_version": 1, "_data": {field: own}})

    assert (stored.of(DOWN).scheme, stored.of(Q).scheme) == ("int4-group", "fp8-channel")
    assert stored.keeps("model.layers.0.mlp.down_proj")


def test_what_has_no_rule_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match="UIntXWeightOnlyConfig"):
        read({"_type": "UIntXWeightOnlyConfig", "_data": {}})
    with pytest.raises(MissingConfigFieldError, match="quant_type"):  # "quant_type must be specified"
        parse_quantization({"quant_method": "torchao"})
