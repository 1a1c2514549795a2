"""AMD Quark's checkpoints: which layers they store how, and the bytes that the engine makes room for."""

from typing import Any

import pytest

from service.engine import Layout, parse_architecture, parse_quantization, rank_weights
from service.engine.errors import UnsupportedModelError
from tests.engine.small_configs import SMALL_DENSE, SMALL_EXPERTS

FP8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_dynamic": False, "symmetric": True}
ROWS = FP8 | {"qscheme": "per_channel"}
BLOCKS = FP8 | {"qscheme": "per_block", "block_size": [128, 128]}
MXFP4 = FP8 | {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}
MOVING = {"is_dynamic": True}


def stated(weight: object, activations: object, **further: object) -> dict[str, Any]:
    """Return a `quantization_config` as Quark writes it."""
    whole = {"weight": weight, "input_tensors": activations, "output_tensors": None}
    return {"quant_method": "quark", "exclude": ["lm_head"], "global_quant_config": whole, **further}


# vLLM 0.33's own planner.
@pytest.mark.parametrize(
    ("quantization", "dense", "experts"),
    [
        (stated(FP8, FP8), 383_799_424, 450_975_456),
        (stated(ROWS, ROWS | MOVING), 383_987_728, 451_490_960),
        (stated(BLOCKS, FP8 | MOVING), 383_829_008, 451_020_944),
        (stated(MXFP4, MXFP4 | MOVING), 326_782_992, 362_470_416),
        (stated(MXFP4, None), 326_782_992, 362_470_416),
        (stated(MXFP4, None, exclude=["re:.*self_attn.*"]), 357_584_896, 417_913_856),
        (stated(MXFP4, None, exclude=["*self_attn*"]), 326_782_992, 362_470_416),
        (
            stated(MXFP4, None, layer_quant_config={"*self_attn*": {"weight": ROWS, "input_tensors": ROWS | MOVING}}),
            336_654_352,
            380_222_480,
        ),
        (stated(ROWS | {"dtype": "int8"}, ROWS | {"dtype": "int8"} | MOVING), 384_034_832, 451_620_112),
        (stated(FP8 | {"dtype": "uint4", "qscheme": "per_group", "group_size": 128, "symmetric": False}, None),
         325_357_584, 360_257_808),
    ],
)  # fmt: skip
def test_a_rank_holds_what_the_engine_makes_room_for(quantization: dict[str, Any], dense: int, experts: int) -> None:
    stored = parse_quantization(quantization)

    for config, expected in ((SMALL_DENSE, dense), (SMALL_EXPERTS, experts)):
        held = rank_weights(parse_architecture(config), layout=Layout(), quantization=stored).param_bytes
        assert held == pytest.approx(expected, rel=0.0004)


def test_values_and_their_scales_in_a_list_are_nvfp4() -> None:
    values = FP8 | {"dtype": "fp4", "qscheme": "per_group", "group_size": 16}

    stored = parse_quantization(stated([values, FP8], [values | MOVING, FP8]))

    assert (stored.scheme, stored.block, stored.weight_format) == ("nvfp4", 16, "nvfp4")


@pytest.mark.parametrize("weight", [None, FP8 | {"dtype": "fp6_e3m2"}, MXFP4 | {"group_size": 16}, BLOCKS | {"block_size": [32, 32]}])  # fmt: skip
def test_what_has_no_rule_is_refused_by_name(weight: object) -> None:
    with pytest.raises(UnsupportedModelError, match="quark with"):
        parse_quantization(stated(weight, None))
